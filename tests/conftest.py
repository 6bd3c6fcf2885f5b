"""What every test needs before it starts.

A job in the background ignores Ctrl-C, and the processes that tests start and interrupt would
inherit that. Those processes import the library of this checkout, and no test asks a hub. Tests
that run side by side share the cores: threads that wait for each other would spin, and take seven
times the time of one thread where two processes have two threads each.

The garbage collector does not walk through what the tests import: it is off until they are
collected, and what exists then is frozen. Later it looks for garbage less often than usual, since
the syntax trees and tables of the tests are many objects and hardly any garbage.
"""

import gc
import os
import signal
import sys
from pathlib import Path

import pytest
from chromium import CHROMIUM, DRIVER
from forks import NEEDLESS

signal.signal(signal.SIGINT, signal.default_int_handler)
gc.disable()
sys.modules[NEEDLESS] = None  # while tests are collected

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


FIRST = (  # what the first of two workers starts with
    "test_mypy_finds_nothing",
    "[start/04_with_labels]",
    "[tools/08_cli]",
    "[rank/14_files]",
    # of the long tests
    "test_site.py",
    "test_jupyterlab.py",
    "test_types.py",
)
SECOND = (  # and the other one
    "runs_and_says_what_it_said[rank/12_run]",
    "runs_and_says_what_it_said[rank/13_models]",
    "[tools/07_label_loop]",
    "[tools/05_layers]",
    # of the long tests
    "slow_cells_say_what_they_said[prior/12_labelings]",
    "slow_cells_say_what_they_said[papers/10_robust_probing]",
    "test_the_default_ranks_the_zoo_on_the_digits",
    "slow_cells_say_what_they_said[synbench/03_score]",
    "has_a_table_and_a_picture_of_its_own",
    "slow_cells_say_what_they_said[prior/05_sketch]",
)


@pytest.hookimpl(trylast=True)  # after those were left out that `-m` does not ask for
def pytest_collection_modifyitems(items):
    """What takes longest comes first: at the end of a run a core would wait for it.

    That is the check of types without a cache, the chapters that run many rankings and, among the
    long tests, the site, which one test builds and all others read, so that one worker should run
    them. Tests are dealt out to the workers in halves; a worker that has finished takes over what
    stands last.
    """

    def named(names):
        places = {
            item: [k for k, name in enumerate(names) if name in item.nodeid] for item in items
        }
        return sorted((item for item in items if places[item]), key=places.get)

    first, second = named(FIRST), named(SECOND)
    heavy = {*first, *second}
    others = [item for item in items if item not in heavy]
    room = max(0, len(items) // 2 - len(first))
    items[:] = [*first, *others[:room], *second, *others[room:]]


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop():  # once all tests are collected
    sys.modules.pop(NEEDLESS, None)
    gc.freeze()
    gc.set_threshold(10_000, 20, 20)
    gc.enable()


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item):
    refuse_an_idle_skip((yield).get_result(), item.config)


@pytest.hookimpl(hookwrapper=True)
def pytest_make_collect_report(collector):
    refuse_an_idle_skip((yield).get_result(), collector.config)
