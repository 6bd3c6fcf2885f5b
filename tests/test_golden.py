"""Small rankings of every kind say what they said: numbers, columns, verdicts, notes, refusals.

    python tests/test_golden.py            what has moved, a line for each number or text
    python tests/test_golden.py --write    the same, and keep it in tests/golden_rankings.json

Features are float64, so that a rounding error of another processor stays far below the tolerances.
A forecast draws along the square root of its covariance, which has no sign, and is held to three
digits.
"""

import json
import math
import re
import sys
import warnings
from functools import lru_cache
from pathlib import Path

import numpy as np
import pytest

from taskpriors.rank.models import rank_models
from taskpriors.rank.options import nested

KEPT = Path(__file__).with_name("golden_rankings.json")
RELATIVE = 1e-6  # to the largest of a column, of what rests on no draws
FORECAST = {"p_best": 0.003, "expected_regret": 0.02, "margin": 0.02, "error": 0.02}  # absolute
PREDICTED = "|".join(  # numbers of a verdict, which stand in columns as well
    [
        r"(?<=probability )[.\d]+\d",
        r"(?<=expected regret )[.\d]+\d",
        r"(?<=expected regret, )[.\d]+\d",
        r"(?<=\()0\.\d\d(?=\))",
    ]
)
CLOCK = {"seconds", "milliseconds"}
DOORS = {"memory": None, "disk": True}  # value of on_disk
FEW = dict(n_tasks=20, n_classes=3, seed=1, cache=False, progress=False)
POINTS = 120
DIRECTIONS = np.random.default_rng(0).standard_normal((POINTS, 12))


def view(k, noise):
    "What a model sees: eight of the directions, from the k-th on, and noise of its own."
    g = np.random.default_rng(k + 1)
    seen = np.roll(DIRECTIONS, -k, 1)[:, :8] * np.linspace(2, 0.5, 8)
    return seen @ g.standard_normal((8, 10 + k)) + noise * g.standard_normal((POINTS, 10 + k))


def candidate_sets():
    "Name -> models."
    eight = {f"m{k}": view(k, 0.5 + 0.7 * k) for k in range(8)}
    two, three = ({name: eight[name] for name in list(eight)[:m]} for m in (2, 3))
    near = eight["m1"] + 0.01 * np.random.default_rng(99).standard_normal(eight["m1"].shape)
    broken = eight["m3"].copy()
    broken[5, 2] = np.nan
    return dict(
        two=two,
        three=three,
        eight=eight,
        copies=dict(three, near=near, m3=eight["m3"]),
        failed=dict(three, broken=broken),
    )


def labellings():
    "Name -> what `labels=` takes."
    classes = (DIRECTIONS[:, 0] > 0.3).astype(int) + (DIRECTIONS[:, 1] > 0)
    some = np.where(np.arange(POINTS) % 6 == 0, classes, -1)
    return dict(unlabelled=None, some=some, all=classes, targets=DIRECTIONS[:, :2] + 0.25)


def cases():
    "Name -> door, models and options: three models with everything, others with some."
    models, labels = candidate_sets(), labellings()
    three, eight = models["three"], models["eight"]
    priors = dict(consensus=None, product="product", ranked="m1")
    priors["factor"] = DIRECTIONS[:, :5] / 10
    out = {}
    for door in DOORS:
        for prior, distribution in priors.items():
            for which, values in labels.items():
                name = f"three, {door}, {prior}, {which}"
                out[name] = door, three, dict(prior=distribution, labels=values)
        for candidates in ("two", "eight", "copies", "failed"):
            for prior in ("consensus", "product"):
                for which in ("unlabelled", "some"):
                    name = f"{candidates}, {door}, {prior}, {which}"
                    options = dict(prior=priors[prior], labels=labels[which])
                    out[name] = door, models[candidates], options
        out[f"eight, {door}, references"] = door, eight, dict(references=dict(eye=view(9, 1.0)))
        linear = dict(kernel="linear", temperature=0.04)
        out[f"three, {door}, linear"] = door, three, linear
    out["three, disk, a sample judges"] = "disk", three, dict(n_residuals=70)
    out["three, disk, cut"] = "disk", three, dict(rank=4)
    out["three, memory, metrics"] = "memory", three, dict(metrics=["rankme", "uniformity"])
    for door in DOORS:
        for which in ("unlabelled", "some"):
            options = dict(metrics="all", labels=labels[which])
            out[f"three, {door}, all statistics, {which}"] = door, three, options
    return out


CASES = cases()


def written(values, digits=8):
    "Numbers as JSON holds them, None where there is none."
    return [None if x is None or math.isnan(x) else float(f"{x:.{digits}g}") for x in values]


def facts(ranking):
    "What is held of a ranking."
    settings = ranking.settings
    frame = ranking.to_frame().sort_values("skill", ascending=False, kind="stable")
    columns = {name: frame[name].tolist() for name in frame if name not in CLOCK}
    names = columns.pop("model")
    out = {name: written(values, 3 if name in FORECAST else 8) for name, values in columns.items()}
    out |= dict(
        columns=list(frame),
        models=names,
        verdict=re.sub(PREDICTED, "#", ranking.verdict),
        next_step=re.sub(r"\d+\.\d", "#", ranking.next_step),
        prior=settings["prior"],
        trusted=ranking.trusted,
    )
    texts = dict(
        candidates=settings["candidates"], notes=settings["notes"], failures=ranking.failures
    )
    out |= {name: text for name, text in texts.items() if text}
    if ranking.to_label is not None:
        out["to_label"] = ranking.to_label[:8].tolist()
    if ranking.prior_skill is not None and ranking.forecast.draws is not None:
        out["regret_with_labels"] = written(
            ranking.regret_with_labels().expected_regret.tolist(), 2
        )
    return out


def result(name):
    "The facts of a case, or why it is refused, as JSON holds them."
    door, models, options = CASES[name]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        try:
            flat = nested(on_disk=DOORS[door], **FEW, **options)
            out = facts(rank_models(models, **nested(**flat)))
        except ValueError as e:
            out = dict(refused=str(e))
    return json.loads(json.dumps(out))


def is_near(name, new, old):
    "Are two lists of numbers the same, as far as processors agree?"
    if len(new) != len(old) or [x is None for x in new] != [x is None for x in old]:
        return False
    pairs = [(a, b) for a, b in zip(new, old, strict=True) if a is not None]
    largest = max((abs(b) for _, b in pairs), default=0.0)
    allowed = FORECAST.get(name, RELATIVE * largest + 1e-9)
    return all(abs(a - b) <= allowed for a, b in pairs)


def moved(new, old):
    "Lines that say what differs."
    lines = []
    for name in dict.fromkeys([*old, *new]):
        a, b = new.get(name), old.get(name)
        both = [*a, *b] if isinstance(a, list) and isinstance(b, list) else [""]
        numeric = all(isinstance(x, (float, type(None))) for x in both)
        if not (is_near(name, a, b) if numeric else a == b):
            lines.append(f"{name}: {b} became {a}")
    return lines


@lru_cache
def kept():
    return json.loads(KEPT.read_text(encoding="utf-8")) if KEPT.is_file() else {}


@pytest.mark.parametrize("name", CASES)
def test_a_ranking_says_what_it_said(name):
    lines = moved(result(name), kept()[name])
    assert not lines, "\n".join(lines)


def test_every_kept_case_is_made():
    assert list(kept()) == list(CASES)


def main():
    old, new = kept(), {name: result(name) for name in CASES}
    for name in CASES:
        for line in moved(new[name], old.get(name, {})):
            print(f"{name}: {line}")
    if "--write" in sys.argv:
        lines = [f"{json.dumps(k)}: {json.dumps(v, ensure_ascii=False)}" for k, v in new.items()]
        KEPT.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
