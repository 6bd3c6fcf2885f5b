"""What every test needs before it starts.

A job in the background ignores Ctrl-C, and the processes that tests start and interrupt would
inherit that. Those processes import the library of this checkout, and no test asks a hub. Tests
that run side by side share the cores: threads that wait for each other would spin, and take seven
times the time of one thread where two processes have two threads each.
"""

import os
import signal
import sys
from pathlib import Path

import pytest
from chromium import CHROMIUM, DRIVER

signal.signal(signal.SIGINT, signal.default_int_handler)

ROOT = Path(__file__).resolve().parent.parent
paths = [str(ROOT), str(ROOT / "tests"), os.environ.get("PYTHONPATH", "")]
os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, paths))
os.environ["HF_HUB_OFFLINE"] = "1"
os.environ.setdefault("OMP_WAIT_POLICY", "passive")

workers = os.environ.get("PYTEST_XDIST_WORKER_COUNT")  # only workers know it
if workers:
    os.environ.setdefault("OMP_NUM_THREADS", str(max(1, (os.cpu_count() or 1) // int(workers))))


MAY_BE_SKIPPED = {  # part of a reason -> where it holds
    "needs chromium and chromedriver": not (CHROMIUM and DRIVER),
    "no read-only file system": not os.path.isdir("/proc/fs"),
    "reads /proc": not sys.platform.startswith("linux"),
    "POSIX": sys.platform == "win32",
}


def pytest_addoption(parser):
    parser.addoption("--fuzz", action="store_true", help="make every call of tests/test_fuzz.py")
    parser.addoption("--no-idle-skips", action="store_true", help="fail where a skip has no reason")


def refuse_an_idle_skip(report, config):
    "With --no-idle-skips, a test that this machine could run fails if it is skipped."
    expected_to_fail = hasattr(report, "wasxfail")
    if expected_to_fail or not (report.skipped and config.getoption("--no-idle-skips")):
        return
    path, line, reason = report.longrepr
    if not any(holds and part in reason for part, holds in MAY_BE_SKIPPED.items()):
        report.outcome = "failed"
        report.longrepr = f"{path}:{line}: this machine could run it. {reason}"


FIRST = (
    "test_mypy_finds_nothing",
    "[start/04_with_labels]",
    "[rank/12_run]",
    "[report/04_page]",
    "[tools/08_cli]",
    "[rank/14_files]",
    # the long tests: what one of two workers starts with, then that of the other
    "test_site.py",
    "test_nbdev.py",
    "test_the_default_ranks_the_zoo_on_the_digits",
    "test_models_of_noise_have_no_verdict",
    "test_slow_cells_say_what_they_said",
    "test_types.py",
)


def pytest_collection_modifyitems(items):
    """What takes longest comes first: at the end of a run a core would wait for it.

    That is the check of types without a cache, the chapters that run many rankings and, among the
    long tests, the site. One test builds it and all others read it, so that one worker should run
    them. Tests are dealt out to the workers in halves: of the long tests, the site fills most of
    the first half, commands of seconds the rest of it, and the second one starts with what takes
    minutes.
    """

    def place(item):
        matches = [place for place, part in enumerate(FIRST) if part in item.nodeid]
        return matches[0] if matches else len(FIRST)

    items.sort(key=place)


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item):
    refuse_an_idle_skip((yield).get_result(), item.config)


@pytest.hookimpl(hookwrapper=True)
def pytest_make_collect_report(collector):
    refuse_an_idle_skip((yield).get_result(), collector.config)
