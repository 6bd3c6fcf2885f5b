"Score a representation on every task it could meet, and prove each formula in the notebook that exports it."
__version__ = "0.1.0"

_FROM = {
    "TaskPrior": "prior.task_prior", "trace_moments": "prior.moments", "sample_labels": "prior.prefix", "sample_labelings": "prior.labelings",
    "expected_heldout_error": "prior.heldout", "precision_at_k": "prior.heldout", "kernel_factor": "kernels", "ridge_probes": "probes", "logistic_probes": "probes",
    "robust_bayes": "synbench.robust_bayes", "synbench_score": "synbench.score", "METRICS": "transfer.registry", "rank_agreement": "transfer.agreement",
    "load_images": "rank.images", "embed": "rank.embed", "rank_models": "rank.ranking", "explore": "rank.explore",
}
__all__ = ["__version__", *_FROM]


def __getattr__(name):
    "The names most users need, imported from their modules when first asked for."
    if name not in _FROM: raise AttributeError(f"module 'taskpriors' has no attribute {name!r}")
    from importlib import import_module
    return getattr(import_module(f"taskpriors.{_FROM[name]}"), name)


def __dir__(): return sorted(__all__)
