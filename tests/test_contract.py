"""The names that users' code imports, where it imports them from.

Removing one is a breaking change. `__all__` of the modules holds these names and no others. The
rest of the library stands in cells `#| exporti`: it can be imported by its path, and its chapter
documents it, but it may change.
"""

import ast
import importlib
import inspect
import json
import operator
import pkgutil
import re
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest
from for_each import for_each

import taskpriors

CONTRACT = {
    "kernels": "center kernel_factor kernel_matrix cholesky_factor product_factor",
    "probes": "ridge_probes logistic_probes ProbeResult label_accuracy",
    "results": "new_panels",
    "prior.loss_equivalence": "optimal_probe probe_loss optimal_probe_loss label_graph "
    "relative_objective",
    "prior.edges": "edge_probabilities log_partition graph_log_prob sample_graphs",
    "prior.moments": "trace_moments trace_cumulants trace_covariance outperform_probability "
    "TraceMoments",
    "prior.sketch": "sketch_trace_moments SketchedMoments",
    "prior.prefix": "sample_labels task_diversity TaskDiversity",
    "prior.labelings": "sample_labelings enumerate_labelings Labelings",
    "prior.heldout": "expected_heldout_error HeldoutError precision_at_k",
    "prior.consensus": "cross_skill consensus_prior copy_similarity Consensus",
    "prior.task_prior": "TaskPrior ModelScores",
    "prior.posterior": "label_evidence posterior_weights labelled_skill "
    "LabelEvidence LabelledSkill",
    "prior.objective": "TaskPriorLoss",
    "prior.calibration": "Calibration Regime calibrate_temperature critical_temperature",
    "prior.estimates": "Estimate LabelTraceMoments",
    "prior.regression": "expected_regression_error",
    "synbench.robust_bayes": "robust_bayes RobustBayes",
    "synbench.gaussians": "synthetic_task SyntheticTask",
    "synbench.score": "synbench_score SynBenchResult",
    "synbench.curves": "SynBenchSettings",
    "transfer.pactran": "pactran_dirichlet pactran_gamma pactran_gaussian npactran_dirichlet "
    "npactran_gamma",
    "transfer.leep": "leep nleep nce",
    "transfer.evidence": "logme",
    "transfer.discriminants": "h_score regularized_h_score sfda linear linear_valid gbc ped "
    "transrate",
    "transfer.code_length": "validation_loss mdl sdl eps_sample_complexity LossCurve",
    "transfer.spectrum": "rankme lidar cka hsic alpha_gap nesum random_number width",
    "transfer.agreement": "rank_agreement Agreement",
    "transfer.metrics": "metrics",
    "transfer.neighbours": "alignment cluster_learnability knn_accuracy twonn uniformity",
    "transfer.registry": "Card METRICS Metric TransferScores describe_metric "
    "metric_functions transfer_scores",
    "transfer.separation": "centroid_accuracy concept_variation energy_score "
    "lda_accuracy lda_score ncti_ncc ncti_seli ncti_vc parc",
    "inputs.images": "load_images",
    "inputs.zoo": "zoo_names",
    "inputs.embed": "embed Features",
    "inputs.texts": "load_texts embed_texts prefixed TextSource",
    "inputs.row_pairs": "Retrieval",
    "inputs.image_source": "ImageSource",
    "report.table": "COLUMNS Column",
    "rank.forecast": "Comparison Forecast",
    "rank.ranking": "Ranking",
    "rank.models": "rank_models plan_models",
    "rank.options": "Tasks Compute",
    "tools.cli": "main",
    "tools.monitor": "Monitor Step",
    "tools.layers": "layers_of layers_prior plot_layers",
    "tools.label_loop": "label_loop label_sheet",
    "tools.explore": "TaskExplorer draw_task explore",
    "papers.neucrab": "neucrab NeuCRaB NeuCRaBPlan",
    "papers.robust_probing": "robust_linear_probe pgd_attack choose_eps Attack RobustProbe",
    "papers.subsamples": "Checkpoint CheckpointTask",
    "papers.fine_tuning": "TuningRecipe",
}
KEYWORDS = {
    "kernels.kernel_factor": "features kind center scale",
    "kernels.cholesky_factor": "K rank tol",
    "probes.ridge_probes": "features labels alpha train",
    "probes.logistic_probes": "features labels C train standardize",
    "prior.edges.edge_probabilities": "Z temperature graphs",
    "prior.edges.sample_graphs": "Z temperature n_graphs graphs seed",
    "prior.edges.graph_log_prob": "G Z temperature graphs",
    "prior.moments.trace_moments": "M prior temperature graphs block_size executor",
    "prior.moments.trace_cumulants": "M prior temperature order",
    "prior.moments.trace_covariance": "models prior temperature",
    "prior.moments.outperform_probability": "A B prior temperature",
    "prior.sketch.sketch_trace_moments": "M prior temperature rel_tol seed",
    "prior.prefix.sample_labels": "Z temperature n_classes n_tasks shuffle given convention seed",
    "prior.labelings.sample_labelings": "Z temperature n_classes n_tasks method seed",
    "prior.labelings.enumerate_labelings": "Z temperature n_classes",
    "prior.calibration.calibrate_temperature": "Z n_classes diversity",
    "prior.heldout.expected_heldout_error": "features prior temperature alpha",
    "prior.consensus.cross_skill": "features factors measure",
    "prior.consensus.consensus_prior": "cross similarity groups controls power",
    "synbench.robust_bayes.robust_bayes": "mu Sigma eps p tau",
    "synbench.score.synbench_score": "model settings seed",
    "transfer.agreement.rank_agreement": "scores truth method",
    "inputs.embed.embed": "model images",
    "rank.models.rank_models": "models images metrics texts past_results scoring tasks compute",
    "inputs.texts.load_texts": "source text_column label_column",
    "inputs.texts.embed_texts": "model texts pooling",
}
METHODS = (
    "from_features from_kernel from_labels from_views moments cumulants heldout_error outperforms "
    "sample edge_probabilities precision_at_k __mul__"
)
MOST = 300  # names that a library of this size can keep where they are
ROOT = Path(__file__).resolve().parent.parent


def modules():
    "Every module with its name below `taskpriors`."
    for info in pkgutil.walk_packages(taskpriors.__path__, "taskpriors."):
        if not info.ispkg and not info.name.endswith("._modidx"):
            yield info.name.removeprefix("taskpriors."), importlib.import_module(info.name)


def home_of(module, name):
    "Where a promised name is defined, because the module of the contract may pass it on."
    thing = getattr(importlib.import_module(f"taskpriors.{module}"), name)
    has_home = inspect.isfunction(thing) or inspect.isclass(thing)
    return (thing.__module__.removeprefix("taskpriors.") if has_home else module), name


@cache
def promised():
    "Module and name of everything that users were promised, where it is defined."
    return {home_of(m, name) for m, names in CONTRACT.items() for name in names.split()}


def promised_functions():
    "Module, name and function of every promised function."
    for module, name in sorted(promised()):
        thing = getattr(importlib.import_module(f"taskpriors.{module}"), name)
        if inspect.isfunction(thing):
            yield module, name, thing


@for_each("module, name", [(m, n) for m, names in CONTRACT.items() for n in names.split()])
def test_name_is_where_it_was_promised(module, name):
    getattr(importlib.import_module(f"taskpriors.{module}"), name)


@pytest.mark.parametrize("name", ["is_feature_file", "split_key"])
def test_scripts_find_readers_of_feature_files_where_they_were(name):
    from taskpriors.inputs import feature_files, sources

    assert getattr(feature_files, name) is getattr(sources, name)


def test_all_is_the_contract():
    "A cell `#| export` is a promise; what users were not promised stands in a cell `#| exporti`."
    offered = {(module, name) for module, m in modules() for name in m.__all__}
    assert offered - promised() == set(), "neither promised nor in a cell `#| exporti`"
    assert promised() - offered == set(), "promised, but not in a cell `#| export`"
    assert len(offered) <= MOST


def code_for_users():
    "Code of the front page, of the pages that begin with `start`, and of the README."
    for path in [ROOT / "nbs" / "index.ipynb", *sorted((ROOT / "nbs" / "start").glob("*.ipynb"))]:
        for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
            source = "".join(cell["source"])
            if cell["cell_type"] == "code":
                yield re.sub(r"^(\s*)[%!].*$", r"\1pass", source, flags=re.M)
            else:
                yield from re.findall(r"(?s)```python\n(.*?)```", source)
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    yield from re.findall(r"(?s)```python\n(.*?)```", readme)


def imported_by_users():
    "Module and name of what the documentation imports from a module of the library."
    for code in code_for_users():
        for node in ast.walk(ast.parse(code)):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("taskpriors."):
                yield from ((node.module.removeprefix("taskpriors."), a.name) for a in node.names)


def test_what_users_meet_is_in_the_contract():
    "By the front door, as a metric, or by an import that the documentation shows."
    front_door = {(module, name) for name, module in taskpriors._FROM.items()}
    functions = [metric.function for metric in taskpriors.METRICS.values()]
    metrics = {(f.__module__.removeprefix("taskpriors."), f.__name__) for f in functions}
    shown = set(imported_by_users())
    assert len(shown) > 2
    assert {home_of(*path) for path in front_door | metrics | shown} <= promised()


@for_each("path", [*KEYWORDS])
def test_parameters_keep_their_names(path):
    module, name = path.rsplit(".", 1)
    f = getattr(importlib.import_module(f"taskpriors.{module}"), name)
    missing = set(KEYWORDS[path].split()) - set(inspect.signature(f).parameters)
    assert not missing, missing


def test_a_ranking_answers_by_its_forecast():
    from taskpriors.rank.forecast import Comparison, Forecast
    from taskpriors.rank.ranking import Ranking

    answers = "forecast verdict compare p_best decided regret_with_labels"
    answers += " next_labels to_record to_frame"
    assert not [name for name in answers.split() if not hasattr(Ranking, name)]
    fields = "models margin error p_best expected_regret level evidence scoring reason"
    assert set(fields.split()) <= set(Forecast.__dataclass_fields__)
    members = "order first tier is_decided compare to_frame plot"
    assert not [name for name in members.split() if not hasattr(Forecast, name)]
    assert Comparison._fields == ("a", "b", "margin", "low", "high", "probability")


def test_task_prior_has_its_methods():
    from taskpriors.prior.task_prior import TaskPrior

    assert not [m for m in METHODS.split() if not hasattr(TaskPrior, m)]


def test_the_front_door_opens_every_name():
    assert not [name for name in taskpriors.__all__ if getattr(taskpriors, name, None) is None]
    assert {"leep", "logme", "h_score", "pactran_gaussian"} <= set(taskpriors.METRICS)
    with pytest.raises(AttributeError, match="no attribute 'magic'"):
        _ = taskpriors.magic


def test_every_metric_has_its_name_at_the_front_door():
    metrics = taskpriors.metrics
    assert dir(metrics) == sorted(taskpriors.METRICS)
    for name, metric in taskpriors.METRICS.items():
        assert getattr(metrics, name) is metric.function, name
    for name in ("rankme", "cka"):
        assert getattr(metrics, name) is getattr(taskpriors, name)
    with pytest.raises(AttributeError, match="'logmee'; did you mean logme"):
        _ = metrics.logmee


def test_metrics_are_listed_without_torch():
    code = (
        "import sys, taskpriors as tp; assert 'logme' in dir(tp.metrics); "
        "assert 'source_probs, labels' in repr(tp.metrics); assert 'torch' not in sys.modules; "
        "tp.metrics.logme; assert 'torch' in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_the_synbench_score_takes_its_settings_by_name():
    from dataclasses import fields

    from taskpriors.synbench.score import SynBenchSettings

    assert {"eps", "eps_scale", "threshold", "scales", "n_train", "n_test"} <= {
        f.name for f in fields(SynBenchSettings)
    }


NO_CALLS = {"__version__", "METRICS", "metrics"}


@for_each(
    "name",
    [
        *sorted(set(taskpriors.__all__) - NO_CALLS),
        *(f"metrics.{k}" for k in dir(taskpriors.metrics)),
    ],
)
def test_help_shows_the_parameters(name):
    "`help()` and Shift-Tab show the docstring, so it holds every parameter with its comment."
    thing = operator.attrgetter(name)(taskpriors)
    doc = inspect.getdoc(thing)
    if inspect.isclass(thing):
        assert "\nAttributes\n-----" in doc or "\nParameters\n-----" in doc
        return
    assert "\nParameters\n-----" in doc
    for parameter in inspect.signature(thing).parameters.values():
        stars = {parameter.VAR_POSITIONAL: "*", parameter.VAR_KEYWORD: "**"}
        entry = stars.get(parameter.kind, "") + parameter.name
        assert any(line.split(" : ")[0] == entry for line in doc.splitlines()), entry
