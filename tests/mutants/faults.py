"""Defines a fault, and collects all of them. Each faults_*.py has one function for each subject."""
import dataclasses


@dataclasses.dataclass(frozen=True)
class Fault:
    name: str
    file: str
    function: str  # "" for code outside of functions: it must be unique in the file
    before: str  # blanks and line ends are equal
    after: str
    tests: tuple  # "program:Suite.Test", as in --gtest_filter, or "name.sh"; each must fail


def table(file, rows):
    """Makes the faults of one file from rows of (name, function, before, after, test...)."""
    return [Fault(name, file, function, before, after, tests) for name, function, before, after, *tests in
            [(r[0], r[1], r[2], r[3], *r[4:]) for r in rows] for tests in [tuple(tests)]]


def all_faults():
    import faults_accounting
    import faults_cuda
    import faults_edges
    import faults_layers
    import faults_personalise
    import faults_private_sampling
    import faults_program
    import faults_texts
    import faults_training
    faults = (faults_training.faults() + faults_accounting.faults() + faults_private_sampling.faults() +
              faults_edges.faults() + faults_layers.faults() + faults_personalise.faults() + faults_program.faults() +
              faults_cuda.faults() + faults_texts.faults())
    names = [f.name for f in faults]
    assert len(names) == len(set(names)), "two faults of one name"
    assert all(f.before != f.after and f.tests for f in faults), "a fault that changes nothing, or that nothing kills"
    return faults
