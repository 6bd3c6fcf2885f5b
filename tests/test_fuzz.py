"""Every public function meets every wrong thing, and numbers at the ends of what a float holds.

A call may end in three ways: it is refused in one sentence, it is right (finite numbers), or it
warns. Another exception, a NaN or an infinity without a word, and a call that does not end are
failures. What is refused counts towards the shares that `test_wrong_arguments_are_refused` prints
and demands.

`KINDS` says what a parameter takes, by its name or by "function.name"; `WRONG` lists for each kind
what it cannot be. `RIGHT` and `INFINITE` name what looks wrong and is not.
`pytest tests/test_fuzz.py --fuzz` makes every call; without the flag a seeded part of them is
made. `-s` shows the shares.
"""

import importlib.util
import inspect
import random
import re
import signal
import warnings
from collections import Counter
from typing import NamedTuple

import numpy as np
import pandas as pd
import pytest
import torch
from every_call import EXPLORER, TASK
from test_generators import every_valid_call
from test_refusals import N, X, numbers, y

SENTENCE = re.compile(r"^[\w.]+: .+\. Got .*; .+\.$", re.S)
LONGEST = 300  # characters of a message
SHARE = 0.2  # of the calls that a run without --fuzz makes
SECONDS = 20  # of a processor, after which a call counts as one that does not end

NAN, INF = float("nan"), float("inf")
HUGE = 10**400  # a number that no float holds


class Thing:
    "Something that no function asks for."

    def __repr__(self):
        return "<a thing>"


class Mapper:
    "It has a `map`, but one that returns nothing like results."

    def map(self, *args):
        return 3


def with_value(good, value):
    bad = torch.as_tensor(good).double().clone(memory_format=torch.contiguous_format)
    bad.view(-1)[-1] = value
    return bad


def masked(good):
    array = np.asarray(good)
    mask = np.zeros(array.shape, dtype=bool)
    mask.flat[0] = True
    return np.ma.masked_array(array, mask)


def strange_tensors(good):
    "The values of `good` in forms whose numbers cannot be read as they are."
    T = torch.as_tensor(good).float()
    return {
        "masked": masked(T),
        "meta": T.to("meta"),
        "nested": torch.nested.nested_tensor([T.flatten()[:2], T.flatten()[:1]]),
        "quantised": torch.quantize_per_tensor(T, 0.1, 0, torch.qint8),
        "float8": T.to(torch.float8_e4m3fn),
        "complex": T.to(torch.complex64),
    }


def things(*more):
    "What is wrong for nearly every kind, and more of it."
    return {"a thing": Thing(), "a type": dict, "bytes": b"junk", **dict(more)}


def scalars():
    return things(
        ("a word", "junk"),
        ("a list", []),
        ("a dictionary", {}),
        ("several", np.arange(3.0)),
        ("a complex number", 1j),
        ("a date", np.datetime64("2026-01-01")),
    )


def arrays(good):
    return things(
        ("a word", "junk"),
        ("words", ["a", "b"]),
        ("ragged", [[1.0, 2.0], [3.0]]),
        ("nothing in it", []),
        ("a set", {1, 2}),
        ("dates", np.array(["2026-01-01"] * N, dtype="datetime64[D]")),
        ("objects", np.array([Thing()] * N, dtype=object)),
        ("a huge number", [[HUGE, 1], [2, 3]]),
        ("a table of words", pd.DataFrame({"a": ["x"] * N})),
    ) | strange_tensors(good)


def wrong_matrices(good):
    return arrays(good) | {
        "nan": with_value(good, NAN),
        "infinite": with_value(good, INF),
        "one number": 3.0,
        "a vector": [1.0, 2.0, 3.0],
        "four dimensions": torch.ones(2, 2, 2, 2),
        "no rows": torch.ones(0, 4),
        "a dictionary": {"a": Thing()},
    }


def wrong_vectors(good):
    return arrays(good) | {
        "nan": with_value(good, NAN),
        "four dimensions": torch.ones(2, 2, 2, 2),
        "a dictionary": {"a": 1},
    }


def wrong_labels(good):
    floats = torch.as_tensor(good).double()
    return arrays(good) | {
        "nan": with_value(good, NAN),
        "infinite": with_value(good, INF),
        "halves": floats + 0.5,
        "negative": floats - 5,
        "far too large": floats * 1e300 + 1e300,
        "four dimensions": torch.ones(2, 2, 2, 2),
        "a dictionary": {"a": 1},
    }


def wrong_numbers(good):
    return scalars() | {"nan": NAN, "a boolean": True, "huge": HUGE, "minus infinity": -INF}


def wrong_counts(good):
    return scalars() | {"nan": NAN, "a boolean": True, "a fraction": 1.5, "negative": -3}


def wrong_seeds(good):
    return wrong_counts(good) | {"2**70": 2**70, "a bit generator": np.random.PCG64(0)}


def wrong_groups(good):
    return things(
        ("a number", 3),
        ("too few", ["a", "b"]),
        ("one family", ["a"] * N),
        ("none named", [None] * N),
        ("nan", [NAN] * N),
        ("ragged", [[1.0, 2.0], [3.0]]),
        ("objects", [Thing() for _ in range(N)]),
        ("a matrix", torch.ones(N, 2)),
        ("a dictionary", {"a": 1}),
    )


def wrong_flags(good):
    several = {"several": np.arange(3.0), "a list": [], "nan": NAN, "two": 2}
    return things(("a word", "no"), *several.items())


def wrong_words(good):
    return things(
        ("another word", "nonsense"),
        ("a number", 3),
        ("words", np.array(["a", "b"])),
        ("a tensor", torch.ones(3)),
        ("a list", []),
        ("a dictionary", {}),
        ("nan", NAN),
    )


def wrong_executors(good):
    return things(
        ("a word", "threads"),
        ("a number", 3),
        ("a table", pd.Series([1.0, 2.0])),
        ("something with a map", Mapper()),
        ("a class", type("Executor", (), {"map": None})),
    )


def wrong_results(good):
    return things(
        ("a word", "junk"),
        ("a number", 3),
        ("a tensor", torch.ones(3)),
        ("a dictionary", {"a": 1}),
        ("another result", EXPLORER if good is TASK else TASK),
        ("a list of results", [TASK, EXPLORER]),
    )


def wrong_functions(good):
    return things(("a word", "junk"), ("a number", 3), ("a tensor", torch.ones(3))) | {
        "a type": int
    }


def wrong_series(good):
    return arrays([1.0, 2.0]) | {
        "nan": [NAN, 1.0],
        "a dictionary": {"a": 1},
        "four dimensions": torch.ones(2, 2, 2, 2),
    }


def wrong_mappings(good):
    return things(("a word", "junk"), ("a number", 3), ("things", {"a": Thing()}), ("none", {}))


def wrong_shapes(good):
    return things(
        ("a word", "junk"),
        ("a zero", (0, 2, 2)),
        ("a fraction", (1, 2.5, 2)),
        ("a negative", (1, -2, 2)),
        ("nothing in it", ()),
        ("words", ("a", "b", "c")),
        ("nan", NAN),
        ("a dictionary", {"a": 1}),
    )


def wrong_places(good):
    return things(("a number", 3), ("a list", [1]), ("a tensor", torch.ones(3)), ("nan", NAN))


def wrong_texts(good):
    good = ["a text", "another", "a third"]
    return things(
        ("a sentence", "no file"),
        ("a number", 3),
        ("a tensor", torch.ones(N)),
        ("a missing one", [*good[1:], None]),
        ("nan", [*good[1:], NAN]),
        ("an empty one", [*good[1:], " "]),
        ("none", []),
        ("a set", set(good)),
        ("a dictionary", {"a": 1}),
    )


def wrong_axes(good):
    return things(("a word", "junk"), ("a number", 3), ("a tensor", torch.ones(3)))


WRONG = {
    "matrix": wrong_matrices,
    "vector": wrong_vectors,
    "labels": wrong_labels,
    "number": wrong_numbers,
    "count": wrong_counts,
    "seed": wrong_seeds,
    "groups": wrong_groups,
    "flag": wrong_flags,
    "word": wrong_words,
    "executor": wrong_executors,
    "result": wrong_results,
    "function": wrong_functions,
    "series": wrong_series,
    "mapping": wrong_mappings,
    "shape": wrong_shapes,
    "place": wrong_places,
    "axes": wrong_axes,
    "texts": wrong_texts,
}
NAMES = {
    "matrix": "A B G K M Sigma W Z accuracies factor features images mixture other others prior "
    "source_probs targets views xy reference nleep.mixture point_errors task_errors "
    "rank_tiers.covariance repetition_factor.covariance cross similarity differences general "
    "truths",
    "vector": "mu b first second given scores truth weights nce.source error "
    "TaskPriorStatistics.forward.center TaskPriorLoss.forward.center robust_bayes.center "
    "index class_proportions direction covariance skill",
    "labels": "labels probe_labels known",
    "number": "C a alpha bandwidth beta correlation delta diversity eps floor gain kappa l2 level "
    "elect_prior.limit exponent power radius time_step "
    "discard "
    "lowest lr noise perplexity pixel_mean ratio rel_tol resample_below rtol save_every "
    "scale shrinkage size step t task_temperature tau temperature tol tolerance trace "
    "valid variance warmth weight flatness.b accuracy threshold gaussian_grid.hessian",
    "count": "batch_size block_size check_every d dpi gibbs_sweeps inner k limit max_bytes "
    "max_iter max_pairs max_tasks n n_classes n_components n_epochs n_features n_graphs "
    "n_max n_min n_orders n_particles n_points n_projections n_resamples n_samples n_steps "
    "last max_points n_clusters n_folds n_sizes n_draws n_tasks n_train n_views n_weights "
    "num_workers order oversampling rank repeats restarts n_judged",
    "seed": "seed",
    "groups": "groups task_groups rank_tiers.models",
    "flag": "center oriented check_edges exif_rotation higher_is_better intercept overwrite "
    "paired plan points progress regression shuffle standardize tagged "
    "expected_heldout_error.variance",
    "word": "measure convention criterion against version "
    "eps_scale estimator graphs hessian interval kernel kind method "
    "missing normalization on_error pairs pooling probe rates rule sampler setting "
    "statistic variant view kernel_factor.scale lidar.scale transrate.weights "
    "gbc.covariance TaskExplorer.labels.prior embed_features.dtype split",
    "executor": "executor",
    "result": "basis curve explorer grids head ranking result settings speed start svd task",
    "function": "features_fn learner logits transform scorer.prior",
    "series": "controls alphas "
    "class_priors diagonals dims scales seeds sizes temperatures gaussian_grid.a "
    "gaussian_grid.b linear_valid.a score_integral.accuracy grid_integral.accuracy "
    "score_integral.bound grid_integral.bound",
    "mapping": "aliases columns cross_skill.features factors families "
    "judges maps models metrics priors outside_agreement.truth outside_agreement.given",
    "shape": "shape input_size normalize_by clip",
    "place": "cache out device dtype load_images.source name",
    "axes": "ax",
    "texts": "texts load_texts.source",
}
KINDS = {name: kind for kind, names in NAMES.items() for name in names.split()}
UNTRIED = {
    "all_pairs": "what pass_over_pairs returns: workshop/12",
    "neighbours": "what nearest_neighbours returns: transfer/09",
    "collapse": "what collapse_terms returns: transfer/11",
    "metric": "a name or a function: its notebooks try it",
    "self": "the object of a method",
    "caller": "who asks, passed by our own functions",
    "frame": "a table that the ranking made",
    "copies": "counted by the functions of views",
    "agreement": "a table that the ranking made",
    "column": "a name of a column, or of any further one",
    "value": "a value of a column",
    "x": "anything that json is to hold",
    "path": "a file of the package or of a study",
    "train": "a fraction or a mask: tests/test_refusals.py",
    "without": "a key of a dictionary",
    "tokens": "what a language model returned: its notebook tries it",
    "mask": "of tokens",
    "vectors": "a dictionary of words: its notebook tries it",
    "text_column": "of a table: its notebook tries it",
    "label_column": "of a table: its notebook tries it",
    "results": "tables and files of others: their notebook tries them",
    "table": "a data frame: its notebook tries it",
    "p": "a number, or several: its notebooks try it",
    "model": "anything callable, a name, a file or features: tests/test_cli.py",
}
RIGHT = {
    "robust_bayes Sigma a vector": "variances of independent features",
    "use_head head None": "the head is fitted",
    "choose_grid reference a vector": "one number per checkpoint",
    "rank_models metrics none": "no further statistics",
    "known_names aliases none": "no further names",
    "match_models aliases none": "no further names",
    "outside_agreement aliases none": "no further names",
    "TaskExplorer maps none": "nothing is computed yet",
    "TaskExplorer factors none": "nothing is computed yet",
    "worst_decile accuracies a vector": "the tasks of one model",
    "worst_decile accuracies four dimensions": "tasks stand in the last one",
    "SyntheticTask.sample seed 2**70": "numpy's seed sequences take any integer",
    "synbench_score seed 2**70": "the same",
    "score_by_n seed 2**70": "the same",
}
INFINITE = {
    "log_evidence": "precisions: of the weights where features do not help, of no noise",
    "logistic_fit": "the intercept of a class that no point has",
    "eps_sample_complexity": "the loss stays above eps at every size",
}
STARRED = (inspect.Parameter.VAR_KEYWORD, inspect.Parameter.VAR_POSITIONAL)


class Case(NamedTuple):
    "One call with one wrong thing in it."

    label: str
    f: object
    kwargs: dict
    main: bool  # is the parameter one without a default?
    wrong: bool  # must it be refused, or may the answer be right?


def kind_of(function: str, parameter: str) -> str | None:
    return KINDS.get(f"{function}.{parameter}", KINDS.get(parameter))


def extremes(kind, good):
    "Values at the ends of what a float holds: right, refused or warned of, never silently NaN."
    if kind in ("matrix", "vector") and isinstance(good, torch.Tensor) and good.is_floating_point():
        yield from ((f"times {c:g}", good * c) for c in (1e20, 1e150, 1e300, 1e-200, 1e-320))
        yield from ((f"float32 times {c:g}", (good * c).float()) for c in (1e18, 1e35, 1e-40))
        yield "zeros", torch.zeros_like(good)
        yield "ones", torch.ones_like(good)
    if kind == "number":
        yield from ((f"{c:g}", c) for c in (1e-320, 1e-30, 1e30, 1e200, 1.7e308))


def good_like(kind, good):
    "A value whose forms the wrong ones copy, where the valid call passes none."
    if kind not in ("labels", "matrix", "vector") or isinstance(good, torch.Tensor):
        return good
    return {"labels": y, "matrix": X, "vector": X[:, 0]}.get(kind)


def cases():
    for module, name, f, kwargs in every_valid_call():
        for parameter, spec in inspect.signature(f).parameters.items():
            if parameter in UNTRIED or spec.kind in STARRED:
                continue
            kind = kind_of(name, parameter)
            assert kind, f"{name}: what {parameter} takes stands neither in KINDS nor in UNTRIED"
            main = spec.default is spec.empty
            good = good_like(kind, kwargs.get(parameter))
            tried = dict(WRONG[kind](good))
            if main:
                tried["None"] = None
            for what, value in tried.items():
                if f"{name} {parameter} {what}" in RIGHT:
                    continue
                label = f"{module}.{name} {parameter} ({kind}): {what}"
                yield Case(label, f, kwargs | {parameter: value}, main, True)
            for what, value in extremes(kind, kwargs.get(parameter)):
                label = f"{module}.{name} {parameter} ({kind}): {what}"
                yield Case(label, f, kwargs | {parameter: value}, main, False)


class DidNotEnd(BaseException):
    "A call that runs longer than it may."


def _stop(*_):
    raise DidNotEnd


def outcome(case):
    "How a call ends, and what it says."
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        signal.signal(signal.SIGPROF, _stop)
        signal.setitimer(signal.ITIMER_PROF, SECONDS)
        try:
            found = numbers(case.f(**case.kwargs))
        except (ValueError, TypeError, MemoryError, OSError) as e:
            text = str(e)
            said = SENTENCE.match(text) and len(text) <= LONGEST
            return "refused" if said else "failed", f"{type(e).__name__}: {text[:400]}"
        except (Exception, DidNotEnd) as e:
            return "failed", f"{type(e).__name__}: {str(e)[:200]}"
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0)
    if told:
        return "warned", str(told[0].message)
    may_be_infinite = case.f.__name__ in INFINITE
    if any(x.isnan().any() or (x.isinf().any() and not may_be_infinite) for x in found):
        return "failed", "NaN or infinity without a word"
    return "right", ""


def has_its_libraries(case):
    "Is everything installed that the call imports?"
    return case.f.__name__ != "explore" or importlib.util.find_spec("ipywidgets") is not None


@pytest.fixture(scope="module")
def outcomes(request, tmp_path_factory):
    "Each chosen call, how it ended, and what it said."
    patch = pytest.MonkeyPatch()
    patch.setenv("TASKPRIORS_CACHE", str(tmp_path_factory.mktemp("cache")))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        chosen = [case for case in cases() if has_its_libraries(case)]
    if not request.config.getoption("--fuzz"):
        chosen = random.Random(0).sample(chosen, round(SHARE * len(chosen)))
    found = [(case, *outcome(case)) for case in chosen]
    patch.undo()
    return found


def share_refused(outcomes, *, main):
    "Share of the wrong arguments that were refused in a sentence."
    counts = Counter(how for case, how, _ in outcomes if case.wrong and (case.main or not main))
    print(f"\n{'main' if main else 'all'} arguments: {dict(counts)}")
    return counts["refused"] / counts.total()


def test_wrong_arguments_are_refused(outcomes):
    assert share_refused(outcomes, main=True) >= 0.99
    assert share_refused(outcomes, main=False) >= 0.97


def test_no_call_ends_in_another_way(outcomes):
    failed = [f"{case.label}: {said}" for case, how, said in outcomes if how == "failed"]
    assert not failed, "\n".join(failed)
