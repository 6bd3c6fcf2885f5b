"Score a representation on every task it could meet; each formula is proved in a notebook."

__version__ = "0.2.0"

_NAMES = {  # the front door: module -> what it offers to users
    "kernels": "kernel_factor kernel_matrix cholesky_factor product_factor",
    "probes": "ridge_probes logistic_probes",
    "prior.edges": "edge_probabilities sample_graphs",
    "prior.moments": "trace_moments trace_cumulants",
    "prior.sketch": "sketch_trace_moments",
    "prior.tails": "trace_covariance trace_quantile outperform_probability outperform_matrix",
    "prior.prefix": "sample_labels",
    "prior.diversity": "task_diversity",
    "prior.calibration": "calibrate_temperature temperature_scan critical_temperature",
    "prior.labelings": "sample_labelings enumerate_labelings",
    "prior.heldout": "expected_heldout_error precision_at_k",
    "prior.regression": "expected_regression_error",
    "prior.views": "view_features",
    "prior.judges": "cross_skill elect_prior copy_similarity",
    "prior.task_prior": "TaskPrior",
    "prior.objective": "TaskPriorLoss",
    "synbench.robust_bayes": "robust_bayes",
    "synbench.gaussians": "synthetic_task",
    "synbench.score": "synbench_score",
    "synbench.robust_probing": "robust_linear_probe",
    "transfer.agreement": "rank_agreement",
    "transfer.cards": "describe_metric",
    "transfer.metrics": "metrics",
    "transfer.registry": "METRICS transfer_scores metric_functions metric_convergence",
    "transfer.spectrum": "rankme lidar cka hsic",
    "inputs.images": "load_images",
    "inputs.embed": "embed",
    "rank.ranking": "Ranking",
    "rank.models": "rank_models plan_models",
    "rank.options": "Tasks Compute",
    "jobs.explore": "explore",
    "jobs.monitor": "Monitor",
    "jobs.layer_outputs": "layers_of",
    "inputs.texts": "load_texts embed_texts",
    "jobs.bridges": "from_mteb from_timm_results outside_agreement scorer",
    "jobs.label_sheet": "label_sheet",
    "jobs.label_loop": "label_loop",
    "papers.subsamples": "Checkpoint CheckpointTask",
    "papers.neucrab": "neucrab",
}
_FROM = {name: module for module, names in _NAMES.items() for name in names.split()}
__all__ = ["__version__", *_FROM]


def __getattr__(name):
    "The names that users need, imported from their modules when first asked for."
    if name not in _FROM:
        raise AttributeError(f"module 'taskpriors' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"taskpriors.{_FROM[name]}"), name)


def __dir__():
    return sorted(__all__)
