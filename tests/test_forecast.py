"""One forecast answers everything: no two answers contradict each other, whatever it rests on."""

import re
import warnings
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import torch

from taskpriors.papers.study_data import find_shared_data
from taskpriors.rank.forecast import ForecastEvidence, PointEvidence, ScoreEvidence
from taskpriors.rank.models import rank_models
from taskpriors.rank.options import SCORINGS, nested
from taskpriors.rank.ranking import _CONTRADICTED, Ranking
from taskpriors.report.words import SCORE_NAMES

QUIET = dict(n_tasks=20, n_classes=3, cache=False, progress=False, references=False)


def random_ranking(seed):
    "A ranking of two to eight models with random numbers and any evidence beside the points."
    g = torch.Generator().manual_seed(seed)

    def normal(*shape):
        return torch.randn(*shape, generator=g, dtype=torch.float64)

    def chance(share):
        return torch.rand((), generator=g).item() < share

    m, n = int(torch.randint(2, 9, (), generator=g)), 200
    spread = 10 ** (2 * torch.rand((), generator=g).item() - 1.5)
    mean, logits = spread * normal(m, 1), spread * normal(m, 30)
    moment = (logits - logits.mean(0)) @ (logits - logits.mean(0)).T / 30
    fields = dict(
        models=tuple(f"m{k}" for k in range(m)),
        dimension=torch.full((m,), 8),
        skill=torch.sigmoid(mean[:, 0]),
        seconds=torch.ones(m),
        extra={},
        failures={},
        settings=dict(n=n, n_tasks=30, n_classes=3, images="given", prior="a prior"),
        point_errors=0.5 + 0.3 * normal(m, n),
        task_errors=0.5 + 0.1 * normal(m, 30),
    )
    logit = torch.logit(fields["skill"])
    evidence = ForecastEvidence(examples=PointEvidence(logit - logit.mean(), moment, False))
    if chance(0.5):
        k = int(torch.randint(2, n, (), generator=g))
        root = normal(m, m) / (k / 4) ** 0.5
        centred = normal(m)
        labels = dict(
            n_labels=k, n_classes=2, classes_per_label=2 / k, n_pairs=k * k / 4, source="given"
        )
        fields["settings"] |= dict(labels=labels)
        direct = spread * (centred - centred.mean())
        scores = ScoreEvidence(direct, root @ root.T, k / 2, 2 / k)
        evidence = replace(evidence, labels=scores)
        fields |= dict(
            prior_skill=fields["skill"],
            skill=torch.sigmoid(spread * normal(m)),
            extra={"label accuracy": torch.sigmoid(1 + 0.3 * normal(m))},
        )
    if chance(0.5):
        past = torch.sigmoid(mean + spread * normal(m, int(torch.randint(1, 5, (), generator=g))))
        past[torch.rand(past.shape, generator=g) < 0.2] = float("nan")
        evidence = replace(evidence, past=past)
    return Ranking(**fields, evidence=evidence)


SAID = re.compile(
    r"(?:Take (?P<taken>\S+): best on your task with probability (?P<p>[\d.]+\d); "
    r"expected regret (?P<regret>[\d.]+\d) accuracy points\.|"
    r"Do not choose yet: (?P<toss>\S+) has the lowest expected regret, (?P<least>[\d.]+\d) "
    r"accuracy points, but it is best on your task only with probability (?P<q>[\d.]+\d)\.)"
    r"(?: (?:The alternative is|Alternatives are) (?P<rivals>m\d \(.+?(?:\)|others))\.)?"
)
RIVAL = re.compile(r"(m\d) \(([\d.]+)\)")


@pytest.mark.parametrize("start", range(0, 500, 100))
def test_all_answers_of_a_ranking_agree(start):
    for seed in range(start, start + 100):
        ranking = random_ranking(seed)
        forecast, said = ranking.forecast, SAID.match(ranking.verdict)
        frame, table = forecast.to_frame(), ranking.to_frame()
        probability, next_step = ranking.p_best(), ranking.next_step
        first, p_best = forecast.first, dict(zip(frame.model, frame.p_best, strict=True))
        assert table.model.tolist() == frame.model.tolist()
        columns = ["p_best", "expected_regret", "margin", "error", "tier"]
        pd.testing.assert_frame_equal(table[columns], frame[columns])
        assert probability.to_dict() == p_best and probability.index[0] == first
        assert frame.expected_regret.is_monotonic_increasing and ranking.best == first
        torch.testing.assert_close(frame.margin.max(), frame.margin[0], rtol=0, atol=1e-9)
        assert (said["taken"] or said["toss"]) == first
        assert bool(said["taken"]) == (p_best[first] >= 0.5)
        assert (said["p"] or said["q"]) == f"{p_best[first]:.2f}"
        assert (said["regret"] or said["least"]) == f"{frame.expected_regret[0]:.1f}"
        rivals = frame.model[frame.tier == 1].tolist()[1:]
        named = RIVAL.findall(said["rivals"] or "")
        shown = rivals if len(rivals) <= 4 else rivals[:3]
        assert named == [(name, f"{p_best[name]:.2f}") for name in shown]
        if shown != rivals:
            assert said["rivals"].endswith(f" and {len(rivals) - 3} others")
        assert ranking.decided == forecast.is_decided == (not rivals)
        assert ("report" in next_step) == ranking.decided
        for name, tier in zip(frame.model[1:], frame.tier[1:], strict=True):
            pair = ranking.compare(first, name)
            assert (tier == 2) == (pair.probability > 0.95)
            assert pair.low <= pair.margin <= pair.high
        path = ranking.regret_with_labels()
        assert path.expected_regret[0] == frame.expected_regret[0]
        assert path.expected_regret.is_monotonic_decreasing and path.expected_regret.min() >= 0
        known = ranking.settings.get("labels", {}).get("n_labels", 0)
        assert path.labels[0] == known and path.labels.iloc[-1] == ranking.settings["n"]
        if rivals and "more labels" in next_step and "stop" not in next_step:
            assert f"regret is {path.expected_regret[0]:.1f} accuracy" in next_step
            asked = int(re.search(r"label (\d+) examples", next_step)[1])
            brought = path.set_index("labels").expected_regret[known + asked]
            assert brought < path.expected_regret[0] - 0.1
        labels = ranking.settings.get("labels")
        if labels:
            without = replace(ranking, evidence=replace(ranking.evidence, labels=None), extra={})
            assert f"model would be {without.forecast.first}." in ranking.verdict or (
                without.forecast.first == first and "model is also" in ranking.verdict
            )


FIELDS = ("margin", "error", "p_best", "expected_regret", "draws")


def assert_same(a, b, **near):
    assert (a.models, a.evidence, a.scoring) == (b.models, b.evidence, b.scoring)
    assert a.level == pytest.approx(b.level, abs=near.get("atol", 0), nan_ok=True)
    for name in FIELDS:
        torch.testing.assert_close(getattr(a, name), getattr(b, name), equal_nan=True, **near)


@pytest.mark.parametrize("seed", range(20))
def test_a_saved_ranking_has_its_forecast(seed, tmp_path):
    ranking = random_ranking(seed)
    ranking.save(tmp_path / "out")
    again = Ranking.load(tmp_path / "out")
    assert_same(again.forecast, ranking.forecast, rtol=0, atol=0)
    assert (again.verdict, again.next_step) == (ranking.verdict, ranking.next_step)


@pytest.mark.parametrize("seed", range(20))
def test_the_order_of_models_is_no_evidence(seed):
    ranking = random_ranking(seed)
    m = len(ranking.models)
    order = torch.randperm(m, generator=torch.Generator().manual_seed(seed))
    rows = ("skill", "prior_skill", "point_errors", "task_errors")
    moved = {name: getattr(ranking, name) for name in rows}
    moved = {name: None if x is None else x[order] for name, x in moved.items()}

    def reordered(path, x):
        if path in ("examples.moment", "labels.covariance"):
            return x[order][:, order]
        return x[order] if x.dim() else x

    tensors = ranking.evidence.tensors()
    tensors = {path: reordered(path, x) for path, x in tensors.items()}
    moved["evidence"] = ForecastEvidence.from_tensors(tensors)
    models = tuple(ranking.models[k] for k in order.tolist())
    a, b = ranking.forecast, replace(ranking, models=models, **moved).forecast
    error = a.error[order] / len(a.draws) ** 0.5
    assert ((a.margin[order] - b.margin).abs() <= 6 * error).all()  # two means of as many draws
    p = a.p_best[order]
    apart = 6 * ((p * (1 - p) + 1e-3) / len(a.draws)) ** 0.5
    assert ((p - b.p_best).abs() <= apart).all()


@pytest.mark.parametrize("seed", range(20))
def test_labels_that_say_nothing_change_nothing(seed):
    ranking = random_ranking(seed)
    ranking = replace(ranking, evidence=replace(ranking.evidence, past=None), extra={})
    m = len(ranking.models)
    labels = dict(n_labels=30, n_classes=2, classes_per_label=1 / 15, n_pairs=210, source="given")
    mean = torch.linspace(-1, 1, m, dtype=torch.float64)
    scores = ScoreEvidence(mean, 1e12 * torch.eye(m, dtype=torch.float64), 210, 1 / 15)
    silent = replace(
        ranking,
        settings=ranking.settings | dict(labels=labels),
        evidence=replace(ranking.evidence, labels=scores),
        prior_skill=ranking._unlabelled_skill,
    )
    without = replace(silent, evidence=replace(ranking.evidence, labels=None))
    for name in FIELDS:
        a, b = getattr(silent.forecast, name), getattr(without.forecast, name)
        torch.testing.assert_close(a, b, rtol=0, atol=1e-3)
    assert silent.forecast.evidence == ("points", "labels")


def three_models(n=150):
    g = np.random.default_rng(0)
    seen = g.standard_normal((n, 8))
    noises = dict(a=0.3, b=1.0, c=2.0)
    models = {
        k: seen @ g.standard_normal((8, 10)) + s * g.standard_normal((n, 10))
        for k, s in noises.items()
    }
    return models, (seen[:, 0] > 0).astype(int)


@pytest.mark.parametrize("labelled", [False, True])
def test_from_disk_the_forecast_is_that_of_memory(labelled):
    models, classes = three_models()
    labels = np.where(np.arange(len(classes)) % 5 == 0, classes, -1) if labelled else None
    record = pd.DataFrame(dict(model=list("abc"), flowers=[0.8, 0.85, 0.7], pets=[0.9, 0.8, 0.7]))
    of_memory, of_disk = (
        rank_models(models, **nested(labels=labels, past_results=record, on_disk=on_disk, **QUIET))
        for on_disk in (False, True)
    )
    allowed = 5 * (of_memory.skill - of_disk.skill).abs().max() + 1e-6  # what the engines differ
    a, b = of_memory.forecast, of_disk.forecast
    assert a.evidence == b.evidence
    assert (a.p_best - b.p_best).abs().max() <= allowed + 4 * 0.5 / len(a.draws) ** 0.5
    assert a.order.tolist() == b.order.tolist() and a.tier.tolist() == b.tier.tolist()


def test_names_of_a_record_that_are_not_known_are_said():
    models, _ = three_models()
    record = pd.DataFrame(dict(model=["a", "b", "resnet"], pets=[0.9, 0.8, 0.7]))
    ranking = rank_models(models, **nested(past_results=record, **QUIET))
    assert "record" in ranking.forecast.evidence
    notes = " ".join(ranking.settings["notes"])
    assert "resnet" in notes and re.search(r"\bc\b", notes)


def test_earlier_tasks_that_contradict_the_points_hardly_count_and_it_is_said():
    models, _ = three_models()
    plain = rank_models(models, **nested(**QUIET))
    skill = plain.skill.clamp(0.1, 0.9)
    agreeing, opposed = ({"model": plain.models, "pets": x.tolist()} for x in (skill, 1 - skill))
    with_it = rank_models(models, **nested(past_results=pd.DataFrame(agreeing), **QUIET))
    against = rank_models(models, **nested(past_results=pd.DataFrame(opposed), **QUIET))
    assert _CONTRADICTED in against.verdict and _CONTRADICTED not in with_it.verdict
    moved = [
        (r.forecast.margin - plain.forecast.margin).abs().max().item() for r in (with_it, against)
    ]
    assert moved[1] < moved[0]


@pytest.mark.parametrize("scoring", SCORINGS[:-1])
def test_every_score_that_was_studied_has_its_probabilities(scoring):
    models, classes = three_models()
    plain = rank_models(models, **nested(labels=classes, **QUIET))
    ranking = rank_models(models, **nested(labels=classes, scoring=scoring, **QUIET))
    forecast = ranking.forecast
    assert forecast.p_best.isfinite().all() and forecast.scoring == scoring
    assert f"{SCORE_NAMES[scoring]} points" in ranking.verdict
    assert (scoring == "accuracy") == torch.equal(forecast.draws, plain.forecast.draws)


@pytest.mark.parametrize("kind", ["r2", "targets"])
def test_what_was_not_studied_has_no_probability(kind):
    models, classes = three_models()
    options = dict(scoring="r2") if kind == "r2" else {}
    labels = models["a"][:, :2] + 0.1
    ranking = rank_models(models, **nested(labels=labels, **options, **QUIET))
    forecast = ranking.forecast
    assert forecast.p_best.isnan().all() and forecast.expected_regret.isnan().all()
    assert ranking.verdict.startswith(f"Take {forecast.first}: it has the largest margin.")
    assert "probability is given" in ranking.verdict and "nan" not in str(ranking)
    assert not ranking.decided and "p_best" not in ranking.to_frame()
    assert ranking.compare("a", "b").margin == (forecast.margin[0] - forecast.margin[1]).item()
    with pytest.raises(ValueError, match="must have a forecast with probabilities"):
        ranking.regret_with_labels()


@pytest.mark.filterwarnings("ignore")
def test_one_model_is_best_and_there_is_no_choice():
    ranking = rank_models(dict(a=three_models()[0]["a"]), **nested(**QUIET))
    assert ranking.forecast.p_best.tolist() == [1] and ranking.decided
    assert "nothing to choose from" in ranking.verdict and "nan" not in str(ranking)


def test_near_copies_share_the_first_place_and_take_no_chance_away():
    models, _ = three_models()
    alone = rank_models(models, **nested(**QUIET)).forecast
    near = models["a"] + 1e-3 * np.random.default_rng(1).standard_normal(models["a"].shape)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        ranking = rank_models(models | dict(near=near), **nested(**QUIET))
    forecast = ranking.forecast
    assert alone.first in ("a", "near") and forecast.first in ("a", "near")
    assert forecast.tier[[0, 3]].tolist() == [1, 1] and not ranking.decided
    assert "near" in ranking.verdict and f"Take {forecast.first}:" in ranking.verdict
    assert (forecast.p_best[0] - forecast.p_best[3]).abs() < 0.1


@pytest.mark.filterwarnings("ignore")
@pytest.mark.skipif(find_shared_data() is None, reason="needs TASKPRIORS_DATA")
def test_the_regret_with_labels_is_predicted_on_real_sets():
    "The mean over sets, of rankings of the four best networks, without labels and with fifty."
    home, found = find_shared_data(), []
    for name in ("features/flowers5_128", "features_world/animal8_spectrograms"):
        file = home / f"{name}.npz"
        if not file.is_file():
            pytest.skip(f"needs {name}")
        truth = pd.read_csv(file.with_name("linear_probe_reference.csv"))
        truth = truth[truth.dataset == file.stem].set_index("net").test_accuracy
        with np.load(file, allow_pickle=False) as arrays:
            best = truth[truth.index.isin(arrays.files)].sort_values()[-4:]
            features = {net: arrays[net][:200].astype("float32") for net in best.index}
            classes = arrays["labels"][:200].astype(int)
        known = np.full(200, -1)
        rows = np.random.default_rng(0).choice(200, 50, replace=False)
        known[rows] = classes[rows]
        without, with_fifty = (
            rank_models(features, **nested(labels=y, **QUIET)) for y in (None, known)
        )
        path = without.regret_with_labels().set_index("labels").expected_regret
        assert path[100] < path[50] < path[20] < path[0]
        came = 100 * (best.max() - best[with_fifty.best])
        found.append((path[50], came, with_fifty.regret_with_labels().expected_regret[0]))
    predicted, came, later = np.mean(found, 0)
    assert abs(predicted - came) < 3 and abs(predicted - later) < 2
