"""One small valid call of every public function that tests/test_refusals.py does not list.

`CALLS` maps a module to name -> arguments; a method stands as "Class.method" with its object as
`self`. `ABSENT` says of each remaining public function, or of its whole module, why it has no call
of its own. `test_every_public_function_is_called_or_excused` holds both lists.
"""

import matplotlib
import numpy as np
import pandas as pd
import torch
from matplotlib.figure import Figure
from test_refusals import IMAGES, X2, N, P, X, Y, Z, y

from taskpriors.jobs.explore import TaskExplorer
from taskpriors.prior.judges import elect_prior
from taskpriors.prior.objective import TaskPriorLoss, TaskPriorStatistics
from taskpriors.prior.posterior import label_evidence, labelled_skill
from taskpriors.prior.task_prior import TaskPrior
from taskpriors.rank.jury import read_jury
from taskpriors.rank.models import rank_models
from taskpriors.svd import feature_svd
from taskpriors.synbench.gaussians import synthetic_task
from taskpriors.synbench.score import SynBenchSettings, synbench_score
from taskpriors.transfer.code_length import loss_curve
from taskpriors.transfer.heads import fit_head
from taskpriors.transfer.pactran import gaussian_grid

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
SAMPLE = TASK.sample(64)[0]
CURVE = loss_curve(X, y)
HEAD = fit_head(X, y, beta=1.0)
SVD = feature_svd(X)
GRIDS = [gaussian_grid(M, y) for M in (X, X2, X + X2)]
RANKING = rank_models(MODELS, None, n_tasks=6, n_classes=2, cache=False, progress=False)
EXPLORER = TaskExplorer(X)
VIEWS = torch.stack([X, X + 0.1 * X2], 1)
MAP = X[:, :2]
ERRORS = X[:, :2].T.contiguous()
SOME = torch.where(torch.arange(N) % 3 > 0, y, -1)
EVIDENCE = label_evidence([Z, X], SOME)
ELECTED = elect_prior(torch.tensor([[0.5, 0.4, 0.1], [0.4, 0.5, 0.2], [0.1, 0.2, 0.5]]))
PICTURES = (255 * IMAGES[:, 0]).to(torch.uint8)


def pixels(picture):
    return torch.from_numpy(np.array(picture, dtype="float32"))


COMPANY = rank_models(
    MODELS | {"c": X + X2}, None, n_tasks=6, n_classes=2, cache=False, progress=False
)
TRUTH = dict(a=1.0, b=3.0, c=2.0)
OUTSIDE = pd.DataFrame(dict(a=[1.0, 2.0], b=[3.0, 4.0]), index=["a", "b"])
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
        "TaskPrior.given": dict(self=PRIOR, labels=y),
        "TaskPrior.at_ratio": dict(self=PRIOR, ratio=2.0),
        "TaskPrior.calibrated": dict(self=PRIOR, n_tasks=64, seed=0),
        "TaskPrior.regime": dict(self=PRIOR),
        "TaskPrior.edge_probabilities": dict(self=PRIOR),
        "TaskPrior.log_partition": dict(self=PRIOR),
        "TaskPrior.sample_graphs": dict(self=PRIOR, n_graphs=2, seed=0),
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
        "TaskPriorStatistics": dict(prior=Z, temperature=1.0),
        "TaskPriorStatistics.forward": dict(self=TaskPriorStatistics(Z, 1.0), features=X),
        "TaskPriorLoss": dict(prior=Z, temperature=1.0),
        "TaskPriorLoss.forward": dict(self=TaskPriorLoss(Z, 1.0), features=X),
    },
    "synbench.gaussians": {
        "synthetic_task": dict(scale=1.0, shape=(1, 2, 2)),
        "SyntheticTask.sample": dict(self=TASK, n=8, seed=0),
        "heptadiagonal": dict(shape=(1, 2, 2)),
        "mirror_symmetry": dict(shape=(1, 2, 2)),
        "central_block": dict(shape=(1, 4, 4), inner=2),
        "mahalanobis": dict(images=SAMPLE, task=TASK),
        "rejects_gaussian": dict(images=SAMPLE, task=TASK),
    },
    "synbench.robust_bayes": {"scaled_bound_of_accuracy": dict(accuracy=0.8)},
    "synbench.curves": {
        "score_integral": dict(accuracy=[0.7, 0.9], bound=[1.0, 2.0], threshold=0.7),
        "grid_integral": dict(accuracy=[0.7, 0.9], bound=[1.0, 2.0], threshold=0.7),
    },
    "synbench.structures": {"local_symmetry": dict(shape=(1, 4, 4), inner=2)},
    "synbench.accuracy": {"synthetic_accuracy": dict(SCORE, n_steps=1)},
    "synbench.score": {
        "synbench_score": SCORE,
        "score_by_n": dict(SCORE, sizes=(32, 64)),
    },
    "synbench.finite_samples": {
        "finite_sample_curve": dict(scales=[1.0, 2.0], n_features=4, n_train=64),
        "ceiling": dict(result=RESULT),
    },
    "synbench.seeds_and_classes": {
        "score_over_seeds": dict(SCORE, seeds=range(2)),
        "one_vs_rest_score": dict(SCORE, class_priors=(0.25, 0.75)),
        "one_vs_one_score": dict(SCORE, class_priors=(0.25, 0.75)),
    },
    "synbench.robust_probing": {"choose_eps": dict(result=RESULT)},
    "transfer.agreement": {
        "agreement_statistic": dict(scores=X[:, 0], truth=X[:, 1]),
        "compare_agreement": dict(first=X[:, 0], second=X[:, 1], truth=X[:, 2], n_resamples=100),
        "partial_agreement": dict(scores=X[:, 0], truth=X[:, 1], given=X[:, 2]),
        "static_order": dict(truths=X.T),
    },
    "transfer.leep": {"mixture_size": dict(n=100, n_classes=3)},
    "transfer.pactran": {
        "flatness": dict(trace=1.0, n=N, n_classes=3, a=1.0, b=10.0, d=4),
    },
    "papers.hyperparameters": {
        "spread_ratios": dict(grids=GRIDS),
        "choose_grid": dict(grids=GRIDS),
        "plot_choices": dict(grids=GRIDS, error=[0.1, 0.2, 0.3]),
    },
    "transfer.code_length": {
        "curve_sizes": dict(n_max=100),
        "code_length": dict(curve=CURVE),
    },
    "transfer.spectrum": {
        "effective_rank": dict(weights=[1.0, 2.0]),
        "participation_ratio": dict(weights=[1.0, 2.0]),
        "lidar": dict(views=VIEWS),
        "check_views": dict(views=VIEWS, caller="lidar"),
        "noise_cka": dict(dims=(2, 3)),
    },
    "transfer.sphere": {"alignment": dict(views=VIEWS)},
    "transfer.registry": {
        "metric_table": {},
        "combine_over_models": dict(columns={"energy_score": X[:, 0], "lda_score": X[:, 1]}),
    },
    "inputs.embed": {
        "load_encoder": dict(model=NETWORK, transform=pixels, name="flat"),
        "embed_features": EMBED,
        "embed": EMBED,
    },
    "jobs.explore": {
        "task_map": dict(features=X, method="pca"),
        "kernel_strength": dict(Z=Z),
        "draw_task": dict(xy=MAP, labels=y, ax=Figure().add_subplot()),
        "redraw": dict(explorer=EXPLORER, view="pca", size=1.0),
        "TaskExplorer": dict(features=X),
        "TaskExplorer.labels": dict(self=EXPLORER, seed=0),
        "explore": dict(features=X),
    },
    "papers.figures": {
        "tsne_map": dict(features=X),
        "plot_tasks": dict(features=X, xy=MAP),
        "plot_moments": dict(ranking=RANKING),
        "plot_predictions": dict(ranking=RANKING),
        "prior_ablation": dict(features=MODELS),
        "plot_priors": dict(features=MODELS),
        "plot_temperatures": dict(features=X, xy=MAP),
    },
    "inputs.images": {"load_images": dict(source=PICTURES)},
    "prior.views": {"view_features": dict(views=VIEWS)},
    "prior.judges": {
        "copy_similarity": dict(factors=[Z, X]),
        "mutual_skill": dict(cross=torch.ones(3, 3)),
    },
    "prior.posterior": {
        "label_evidence": dict(factors=[Z, X], labels=SOME),
        "posterior_weights": dict(weights=[0.4, 0.6], evidence=EVIDENCE),
        "posterior_tasks": dict(factors=[Z, X], labels=SOME, evidence=EVIDENCE, n_tasks=2),
        "labelled_skill": dict(features=[X, X2], labels=SOME),
        "small_area": dict(skill=torch.tensor([0.4, 0.6]), direct=labelled_skill([X, X2], SOME)),
    },
    "transfer.metrics": {"metric_rows": {}},
    "transfer.cards": {
        "describe_metric": dict(metric="logme"),
        "card_table": {},
        "read_record": {},
    },
    "prior.cut_prior": {
        "cut_prior": dict(models=MODELS, rank=2),
        "row_kernel": dict(features=X),
    },
    "prior.ridge_on_disk": {
        "heldout_error_of_rows": dict(features=X, labels=Y),
        "scores_of_rows": dict(features=X, labels=Y, probe_labels=Y, train=0.5),
    },
    "rank.cost": {"plan_ranking": dict(models=MODELS, rank=2, n_tasks=6, n_classes=2)},
    "rank.jury": {
        "standing_jury": dict(kind="images"),
        "foretold_seconds": dict(jurors=read_jury(), n_inputs=10),
    },
    "rank.files": {
        "rank_on_disk": dict(
            models=MODELS, rank=2, n_tasks=6, n_classes=2, cache=False, progress=False
        ),
    },
    "rank.on_disk": {
        "sampled_moments": dict(factors=MODELS, prior=Z, n=N, temperature=1.0),
    },
    "rank.errors": {
        "error_covariance": dict(point_errors=ERRORS),
        "error_law": dict(point_errors=ERRORS),
        "own_group_sizes": dict(groups=[0, 0, 1, 1], judged=[0, 2]),
    },
    "rank.tiers": {
        "rank_tiers": dict(skill=torch.tensor([0.4, 0.6]), covariance=0.01 * torch.eye(2)),
    },
    "rank.reliability": {"expected_loss": dict(judges=ELECTED, similarity=torch.eye(3))},
    "rank.outputs": {
        "worst_decile": dict(accuracies=P),
    },
    "rank.models": {
        "rank_models": dict(models=MODELS, images=None, n_tasks=6, n_classes=2, progress=False),
    },
    "show.table": {
        "csv_text": dict(frame=RANKING.to_frame()),
        "json_rows": dict(frame=RANKING.to_frame()),
        "table_lines": dict(frame=RANKING.to_frame()),
        "table_record": dict(frame=RANKING.to_frame()),
        "agreement_lines": dict(agreement=RANKING.agreement(), n_models=4),
        "cell_text": dict(column="skill", value=0.5),
        "json_ready": dict(x=[1.0]),
    },
    "rank.shared_prior": {
        "shared_prior": dict(factors=MODELS),
        "edge_temperature": dict(Z=Z),
        "task_temperature": dict(Z=Z, n_classes=2),
    },
    "jobs.bridges": {
        "from_mteb": dict(results=OUTSIDE.rename_axis("task_name").reset_index()),
        "from_timm_results": dict(results=OUTSIDE.rename_axis("model").reset_index()),
        "known_names": dict(model="resnet50"),
        "match_models": dict(table=OUTSIDE, models=["a", "c"]),
        "outside_agreement": dict(ranking=COMPANY, truth=TRUTH),
        "scorer": {},
    },
    "inputs.texts": {
        "load_texts": dict(source=TEXTS),
        "word_means": dict(vectors=VECTORS, texts=TEXTS),
        "embed_texts": dict(model=VECTORS, texts=TEXTS),
    },
    "inputs.pooling": {
        "pool_tokens": dict(tokens=torch.ones(2, 3, 4), mask=torch.ones(2, 3)),
    },
    "inputs.zoo": {"zoo_names": {}},
}
ABSENT = {
    "blocks": "loops over slices; every streamed function runs them",
    "checks": "judges inputs; every function runs it",
    "memory": "asks the machine; its notebook tests it",
    "inputs.encoders": "loads and describes models; embed runs it",
    "inputs.loaders": "batches of loaders; embed and rank_models run it",
    "inputs.named_models": "loads networks by name; embed runs it",
    "inputs.pooling.choose_output": "step of pool_output",
    "inputs.pooling.pool_output": "step of embed; its notebook tests it",
    "inputs.pretrained": "networks of transformers; embed runs it",
    "inputs.feature_files": "reads files; rank_models and embed run it",
    "prior.chains": "shared step of the labelings' functions",
    "prior.edges.checked_odds": "shared step of the edges' functions",
    "prior.heldout.error_on_basis": "step of Monitor and of a ranking",
    "probes.held_out_probes": "step of a ranking",
    "prior.heldout.check_penalties": "judges what the expected errors take",
    "prior.heldout.choose_penalty": "step of expected_heldout_error",
    "prior.edge_errors.weighted_gram": "step of edge_variance",
    "prior.moments.coins_": "in-place step of trace_moments",
    "prior.judges.company_notes": "sentences of a ranking; rank_models runs it",
    "prior.pair_sums": "shared step of moments and tails",
    "prior.particles": "shared step of the labelings' functions",
    "prior.ridge_on_disk.check_row_tasks": "judges what the scores of rows take",
    "prior.ridge_on_disk.fit_rows": "step of the scores of rows",
    "prior.ridge_on_disk.row_sums": "step of the scores of rows",
    "prior.next_labels": "draws points; rank_models runs it, and its notebook tests it",
    "jobs.label_sheet": "writes a file; its notebook tests it",
    "rank.tiers.mixed_quantile": "step of Ranking.compare; its notebook tests it",
    "inputs.embed.passed_on": "the transform of inputs that are prepared already",
    "prior.posterior.shrunk_covariance": "step of small_area",
    "prior.prefix.check_given": "judges what the samplers take; called by each of them",
    "prior.prefix.check_sampler": "judges what the samplers take; called by each of them",
    "prior.prefix.copy_transposed": "in-place step of sample_labels",
    "prior.prefix_blocks.choose_classes": "step of sample_labels",
    "prior.prefix_blocks.draw_block": "step of sample_labels",
    "prior.prefix_blocks.draw_uniforms": "step of sample_labels",
    "prior.prefix_blocks.encode_labels": "step of sample_labels",
    "prior.prefix_blocks.fill_labels": "in-place step of sample_labels",
    "prior.prefix.log_normalisers": "step of prefix_log_prob",
    "prior.diversity.first_names": "step of task_diversity",
    "prior.diversity.n_distinct_tasks": "step of task_diversity",
    "prior.prefix.pair_scale": "shared step of the samplers",
    "prior.sketch.leading_coordinates": "step of sketch_trace_moments",
    "prior.sketch.monomials": "step of sketch_trace_moments",
    "prior.sketch.near_cells": "step of sketch_trace_moments",
    "prior.sketch.near_partitions": "step of sketch_trace_moments",
    "prior.sketch.power_sum": "step of sketch_trace_moments",
    "prior.diversity.pairwise_rand": "step of task_diversity",
    "prior.prefix.sample_labels_of_priors": "step of cross_skill; its notebook tests it",
    "jobs.arguments": "the words of the command line, tests/test_cli.py",
    "jobs.cli": "the command line, tests/test_cli.py",
    "jobs.console": "what the command line prints, tests/test_cli.py",
    "rank.cost.measure_speed": "times this machine",
    "rank.cost.election_seconds": "step of plan_ranking",
    "rank.cost.ranking_work": "step of plan_ranking",
    "inputs.accepted_models.is_features": "asks what a model is; rank_models runs it",
    "inputs.images.find_shared_data": "looks for a folder that a machine may lack",
    "jobs.layers": "reads the layers of networks; its notebook runs it",
    "jobs.collapse": "numbers of a monitored step, whose notebook compares them",
    "jobs.monitor": "watches networks that train; tests/test_monitor.py and its notebook run it",
    "rank.agreement.agreement_or_reason": "calls the function that it is given",
    "rank.agreement.agreement_row": "step of Ranking.agreement",
    "rank.agreement.agreement_table": "step of Ranking.agreement",
    "rank.agreement.random_agreement": "step of Ranking.agreement",
    "rank.outputs.free_folder": "names a folder; tests/test_cli.py",
    **dict.fromkeys(
        (
            "rank.outputs.correlations",
            "rank.outputs.leads_frame",
            "rank.outputs.page_record",
            "rank.outputs.ranking_frame",
            "rank.outputs.ranking_record",
            "rank.outputs.save_ranking",
            "rank.outputs.saved_fields",
        ),
        "step of a method of Ranking",
    ),
    "show.page": "the page of a ranking; its notebook and tests/test_report.py",
    **dict.fromkeys(
        (
            "rank.company",
            "rank.labelled",
            "rank.laws",
            "rank.scores",
            "rank.known_labels",
            "rank.record",
            "rank.run",
        ),
        "steps of rank_models, which runs them all",
    ),
    "rank.on_disk.cut_law": "step of rank_on_disk",
    "rank.on_disk.draw_row_tasks": "step of rank_on_disk",
    "rank.on_disk.check_streaming": "step of rank_on_disk",
    "rank.on_disk.draw_from_unchanged": "step of rank_on_disk",
    "rank.on_disk.gather_rows": "step of rank_on_disk",
    "rank.on_disk.known_classes": "step of rank_on_disk",
    "rank.on_disk.open_features": "step of rank_on_disk",
    "rank.on_disk.row_law": "step of rank_on_disk",
    "rank.on_disk.score_rows": "step of rank_on_disk",
    "show.plots": "pictures of a ranking; its notebook draws them",
    "show.table.column_of": "the heading of a column of a table, whatever its name",
    "show.table.ranking_html": "a ranking in a notebook, which calls it",
    "show.table.ranking_text": "a ranking in print, which calls it",
    "show.table.edges_note": "step of Ranking.summary",
    "show.table.run_summary": "step of Ranking.summary",
    "show.words": "sentences about a ranking, which prints them",
    "rank.tiers.head_to_head": "step of Ranking.compare",
    "rank.errors.lead_errors": "step of rank_tiers",
    "rank.errors.joint_law": "step of error_law",
    "rank.errors.carried_by_few": "step of rank_models",
    "rank.tiers.lead_margins": "step of rank_tiers",
    "rank.tiers.lead_quantile": "step of Ranking.compare",
    "rank.tiers.normal_quantile": "step of Ranking.compare",
    "rank.tiers.probability_ahead": "step of Ranking.compare",
    "rank.tiers.probability_best": "step of rank_tiers",
    "rank.tiers.rank_intervals": "step of rank_tiers",
    "rank.tiers.simultaneous_quantile": "step of rank_tiers",
    "rank.tiers.tiers_from": "step of rank_tiers",
    "inputs.zoo.printed": "draws twelve thousand glyphs; its notebook runs it",
    "inputs.zoo.zoo_features": "trains the zoo for minutes; its notebook runs it",
    "inputs.zoo.zoo_model": "trains the zoo for minutes; its notebook runs it",
    "inputs.zoo.zoo_transform": "step of zoo_features",
    "results": "styles of pictures",
    "ridge": "shared step of probes and held-out error",
    "ridge_tasks": "shared step of probes and held-out error",
    "refusals": "refuses; its own notebook tests it",
    "logistic.check_fit_memory": "step of logistic_fit",
    "logistic.check_solver": "step of logistic_fit",
    "logistic.fit_block": "step of logistic_fit",
    "logistic.preconditioned": "step of logistic_fit",
    "prior.estimates.redraw_moments": "step of LabelTraceMoments",
    "prior.estimates.label_traces": "step of sample_labelings",
    "prior.regime": "step of TaskPrior.regime",
    "prior.edge_errors.edge_law": "step of edge_moments",
    "prior.edge_errors.moments_of_edges": "step of edge_moments",
    "prior.edge_errors.variance_of_edges": "step of edge_variance",
    "transfer.from_sums": "step of rank_on_disk; its notebook tests it",
    "inputs.accepted_models.load_encoder": "opens models; embed runs it",
    "jobs.fixed_tasks": "tasks and points of a Monitor, which runs it",
    "rank.labelled_on_disk": "step of rank_on_disk",
    "inputs.image_source": "decodes files; load_images runs it",
    "inputs.onnx": "files of networks; its notebook stores, runs and spoils them",
    "inputs.remote": "reads URLs; its notebook stores, spoils and reads them in memory",
    "inputs.row_blocks": "files of features; its notebook reads, spoils and cuts them",
    "signatures": "docstrings, made when the library is imported",
    "store": "files, tests/test_cache.py",
    "jobs.explore.point_at": "step of a click in the explorer; its notebook tests it",
    "pairs.nearest_points": "shared step of the metrics that look at neighbours",
    "pairs.pass_bytes": "step of pass_over_pairs",
    "pairs.search_points": "the same",
    "pairs.use_pairs": "the same",
    "svd": "shared step of the metrics that call it",
    "synbench.curves.checked_settings": "step of synbench_score, which judges the settings",
    "synbench.score.image_encoder": "step of synbench_score",
    "synbench.fitted.fitted_covariance": "step of fitted_settings; its notebook compares it",
    "papers.questions": "takes images, questions and answers; its notebook makes them",
    "synbench.structures.compose_structures": "takes structures by position; its notebook does",
    "synbench.score.task_at": "step of synbench_score",
    "synbench.score.task_features": "step of synbench_score",
    "papers.study_data": "files of others; its notebook fetches from stand-ins",
    "papers.neucrab_files": "files and images; its notebook writes, reads and spoils them",
    "papers.tuning": "trains networks; its notebook runs, kills and refuses it",
    "papers.recipes": "data of the papers; its notebook checks every name",
    "papers.reproduce": "items of the papers, tests/test_reproduce.py",
    "papers.synbench_scores": "files of scores; its notebook writes and reads them",
    "rank.synbench_column": "a column of rank_models; its notebook computes it",
    "transfer.code_length.mlp_learner": "a learner of loss_curve; its notebook runs it",
    "synbench.robust_probing.attack_inputs": "judges what the attacks take",
    "synbench.robust_probing.image_norms": "step of the attacks",
    "synbench.robust_probing.per_image": "step of the attacks",
    "synbench.robust_probing.autoattack": "needs an optional library; its notebook runs it",
    "transfer.code_length.linear_learner": "the learner of loss_curve, which runs it",
    "transfer.discriminants.ledoit_wolf_shrinkage": "step of regularized_h_score",
    "transfer.discriminants.varying_svd": "step of the discriminants",
    "transfer.evidence.best_ratio": "step of log_evidence",
    "transfer.evidence.evidence_profile": "step of log_evidence",
    "transfer.evidence.golden_max": "step of log_evidence",
    "transfer.leep.joint_probability": "step of leep and nce",
    "transfer.agreement.exchange_p_value": "step of compare_agreement",
    "transfer.agreement.exchanges": "step of compare_agreement",
    "transfer.orders": "steps of the agreement; its notebook tests them",
    "transfer.cards.write_record": "called by a study; its notebook tests it",
    "transfer.discriminants.lda_posterior": "step of sfda",
    "transfer.evidence.centred_projections": "step of log_evidence",
    "transfer.evidence.gram_projections": "step of log_evidence",
    "transfer.evidence.raw_projections": "step of log_evidence",
    "papers.fine_tuning.check_recipe": "judges what fine_tune takes",
    "papers.fine_tuning.check_task": "judges what a truth takes",
    "papers.fine_tuning.descend": "step of fine_tune",
    "papers.fine_tuning.epoch_batches": "step of fine_tune",
    "papers.fine_tuning.fine_tune": "trains networks; its notebook runs it",
    "papers.fine_tuning.input_batches": "step of fine_tune",
    "papers.fine_tuning.inputs_digest": "step of fine_tune",
    "papers.fine_tuning.tuning_errors": "trains networks; its notebook runs it",
    "transfer.heads.head_frame": "step of fit_head",
    "transfer.leep.fitted_mixture": "step of mixture_probs, which judges its data",
    "papers.neucrab": "many checkpoints on many tasks; its notebook runs and refuses them",
    "papers.subsamples": "steps of neucrab, which judges the data",
    "papers.tau_tables": "tables of neucrab's results; its notebook tests them",
    "papers.operations.count_operations": "takes a function; its notebook counts by hand",
    "papers.operations.metric_costs": "measures seconds, which differ; its notebook runs it",
    "transfer.heads.hessian_product": "step of fit_head",
    "transfer.heads.hessian_trace": "step of fit_head",
    "transfer.heads.least_risk": "step of fit_head",
    "transfer.heads.risk_and_slope": "step of fit_head",
    "transfer.intrinsic_dimension.tree_lengths": "step of idest",
    "transfer.neighbours.unit_rows": "step of knn_accuracy and of the scores on the sphere",
    "transfer.pactran.gains_to_come": "step of dirichlet_fit",
    "transfer.pactran.log_beta": "step of dirichlet_fit",
    "transfer.pactran.mixture_step": "step of dirichlet_fit and gamma_fit",
    "transfer.pactran.responsibilities": "step of dirichlet_fit and gamma_fit",
    "transfer.separation.stratified_folds": "step of lda_accuracy",
    "transfer.registry.combination_note": "a sentence for a column of combine_over_models",
    "transfer.registry.terms_of": "step of metric_functions",
    "transfer.spectrum.decay_exponent": "step of alpha_req",
}
