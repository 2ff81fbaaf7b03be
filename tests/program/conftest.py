"""A folder for each file of tests, and what many of them begin with."""

import os
import shutil
import sys

import pytest

sys.dont_write_bytecode = True
import program  # noqa: E402


@pytest.fixture(scope="module", autouse=True)
def work_folder(tmp_path_factory):
    """Enters an empty folder, and deletes it at the end."""
    before, folder = os.getcwd(), tmp_path_factory.mktemp("work")
    os.chdir(folder)
    yield folder
    os.chdir(before)
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="module")
def cafe(work_folder):
    """The shipped model as base.wisp, and a log of 60 users as log.db."""
    shutil.copyfile(program.root / "models/cafe.wisp", "base.wisp")
    program.kept("log.db", lambda: program.run("wisp synth --out log.db --population device --users 60 --seed 3"))


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session, exitstatus):
    """A file whose tests were all skipped is skipped: 77, as ctest knows it."""
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if exitstatus == 0 and reporter.stats.get("skipped") and not reporter.stats.get("passed"):
        session.exitstatus = 77
