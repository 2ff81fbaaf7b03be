"""Defines a fault, and collects those that lie beside the tests: faults.py of each folder."""
import dataclasses
import importlib.util
import pathlib

HERE = pathlib.Path(__file__).resolve().parent
TESTS = HERE.parent


@dataclasses.dataclass(frozen=True)
class Fault:
    name: str
    file: str
    function: str  # "" for code outside of functions: it must be unique in the file
    before: str  # blanks and line ends are equal
    after: str
    tests: tuple  # "program:Suite.Test", as in --gtest_filter, or "name.sh"; each must fail

    @property
    def of_core(self):
        """Whether its tests are those of a build without wings: they begin with core/."""
        return self.tests[0].startswith("core/")


def table(file, rows):
    """Makes the faults of one file from rows of (name, function, before, after, test...)."""
    return [Fault(name, file, function, before, after, tests) for name, function, before, after, *tests in
            [(r[0], r[1], r[2], r[3], *r[4:]) for r in rows] for tests in [tuple(tests)]]


def all_faults():
    """Those of every faults.py beside the tests of a folder of sources."""
    found = []
    for path in sorted(TESTS.rglob("faults.py")):
        if path.parent == HERE:
            continue
        spec = importlib.util.spec_from_file_location("faults_of_" + path.parent.name, path)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        found += module.FAULTS
    names = [f.name for f in found]
    twice = {name for name in names if names.count(name) > 1}
    assert not twice, f"two faults of one name: {twice}"
    assert all(f.before != f.after and f.tests for f in found), "a fault that changes nothing, or that nothing kills"
    assert all(t.startswith("core/") == f.of_core for f in found for t in f.tests), "a fault of two builds"
    return found
