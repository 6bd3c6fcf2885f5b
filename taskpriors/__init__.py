"Rank representation models on your own data; each formula is proved in a notebook."

__version__ = "0.2.0"

_NAMES = {  # the front door: module -> what it offers to users
    "kernels": "kernel_factor product_factor",
    "prior.moments": "trace_moments",
    "prior.tails": "outperform_probability",
    "prior.prefix": "sample_labels",
    "prior.calibration": "calibrate_temperature critical_temperature",
    "prior.labelings": "sample_labelings",
    "prior.heldout": "expected_heldout_error",
    "prior.consensus": "cross_skill consensus_prior",
    "prior.task_prior": "TaskPrior",
    "prior.objective": "TaskPriorLoss",
    "synbench.robust_bayes": "robust_bayes",
    "synbench.score": "synbench_score",
    "transfer.agreement": "rank_agreement",
    "transfer.metrics": "metrics",
    "transfer.registry": "METRICS describe_metric transfer_scores metric_functions",
    "transfer.spectrum": "rankme cka",
    "inputs.images": "load_images",
    "inputs.embed": "embed",
    "rank.ranking": "Ranking",
    "rank.models": "rank_models plan_models",
    "rank.options": "Tasks Compute",
    "tools.explore": "explore",
    "tools.monitor": "Monitor",
    "tools.layers": "layers_of",
    "inputs.texts": "load_texts embed_texts prefixed",
    "inputs.row_pairs": "Retrieval",
    "tools.label_loop": "label_loop label_sheet",
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
