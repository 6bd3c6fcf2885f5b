"""Run the ratios of `benchmarks/` once, here, and print them as a table: `python -m benchmarks.report [word in the name ...]`.

asv does the same over commits and machines; this is the quick look.
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
    "All `track_*` methods of all benchmark classes, and their units."
    for info in pkgutil.iter_modules(benchmarks.__path__):
        if not info.name.startswith("bench_"):
            continue
        module = importlib.import_module(f"benchmarks.{info.name}")
        for _, cls in inspect.getmembers(module, inspect.isclass):
            if cls.__module__ != module.__name__:
                continue
            for name, method in inspect.getmembers(cls, inspect.isfunction):
                if name.startswith("track_") and all(
                    w in f"{info.name}.{cls.__name__}.{name}" for w in words
                ):
                    yield info.name, cls, name, method


def main():
    print("| benchmark | measured | unit |\n|---|---|---|")
    for module, cls, name, method in tracked(sys.argv[1:]):
        params = getattr(cls, "params", [])
        for args in itertools.product(
            *(
                params
                if params and isinstance(params[0], (list, tuple))
                else [params]
                if params
                else []
            )
        ):
            with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as fresh:
                value = fresh.submit(tracked_value, module, cls.__name__, name, args).result()
            print(
                f"| {module}.{cls.__name__}.{name}{args or ''} | {value:.3g} | {getattr(method, 'unit', '')} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
