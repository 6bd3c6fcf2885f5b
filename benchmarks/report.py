"""Run the ratios of `benchmarks/` once, here, and print them as a table.

`python -m benchmarks.report [word in the name ...]` is the quick look; asv does the same over
commits and machines.
"""

import importlib
import inspect
import itertools
import multiprocessing
import pkgutil
import sys
from concurrent.futures import ProcessPoolExecutor

import benchmarks
from benchmarks.timing import tracked_value


def tracked(words):
    "All `track_*` methods of all benchmark classes whose names hold every word."
    for info in pkgutil.iter_modules(benchmarks.__path__):
        if not info.name.startswith("bench_"):
            continue
        module = importlib.import_module(f"benchmarks.{info.name}")
        for _, cls in inspect.getmembers(module, inspect.isclass):
            if cls.__module__ != module.__name__:
                continue
            for name, method in inspect.getmembers(cls, inspect.isfunction):
                full = f"{info.name}.{cls.__name__}.{name}"
                if name.startswith("track_") and all(w in full for w in words):
                    yield info.name, cls, name, method


def parameters(cls):
    "The combinations of asv's `params`: one list of values, or a list per parameter."
    params = getattr(cls, "params", [])
    if not params:
        return [()]
    lists = params if isinstance(params[0], (list, tuple)) else [params]
    return itertools.product(*lists)


def main():
    print("| benchmark | measured | unit |\n|---|---|---|")
    for module, cls, name, method in tracked(sys.argv[1:]):
        for args in parameters(cls):
            with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as fresh:
                value = fresh.submit(tracked_value, module, cls.__name__, name, args).result()
            unit = getattr(method, "unit", "")
            full = f"{module}.{cls.__name__}.{name}{args or ''}"
            print(f"| {full} | {value:.3g} | {unit} |", flush=True)


if __name__ == "__main__":
    main()
