"The names that users' code imports, where it imports them from. Removing one is a breaking change."

import importlib
import inspect
import operator
import subprocess
import sys

import pytest

import taskpriors

CONTRACT = {
    "kernels": "center kernel_factor kernel_matrix cholesky_factor product_factor",
    "probes": "ridge_probes logistic_probes ProbeResult",
    "prior.loss_equivalence": "optimal_probe probe_loss optimal_probe_loss label_graph "
    "relative_objective",
    "prior.edges": "edge_probabilities log_partition graph_log_prob sample_graphs",
    "prior.moments": "trace_moments trace_cumulants trace_covariance outperform_probability "
    "trace_quantile TraceMoments",
    "prior.sketch": "sketch_trace_moments",
    "prior.views": "view_labels view_graph view_factor view_features",
    "prior.prefix": "sample_labels task_diversity",
    "prior.labelings": "sample_labelings enumerate_labelings calibrate_temperature Labelings",
    "prior.heldout": "expected_heldout_error HeldoutError precision_at_k",
    "prior.judges": "cross_skill elect_prior copy_similarity Judges",
    "prior.task_prior": "TaskPrior",
    "prior.posterior": "label_evidence posterior_weights posterior_tasks labelled_skill small_area",
    "prior.objective": "TaskPriorLoss",
    "synbench.robust_bayes": "robust_bayes RobustBayes",
    "synbench.gaussians": "synthetic_task",
    "synbench.score": "synbench_score SynBenchResult",
    "synbench.robust_probing": "robust_linear_probe pgd_attack choose_eps",
    "transfer.pactran": "pactran_dirichlet pactran_gamma pactran_gaussian",
    "transfer.leep": "leep nleep nce",
    "transfer.evidence": "logme",
    "transfer.discriminants": "h_score regularized_h_score sfda linear linear_valid",
    "transfer.code_length": "validation_loss mdl sdl eps_sample_complexity",
    "transfer.spectrum": "rankme lidar cka hsic",
    "transfer.agreement": "rank_agreement Agreement",
    "inputs.images": "load_images",
    "inputs.zoo": "zoo_names",
    "inputs.embed": "embed",
    "rank.ranking": "Ranking",
    "rank.models": "rank_models",
    "jobs.cli": "main",
    "jobs.monitor": "Monitor Step",
    "jobs.layers": "rank_layers",
    "inputs.texts": "load_texts embed_texts",
    "jobs.bridges": "from_mteb from_timm_results outside_agreement scorer",
    "rank.files": "rank_on_disk",
    "jobs.label_sheet": "label_sheet",
    "papers.neucrab": "neucrab",
    "papers.subsamples": "Checkpoint CheckpointTask",
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
    "prior.moments.trace_quantile": "M prior temperature p",
    "prior.sketch.sketch_trace_moments": "M prior temperature rel_tol seed",
    "prior.prefix.sample_labels": "Z temperature n_classes n_tasks shuffle given convention seed",
    "prior.labelings.sample_labelings": "Z temperature n_classes n_tasks method seed",
    "prior.labelings.enumerate_labelings": "Z temperature n_classes",
    "prior.labelings.calibrate_temperature": "Z n_classes diversity",
    "prior.heldout.expected_heldout_error": "features prior temperature alpha",
    "prior.judges.cross_skill": "features factors measure",
    "prior.judges.elect_prior": "cross similarity groups controls power",
    "synbench.robust_bayes.robust_bayes": "mu Sigma eps p tau",
    "synbench.score.synbench_score": "model settings seed",
    "transfer.agreement.rank_agreement": "scores truth method",
    "inputs.embed.embed": "model images",
    "rank.models.rank_models": "models images prior metrics texts",
    "jobs.bridges.scorer": "statistic prior",
    "inputs.texts.load_texts": "source text_column label_column",
    "inputs.texts.embed_texts": "model texts pooling",
}
METHODS = (
    "from_features from_kernel from_labels from_views moments cumulants heldout_error outperforms "
    "sample edge_probabilities precision_at_k __mul__"
)


@pytest.mark.parametrize(
    "module, name", [(m, n) for m, names in CONTRACT.items() for n in names.split()]
)
def test_name_is_where_it_was_promised(module, name):
    getattr(importlib.import_module(f"taskpriors.{module}"), name)


@pytest.mark.parametrize("path", KEYWORDS)
def test_parameters_keep_their_names(path):
    module, name = path.rsplit(".", 1)
    f = getattr(importlib.import_module(f"taskpriors.{module}"), name)
    missing = set(KEYWORDS[path].split()) - set(inspect.signature(f).parameters)
    assert not missing, missing


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
    for name in ("rankme", "lidar", "cka"):
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


@pytest.mark.parametrize(
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
