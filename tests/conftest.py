"""What every test needs before it starts.

A job in the background inherits a deaf ear for Ctrl-C, and so would the processes that tests start
and interrupt. Tests that run side by side share the cores: more threads than cores make the pools
of torch and of numpy wait for each other.
"""

import os
import signal

signal.signal(signal.SIGINT, signal.default_int_handler)

workers = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
os.environ.setdefault("OMP_NUM_THREADS", str(max(1, (os.cpu_count() or 1) // workers)))


def pytest_addoption(parser):
    parser.addoption("--fuzz", action="store_true", help="make every call of tests/test_fuzz.py")
