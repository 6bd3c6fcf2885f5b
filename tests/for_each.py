"""One test for many small cases, where a test of its own for each costs more than the case."""

import functools
import inspect

import pytest


def for_each(names, cases, label=str):
    """Decorate a test that runs all cases in one go and fails with a line for each that fails.

    `names` are the arguments of a case, separated by commas. `cases` is a list, whose entries
    `label` names in the failure, or a dictionary from labels to entries.
    """
    names = names.split(", ")
    labelled = cases.items() if isinstance(cases, dict) else [(None, case) for case in cases]
    labelled = [(key, case if len(names) > 1 else (case,)) for key, case in labelled]
    assert labelled, "no case"

    def decorate(test):
        signature = inspect.signature(test)

        @functools.wraps(test)
        def all_cases(**fixtures):
            failed, skipped = [], set()
            for key, values in labelled:
                try:
                    test(**dict(zip(names, values, strict=True)), **fixtures)
                except pytest.skip.Exception as e:
                    skipped.add(str(e))
                except (Exception, pytest.fail.Exception) as e:
                    where = ", ".join(map(label, values)) if key is None else key
                    failed.append(f"{where}: {type(e).__name__}: {e}")
            if failed:
                pytest.fail("\n".join(failed), pytrace=False)
            if skipped:
                pytest.skip("; ".join(sorted(skipped)))

        others = [p for p in signature.parameters.values() if p.name not in names]
        all_cases.__signature__ = signature.replace(parameters=others)
        return all_cases

    return decorate
