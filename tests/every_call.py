"""One small valid call of every function for users that tests/test_refusals.py does not list.

`CALLS` maps a module to name -> arguments; a method stands as "Class.method" with its object as
`self`; a function that users were not promised may have a call as well. `ABSENT` says of each
remaining function of the contract, or of its whole module, why it has no call of its own.
`test_every_promised_function_is_called_or_excused` holds both lists.
"""

import matplotlib
import numpy as np
import torch
from matplotlib.figure import Figure
from test_refusals import IMAGES, X2, N, X, Y, Z, y

from taskpriors.papers.hyperparameters import gaussian_grid
from taskpriors.prior.objective import TaskPriorLoss
from taskpriors.prior.posterior import label_evidence
from taskpriors.prior.task_prior import TaskPrior
from taskpriors.rank.models import rank_models
from taskpriors.rank.options import nested
from taskpriors.svd import feature_svd
from taskpriors.synbench.gaussians import synthetic_task
from taskpriors.synbench.score import SynBenchSettings, synbench_score
from taskpriors.tools.explore import TaskExplorer
from taskpriors.transfer.code_length import loss_curve
from taskpriors.transfer.heads import fit_head

matplotlib.use("agg")

PRIOR = TaskPrior(Z, 1.0)
HOT = TaskPrior(Z, 4.0)
MODELS = {"a": X, "b": X2}
SETTINGS = SynBenchSettings(
    eps=(0.0, 0.2), threshold=(0.6, 0.7), scales=(1.0, 2.0), n_train=64, n_test=64
)
NETWORK = torch.nn.Flatten()
SCORE = dict(model=NETWORK, settings=SETTINGS, input_size=(1, 2, 2), progress=False)
RESULT = synbench_score(**SCORE, cache=None)
TASK = synthetic_task(1.0, (1, 2, 2))
CURVE = loss_curve(X, y)
HEAD = fit_head(X, y, beta=1.0)
SVD = feature_svd(X)
GRIDS = [gaussian_grid(M, y) for M in (X, X2, X + X2)]
FEW_TASKS = dict(n_tasks=6, n_classes=2, cache=False, progress=False)
RANKING = rank_models(MODELS, None, **nested(metrics="all", **FEW_TASKS))
EXPLORER = TaskExplorer(X)
VIEWS = torch.stack([X, X + 0.1 * X2], 1)
MAP = X[:, :2]
ERRORS = X[:, :2].T.contiguous()
SOME = torch.where(torch.arange(N) % 3 > 0, y, -1)
EVIDENCE = label_evidence([Z, X], SOME)
PICTURES = (255 * IMAGES[:, 0]).to(torch.uint8)


def pixels(picture):
    return torch.from_numpy(np.array(picture, dtype="float32"))


TEXTS = [f"{'abc'[k % 3]} text" for k in range(N)]
VECTORS = dict(a=[1.0, 0.0], b=[0.0, 1.0], c=[1.0, 1.0])
EMBED = dict(model=NETWORK, images=PICTURES, transform=pixels, name="flat", progress=False)


CALLS = {
    "prior.task_prior": {
        "TaskPrior": dict(factor=Z, temperature=1.0),
        "TaskPrior.from_features": dict(features=X, temperature=1.0),
        "TaskPrior.from_kernel": dict(K=X @ X.T, temperature=1.0),
        "TaskPrior.from_labels": dict(labels=Y, temperature=1.0),
        "TaskPrior.from_views": dict(n_samples=3, n_views=2, temperature=1.0),
        "TaskPrior.at": dict(self=PRIOR, temperature=2.0),
        "TaskPrior.at_ratio": dict(self=PRIOR, ratio=2.0),
        "TaskPrior.calibrated": dict(self=PRIOR, n_tasks=64, seed=0),
        "TaskPrior.regime": dict(self=PRIOR),
        "TaskPrior.edge_probabilities": dict(self=PRIOR),
        "TaskPrior.moments": dict(self=PRIOR, models=MODELS),
        "TaskPrior.cumulants": dict(self=PRIOR, models=X),
        "TaskPrior.outperforms": dict(self=PRIOR, A=X, B=X2),
        "TaskPrior.heldout_error": dict(self=PRIOR, features=X),
        "TaskPrior.precision_at_k": dict(self=PRIOR, features=X, k=3),
        "TaskPrior.compare": dict(self=PRIOR, models=MODELS, k=3),
        "TaskPrior.labelings": dict(self=HOT, n_classes=2, n_tasks=64, seed=0),
        "TaskPrior.sample": dict(self=HOT, n_classes=2, n_tasks=2, n_particles=64, seed=0),
    },
    "prior.objective": {
        "TaskPriorLoss": dict(prior=Z, temperature=1.0),
        "TaskPriorLoss.statistics": dict(self=TaskPriorLoss(Z, 1.0), features=X),
        "TaskPriorLoss.forward": dict(self=TaskPriorLoss(Z, 1.0), features=X),
    },
    "synbench.gaussians": {
        "synthetic_task": dict(scale=1.0, shape=(1, 2, 2)),
        "SyntheticTask.sample": dict(self=TASK, n=8, seed=0),
        "heptadiagonal": dict(shape=(1, 2, 2)),
    },
    "synbench.score": {
        "synbench_score": SCORE,
        "score_by_n": dict(SCORE, sizes=(32, 64)),
    },
    "papers.robust_probing": {
        "choose_eps": dict(result=RESULT),
    },
    "transfer.agreement": {
        "partial_agreement": dict(scores=X[:, 0], truth=X[:, 1], covariate=X[:, 2]),
    },
    "papers.comparisons": {
        "agreement_statistic": dict(scores=X[:, 0], truth=X[:, 1]),
        "compare_agreement": dict(first=X[:, 0], second=X[:, 1], truth=X[:, 2], n_resamples=100),
        "static_order": dict(truths=X.T),
    },
    "papers.hyperparameters": {
        "spread_ratios": dict(grids=GRIDS),
        "choose_grid": dict(grids=GRIDS),
        "plot_choices": dict(grids=GRIDS, error=[0.1, 0.2, 0.3]),
    },
    "transfer.code_length": {"LossCurve.code_length": dict(self=CURVE)},
    "transfer.spectrum": {
        "effective_rank": dict(weights=[1.0, 2.0]),
        "lidar": dict(views=VIEWS),
        "check_views": dict(views=VIEWS),
    },
    "transfer.neighbours": {"alignment": dict(views=VIEWS)},
    "transfer.registry": {
        "describe_metric": dict(metric="logme"),
        "read_record": {},
    },
    "inputs.embed": {
        "load_encoder": dict(model=NETWORK, transform=pixels, name="flat"),
        "embed_features": EMBED,
        "embed": EMBED,
    },
    "tools.explore": {
        "draw_task": dict(xy=MAP, labels=y, ax=Figure().add_subplot()),
        "TaskExplorer": dict(features=X),
        "TaskExplorer.labels": dict(self=EXPLORER, seed=0),
        "explore": dict(features=X),
    },
    "papers.figures": {
        "tsne_map": dict(features=X),
        "plot_tasks": dict(features=X, xy=MAP),
        "plot_moments": dict(ranking=RANKING),
        "plot_predictions": dict(ranking=RANKING),
        "plot_distributions": dict(ranking=RANKING),
        "plot_family": dict(ranking=RANKING),
        "prior_ablation": dict(features=MODELS),
        "plot_priors": dict(features=MODELS),
    },
    "inputs.images": {"load_images": dict(source=PICTURES)},
    "prior.consensus": {
        "copy_similarity": dict(factors=[Z, X]),
        "mutual_skill": dict(cross=torch.ones(3, 3)),
    },
    "prior.posterior": {
        "label_evidence": dict(factors=[Z, X], labels=SOME),
        "posterior_weights": dict(weights=[0.4, 0.6], evidence=EVIDENCE),
        "labelled_skill": dict(features=[X, X2], labels=SOME),
    },
    "prior.low_rank_prior": {
        "low_rank_prior": dict(models=MODELS, rank=2),
        "row_kernel": dict(features=X),
    },
    "rank.reference_set": {
        "standard_references": dict(kind="images"),
    },
    "rank.errors": {
        "error_model": dict(point_errors=ERRORS),
    },
    "rank.outputs": {},
    "rank.models": {
        "rank_models": dict(models=MODELS, images=None, **nested(**FEW_TASKS)),
        "plan_models": dict(models=MODELS, **nested(**FEW_TASKS)),
    },
    "report.table": {
        "table_lines": dict(frame=RANKING.to_frame()),
        "table_data": dict(frame=RANKING.to_frame()),
        "agreement_lines": dict(agreement=RANKING.agreement(), n_models=4),
        "json_ready": dict(x=[1.0]),
    },
    "prior.calibration": {
        "shared_prior": dict(factors=MODELS),
        "edge_temperature": dict(Z=Z),
        "task_temperature": dict(Z=Z, n_classes=2),
    },
    "inputs.texts": {
        "load_texts": dict(source=TEXTS),
        "embed_texts": dict(model=VECTORS, texts=TEXTS),
        "prefixed": dict(model=len, prefix="query: "),
    },
    "inputs.pooling": {
        "pool_tokens": dict(tokens=torch.ones(2, 3, 4), mask=torch.ones(2, 3)),
    },
    "inputs.zoo": {"zoo_names": {}},
}
ABSENT = {
    "tools.cli": "the command line, tests/test_cli.py",
    "tools.layers": "reads the layers of networks; its notebook runs it",
    "tools.label_loop": "shows widgets; its notebook and tests/test_jupyterlab.py run it",
    "results": "styles of pictures",
    "papers.neucrab": "many checkpoints on many tasks; its notebook runs and refuses them",
}
