"Ratios and peak memory, each measured in one run: the numbers that `benchmarks/` tracks."

import importlib
import statistics
import threading
import time

import psutil


def seconds(f, repeat=3):
    "Median wall time of `f()` over `repeat` runs, after one warm-up."
    f()
    return statistics.median(_once(f) for _ in range(repeat))


def ratio(f, g, repeat=3):
    """Median time of `f()` over the median time of `g()`; the two alternate, so that a busy machine
    slows both.
    """
    f(), g()
    pairs = [(_once(f), _once(g)) for _ in range(repeat)]
    return statistics.median(a for a, _ in pairs) / statistics.median(b for _, b in pairs)


def peak_mib(f, interval=0.002):
    "Largest growth of resident memory while `f()` runs, in MiB."
    process, peak, done = psutil.Process(), [0], threading.Event()
    start = process.memory_info().rss

    def watch():
        while not done.wait(interval):
            peak[0] = max(peak[0], process.memory_info().rss)

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    f()
    peak[0] = max(peak[0], process.memory_info().rss)
    done.set()
    watcher.join()
    return max(peak[0] - start, 0) / 2**20


def _once(f):
    time.sleep(
        0.1
    )  # the idle threads of what ran before spin on for a while, on cores that `f` needs
    start = time.perf_counter()
    f()
    return time.perf_counter() - start


def tracked_value(module, cls, name, args):
    """One `track_*` method on a fresh object; run it in a process of its own, or memory that an
    earlier benchmark freed hides what this one takes.
    """
    bench = getattr(importlib.import_module(f"benchmarks.{module}"), cls)()
    if hasattr(bench, "setup"):
        bench.setup(*args)
    return getattr(bench, name)(*args)
