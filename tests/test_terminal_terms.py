"""The default output of `taskpriors rank` explains each of its terms and uses none of our own."""

import re

import numpy as np
import pandas as pd
import pytest

from taskpriors.report.table import COLUMNS
from taskpriors.tools.cli import main

TERMS = {  # term that the default output may use -> words by which the same output explains it
    r"best on your task with probability": "probability that no other model is",
    r"P\(best\)": "probability that no other model is",
    r"regret": "the mean number of accuracy points by which the best model is better",
    r"margin": "above the mean of the models on your task",
    r"accuracy points": r"accuracy points \(hundredths\)",
    r"tier": "plausible winner",
    r"[Ss]kill": r"1 - \(error / error of a constant prediction\), of a ridge probe",
    r"[Tt]asks of": r"sampled tasks \(labelings of the examples\)",
    r"consensus": "predict each other's tasks have larger weights",
    r"product of all models": "mean of the models' kernels",
    r"[Rr]eference models?": "help to define the tasks and are not ranked",
    r"[Bb]aselines?|raw pixels|untrained network": r"untrained features, not ranked",
    r"label accuracy": "held-out accuracy of a ridge probe on your labels",
    r"no labels": "without labels",
    r"random ": "of random orders",
}
PRIVATE = re.compile(
    r"\b(jur(y|ies|ors?)|judg\w*|elect(s|ed|ions?)?|(un)?seat(s|ed)?|compan(y|ies)|laws?"
    r"|foret(ell|old)\w*|told apart|tell apart|settle[sd]?|records?|first place|los(t|es?)"
    r"|nobody|somebody|stands?|stood|of (its|their) own|speaks?|silen(t|ce)|vot(es?|ed|ing|ers?)"
    r"|foretold|points? to label)\b|(?<![\d.\w])\.\d",
    re.I,
)
COMMON = ("--n-tasks", "20", "--quiet")


@pytest.fixture(scope="module")
def shelf(tmp_path_factory):
    "Features of four models, images, labels, past results and pairs of 120 examples."
    home, g = tmp_path_factory.mktemp("terms"), np.random.default_rng(0)
    y = np.arange(120) % 4
    centres = g.normal(size=(4, 12))
    for k, noise in enumerate((0.5, 1.0, 2.0, 4.0)):
        np.save(home / f"m{k}.npy", centres[y] + noise * g.normal(size=(120, 12)))
    pixels = (g.random((120, 16, 16)) * 80).astype("uint8")
    pixels[np.arange(120), 3 * y] += 150
    np.save(home / "images.npy", pixels)
    rows = np.arange(0, 120, 3)
    pd.DataFrame(dict(row=rows, label=[f"c{k}" for k in y[rows]])).to_csv(
        home / "labels.csv", index=False
    )
    past = {f"task{t}": np.clip(0.9 - 0.1 * np.arange(4) + 0.02 * t, 0, 1) for t in range(3)}
    frame = pd.DataFrame(past, index=[f"m{k}" for k in range(4)]).rename_axis("model")
    frame.to_csv(home / "past.csv")
    i, j = g.permutation(120)[:80].reshape(2, 40)
    pd.DataFrame(dict(i=i, j=j, same=np.where(y[i] == y[j], "same", "different"))).to_csv(
        home / "pairs.csv", index=False
    )
    return home


CALLS = {
    "features": ("m0.npy", "m1.npy", "m2.npy", "m3.npy"),
    "two models": ("m0.npy", "m1.npy"),
    "labels": ("m0.npy", "m1.npy", "m2.npy", "m3.npy", "--labels", "labels.csv"),
    "references": ("m0.npy", "m1.npy", "m2.npy", "--references", "m3.npy"),
    "past results": ("m0.npy", "m1.npy", "m2.npy", "m3.npy", "--past-results", "past.csv"),
    "pairs": ("m0.npy", "m1.npy", "m2.npy", "--pairs", "pairs.csv", "--scoring", "retrieval"),
    "images": ("zoo/pixels", "zoo/gradients", "m0.npy", "--images", "images.npy"),
}


@pytest.mark.parametrize("words", CALLS.values(), ids=CALLS)
def test_the_output_explains_its_terms(words, shelf, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(shelf)
    monkeypatch.setenv("TASKPRIORS_REFERENCES", "none")
    monkeypatch.setenv("TASKPRIORS_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("COLUMNS", "100")
    assert main(["rank", *words, *COMMON, "--out", str(tmp_path / "out")]) == 0
    said = capsys.readouterr().out.partition("\nWritten to")[0]
    flat = " ".join(said.split())
    unexplained = [t for t, why in TERMS.items() if re.search(t, flat) and not re.search(why, flat)]
    assert not unexplained, said
    header = next(line for line in said.splitlines() if line.startswith("model "))
    headings = {column.heading for column in COLUMNS.values()} - {"model"}
    for heading in re.split(r"\s{2,}", header.strip())[1:]:
        assert heading in headings and f"{heading}: " in flat, heading
    assert not (found := PRIVATE.search(flat)), found
