"""Every public function meets every wrong thing, and numbers at the ends of what a float holds.
Then whole kinds of input: tables in many dialects, labels with blanks, links, modules in place.

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
from contextlib import nullcontext
from itertools import product
from typing import NamedTuple

import numpy as np
import pandas as pd
import pytest
import torch
from every_call import EXPLORER, TASK
from for_each import for_each
from PIL import Image
from test_generators import every_valid_call
from test_refusals import N, X, numbers, y
from torch import nn

from taskpriors.inputs.feature_files import read_features
from taskpriors.inputs.images import load_images
from taskpriors.inputs.pooling import pool_tokens
from taskpriors.inputs.row_labels import read_labels
from taskpriors.refusals import named
from taskpriors.tools.layers import layers_of
from taskpriors.tools.monitor import Monitor

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
        "beyond 2**63": np.full(floats.shape, 2**63 + 5, dtype=np.uint64),
        "a blank": [*["cat", "dog"] * (N // 2 - 1), "", None],
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
    "cross similarity "
    "truths freedom sample_errors",
    "vector": "mu b first second given covariate scores truth weights nce.source error "
    "TaskPriorLoss.statistics.center robust_bayes.center "
    "index direction covariance skill evaluated",
    "labels": "labels probe_labels known sample_labels.given",
    "number": "C a alpha attack_eps bandwidth beta correlation delta diversity eps floor gain "
    "kappa l2 level "
    "exponent power radius time_step "
    "discard "
    "lowest lr noise perplexity pixel_mean ratio rel_tol rtol save_every "
    "scale shrinkage size step t task_temperature tau temperature tol tolerance trace "
    "fade growth spread words "
    "valid variance warmth weight accuracy threshold gaussian_grid.hessian",
    "count": "batch_size block_size d dpi gibbs_sweeps inner k limit max_bytes "
    "max_iter max_pairs max_tasks n n_classes n_components n_epochs n_features n_graphs "
    "n_max n_min n_orders n_particles n_points n_projections n_resamples n_samples n_steps "
    "last max_points n_clusters n_folds n_sizes n_draws n_tasks n_train n_views n_weights "
    "num_workers order orders oversampling rank restarts n_evaluated n_ranked n_inputs cores width",
    "seed": "seed",
    "groups": "groups task_groups",
    "flag": "center contrasts downloads elected oriented check_edges "
    "higher_is_better on_disk overwrite paired plan points progress "
    "regression shuffle standardize expected_heldout_error.variance",
    "word": "measure convention against version "
    "eps_scale estimator graphs hessian integral interval kernel kind method "
    "missing on_error pairs pooling probe rates rule sampler scoring setting "
    "statistic variant view kernel_factor.scale lidar.scale "
    "TaskExplorer.labels.prior embed_features.dtype split",
    "executor": "executor",
    "result": "basis curve explorer grids head ranking result settings start svd task "
    "evidence direct",
    "function": "features_fn learner logits transform",
    "series": "controls alphas decays gains top_eigenvalues "
    "class_priors diagonals dims scales seeds sizes temperatures gaussian_grid.a "
    "gaussian_grid.b linear_valid.a",
    "mapping": "aliases columns cross_skill.features factors families "
    "labelled_skill.features "
    "judges maps models metrics priors",
    "shape": "shape input_size normalize_by clip",
    "place": "cache out device dtype load_images.source name",
    "axes": "ax",
    "texts": "texts load_texts.source",
}
KINDS = {name: kind for kind, names in NAMES.items() for name in names.split()}
UNTRIED = {
    "prefix": "a text before each text: inputs/07_texts tries others",
    "queries": "the same before each query: inputs/07_texts",
    "past_results": "a table of models by tasks: tests/test_past_scores.py",
    "references": "standard, False or models by name: tests/test_references_hub.py",
    "compute": "a record that checks itself: rank/02_options",
    "all_pairs": "what pass_over_pairs returns: core/12",
    "collapse": "what CollapseTerms.of returns: transfer/11",
    "metric": "a name or a function: its notebooks try it",
    "self": "the object of a method",
    "n_models": "counted by our own functions",
    "scratch": "a folder or a URL: inputs/00 tries both",
    "top": "an eigenvalue that our own functions found",
    "frame": "a table that the ranking made",
    "copies": "counted by the functions of views",
    "agreement": "a table that the ranking made",
    "column": "a name of a column, or of any further one",
    "value": "a value of a column",
    "x": "anything that json is to hold",
    "path": "a file of the package or of a study",
    "train": "a fraction or a mask: tests/test_refusals.py",
    "left_out": "a key of a dictionary",
    "ranked": "names that our own functions found",
    "tasks": "sampled tasks by class: its notebook draws them",
    "tokens": "what a language model returned: its notebook tries it",
    "mask": "of tokens",
    "vectors": "a dictionary of words: its notebook tries it",
    "text_column": "of a table: its notebook tries it",
    "label_column": "of a table: its notebook tries it",
    "results": "tables and files of others: their notebook tries them",
    "table": "a data frame: its notebook tries it",
    "p": "a number, or several: its notebooks try it",
    "reference_models": "rows of a file of the package: its notebook tries it",
    "model": "anything callable, a name, a file or features: tests/test_cli.py",
}
RIGHT = {
    "robust_bayes Sigma a vector": "variances of independent features",
    "choose_grid reference a vector": "one number per checkpoint",
    "rank_models metrics none": "no further statistics",
    "label_evidence labels None": "no label is known",
    "SyntheticTask.sample seed 2**70": "numpy's seed sequences take any integer",
    "synbench_score seed 2**70": "the same",
    "score_by_n seed 2**70": "the same",
}
INFINITE = {
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


def name_of_a_step(f):
    "A context that names the refusals of a step, as the entry point above it does."
    return nullcontext() if hasattr(f, "__wrapped__") else named(f.__name__)


def outcome(case):
    "How a call ends, and what it says."
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        signal.signal(signal.SIGPROF, _stop)
        signal.setitimer(signal.ITIMER_PROF, SECONDS)
        try:
            with name_of_a_step(case.f):
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


SEPARATORS = (",", ";", "\t", "|", " ")
NAMINGS = ("none", "words", "from 0", "from 1", "hundreds", "comment", "comment of words")


def written_table(rng):
    "A random matrix, its text in a random dialect, and what is unusual about it."
    n, d = int(rng.integers(2, 8)), int(rng.integers(1, 6))
    whole = rng.random() < 0.25
    X = rng.integers(0, 9, (n, d)).astype(float) if whole else rng.normal(size=(n, d)).round(3)
    separator, naming = str(rng.choice(SEPARATORS)), str(rng.choice(NAMINGS))
    if whole and naming == "hundreds":  # which nobody can tell from a point
        naming = "none"
    quote = '"' if rng.random() < 0.2 and separator != " " else ""
    words = [[f"{x:.0f}" if whole else repr(float(x)) for x in row] for row in X]
    index = rng.random() < 0.15
    if index:
        words = [[str(k), *row] for k, row in enumerate(words)]
    names = {
        "words": [f"f{k}" for k in range(d)],
        "from 0": [str(k) for k in range(d)],
        "from 1": [str(k + 1) for k in range(d)],
        "hundreds": [str(100 * k + 400) for k in range(d)],
        "comment": ["# written in May"],
        "comment of words": ["# " + separator.join(f"f{k}" for k in range(d))],
    }.get(naming, [])
    if index and naming in ("words", "from 0", "from 1", "hundreds"):
        names = ["", *names]
    lines = [names] * bool(names) + [[quote + w + quote for w in row] for row in words]
    end = str(rng.choice(["\n", "\r\n", "\r"]))
    text = end.join(separator.join(line) for line in lines) + end * int(rng.integers(0, 3))
    return X, rng.choice(["", "\ufeff"]) + text, index


@for_each("seed", range(300))
def test_a_table_in_any_dialect_is_read_right_or_refused(seed, tmp_path):
    X, text, index = written_table(np.random.default_rng(seed))
    path = tmp_path / "x.csv"
    path.write_bytes(text.encode())
    try:
        with name_of_a_step(read_features):
            found = np.asarray(read_features(path)[0])
    except (ValueError, TypeError, OSError) as e:
        assert SENTENCE.match(str(e)) and len(str(e)) <= LONGEST, str(e)
        return
    assert found.shape == X.shape, (
        f"row numbers were read as a feature: {text!r}" if index else text
    )
    np.testing.assert_allclose(found, X, rtol=1e-12, err_msg=text)


@pytest.mark.parametrize("seed", range(40))
def test_a_canonical_table_is_read(seed, tmp_path):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(int(rng.integers(2, 8)), int(rng.integers(1, 6)))).round(3)
    names = None if rng.random() < 0.5 else [f"f{k}" for k in range(X.shape[1])]
    form = dict(sep=str(rng.choice(SEPARATORS[:4])), index=bool(rng.random() < 0.5))
    form |= dict(encoding=str(rng.choice(["utf-8", "utf-8-sig"])), quoting=int(rng.choice([0, 1])))
    pd.DataFrame(X, columns=names).to_csv(tmp_path / "x.csv", **form)
    found = read_features(tmp_path / "x.csv")[0]
    np.testing.assert_allclose(found, X, rtol=1e-12)


BLANKS = ("", " ", "\t", None, NAN, np.nan, pd.NA, pd.NaT)
HOLDERS = {
    "a list": list,
    "a tuple": tuple,
    "an array of objects": lambda x: np.array(x, dtype=object),
    "a series": pd.Series,
    "a series of objects": lambda x: pd.Series(x, dtype=object),
    "a categorical": lambda x: pd.Series(x, dtype=object).where(lambda s: s.notna()),
}


@for_each("holder, blank, classes", product(HOLDERS, BLANKS, [("cat", "dog"), (3, 5)]), repr)
def test_a_blank_among_labels_is_no_class(holder, blank, classes):
    a, b = classes
    labels = HOLDERS[holder]([a, b, blank, a, b, blank])
    assert read_labels(labels, None, 6).classes.tolist() == [0, 1, -1, 0, 1, -1]


@for_each("holder, word", product(HOLDERS, ["nan", "NA", "None", "-1"]), repr)
def test_a_word_that_may_be_a_blank_is_refused(holder, word):
    with pytest.raises(ValueError, match="must not contain words that may mean a missing label"):
        read_labels(HOLDERS[holder](["cat", "dog", word, "cat"]), None, 4)


@for_each("blank", ["", " "], repr)
def test_a_blank_in_a_file_of_labels_is_no_class(blank, tmp_path):
    path = tmp_path / "y.csv"
    path.write_text(f"label\ncat\ndog\n{blank}\ncat\n")
    assert read_labels(path, None, 4).classes.tolist() == [0, 1, -1, 0]


PRECISIONS = (torch.float16, torch.bfloat16, torch.float32, torch.float64)


@for_each("dtype, length", product(PRECISIONS, [1, 2, 255, 257, 600, 2049, 5000]))
def test_tokens_of_any_precision_are_pooled_at_their_places(dtype, length):
    g = torch.Generator().manual_seed(length)
    tokens = torch.randn(3, length, 2, generator=g).to(dtype)
    mask = torch.zeros(3, length, dtype=torch.long)
    mask[0], mask[1, : max(1, length // 2)], mask[2, length // 3 :] = 1, 1, 1
    for kind in (torch.long, torch.bool, dtype):
        last = pool_tokens(tokens, mask.to(kind), "last")
        first = pool_tokens(tokens, mask.to(kind), "cls")
        for row in range(3):
            real = mask[row].nonzero()[:, 0]
            assert torch.equal(last[row], tokens[row, real[-1]])
            assert torch.equal(first[row], tokens[row, real[0]])


def networks(inplace):  # each ends in what a module in place may overwrite
    torch.manual_seed(0)
    yield nn.Sequential(nn.Linear(6, 6), nn.ReLU(inplace), nn.Linear(6, 6), nn.SiLU(inplace))
    yield nn.Sequential(nn.Linear(6, 6), nn.Hardswish(inplace), nn.Dropout(0.5, inplace))
    yield nn.Sequential(nn.Linear(6, 6), nn.LeakyReLU(0.2, inplace), nn.Hardtanh(inplace=inplace))
    yield nn.Sequential(
        nn.Linear(6, 6), nn.BatchNorm1d(6), nn.ELU(inplace=inplace), nn.Mish(inplace)
    )


@pytest.mark.parametrize("k", range(4))
def test_layers_in_place_have_the_features_of_those_that_are_not(k):
    x = torch.randn(20, 6, generator=torch.Generator().manual_seed(k))
    plain, in_place = (list(networks(inplace))[k].train() for inplace in (False, True))
    in_place.load_state_dict(plain.state_dict())
    names = [name for name, _ in plain.named_children()]
    before = {name: value.clone() for name, value in in_place.state_dict().items()}
    expected = layers_of(plain, x, layers=names)
    found = layers_of(in_place, x, layers=names)
    assert list(found) == list(expected)
    for name in found:
        torch.testing.assert_close(found[name], expected[name])
    wrapped = Monitor(x, reference=x, n_tasks=4)
    torch.testing.assert_close(wrapped(lambda batch: in_place(batch)), wrapped(plain))
    for name, value in in_place.state_dict().items():
        assert torch.equal(value, before[name]), f"{name} moved"


@pytest.mark.parametrize("names", [("a.png",), ("a",), ("a", "b"), ("a.png", "b.png")])
def test_links_that_lead_nowhere_do_not_stop_a_folder_of_images(names, tmp_path):
    for k in range(3):
        Image.new("RGB", (4, 4), (80 * k, 0, 0)).save(tmp_path / f"{k}.png")
    for name, to in zip(names, names[1:] + names[:1], strict=True):  # to itself, or in a circle
        (tmp_path / name).symlink_to(tmp_path / to)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert len(load_images(tmp_path, progress=False)) == 3
