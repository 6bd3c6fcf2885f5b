"""A call of each name of the front door, as a user would write it.

The page of functions shows the lines below the mark of a name; a test runs the file from top to
bottom, in an empty folder. What comes before the first mark is shown once.
"""

import numpy as np
import torch

import taskpriors as tp

images = tp.load_images("digits", limit=300)
labels = torch.as_tensor(images.labels)
features = {name: tp.embed(f"zoo/{name}", images) for name in ("pixels", "pca", "projection")}
X, Y = features["pixels"], features["pca"]
Z = tp.kernel_factor(X)
T = tp.critical_temperature(Z, 5) / 20

# %% kernel_factor
Z = tp.kernel_factor(X, "cosine")  # Z @ Z.T is the kernel of the prior

# %% product_factor
both = tp.product_factor([(Z, 1.0), (tp.kernel_factor(Y), 2.0)])  # factors and temperatures

# %% trace_moments
moments = tp.trace_moments(tp.kernel_factor(Y), Z, T)
moments.mean, moments.variance

# %% outperform_probability
p = tp.outperform_probability(tp.kernel_factor(X), tp.kernel_factor(Y), Z, T)

# %% sample_labels
tasks = tp.sample_labels(Z, T, 5, n_tasks=100, n_orders=10, seed=0)  # shape (100, n)

# %% sample_labelings
exact = tp.sample_labelings(Z[:60], T, 2, n_tasks=200, seed=0)  # from the measure itself
exact.trusted, exact.reason

# %% calibrate_temperature
found = tp.calibrate_temperature(Z[:60], 2, n_tasks=100, seed=0)
found.temperature

# %% critical_temperature
T = tp.critical_temperature(Z, 5) / 20  # tasks of a ranking are drawn at a twentieth

# %% expected_heldout_error
error = tp.expected_heldout_error(Y, tasks)  # no probe is trained
error.skill, error.standard_error

# %% cross_skill
cross = tp.cross_skill(features)  # of each model over the tasks of each other

# %% consensus_prior
tp.consensus_prior(cross).weights

# %% TaskPrior
prior = tp.TaskPrior.from_features(X, temperature=2.0)
prior.compare(features).to_frame()

# %% TaskPriorLoss
loss = tp.TaskPriorLoss(Z, T)
batch = torch.randn(300, 16, requires_grad=True)  # what your network makes of these points
loss(batch).backward()

# %% robust_bayes
tp.robust_bayes(mu=[1.0, 0.5], Sigma=[1.0, 2.0], eps=[0.0, 0.1]).accuracy

# %% synbench_score
encoder = torch.nn.Sequential(torch.nn.AvgPool2d(8), torch.nn.Flatten())
size = (3, 32, 32)
score = tp.synbench_score(encoder, input_size=size, n_train=256, n_test=256, progress=False)

# %% rank_agreement
scores, accuracies = [0.3, 0.5, 0.1, 0.9, 0.4, 0.2], [0.6, 0.7, 0.5, 0.8, 0.7, 0.6]
print(tp.rank_agreement(scores, accuracies, method="kendall"))

# %% describe_metric
print(tp.describe_metric("logme"))

# %% metrics
tp.metrics.logme(X, labels)

# %% METRICS
tp.METRICS["logme"].needs

# %% transfer_scores
tp.transfer_scores(X, labels, metrics=["logme", "h_score", "nleep"]).to_frame()

# %% metric_functions
ranking = tp.rank_models(
    features, metrics=tp.metric_functions(labels), compute=tp.Compute(progress=False)
)

# %% rankme
tp.rankme(X)

# %% cka
tp.cka(X, Y)

# %% neucrab
from taskpriors.papers.subsamples import Checkpoint, CheckpointTask  # noqa: E402

checkpoints = [Checkpoint(name, family=name) for name in features]
task = CheckpointTask("digits", features, labels)
study = tp.neucrab(checkpoints, [task], per_class=[5], n_seeds=2, progress=False, cache=False)
study.taus()

# %% load_images
images = tp.load_images("digits", limit=300)  # or a folder, a parquet file, a data set

# %% embed
X = tp.embed("zoo/pixels", images)  # or a name of timm, a module, a function

# %% Ranking
ranking = tp.rank_models(features, labels=labels, compute=tp.Compute(progress=False))
ranking.forecast.to_frame()  # P(best), loss and margin on your task, the least expected loss first
ranking.compare("pixels", "pca")  # in points of accuracy
ranking.to_record(
    "digits", "record.csv"
)  # what is known now, for past_results= of the next ranking
tp.Ranking.load(ranking.save("ranking")).verdict

# %% rank_models
ranking = tp.rank_models(
    features, compute=tp.Compute(progress=False)
)  # or names of models, and images
print(ranking.verdict)
ranking.plot()

# %% Tasks
tp.Tasks(n_tasks=100, n_classes=3)

# %% Compute
tp.Compute(device="cpu", cache="features")

# %% plan_models
print(tp.plan_models(["zoo/pixels", "zoo/pca"], tp.load_images("digits", limit=200)))

# %% explore
tp.explore(X)

# %% Monitor
network = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(768, 32), torch.nn.ReLU())
pictures = torch.rand(64, 3, 16, 16)
monitor = tp.Monitor(pictures)
for step in range(3):  # your training loop
    monitor(network, step=step)
monitor.to_frame()

# %% layers_of
layers = tp.layers_of(network, pictures)
last = list(layers.values())[-1]  # tasks of the last layer
print(
    tp.rank_models(
        layers, tasks=tp.Tasks(prior=last, n_tasks=20), compute=tp.Compute(progress=False)
    ).verdict
)

# %% load_texts
texts = tp.load_texts(["the first text", "the second one", "and a third"])

# %% embed_texts
lengths = tp.embed_texts(lambda batch: np.array([[len(t), t.count(" ")] for t in batch]), texts)

# %% prefixed
encoder = tp.prefixed(lambda batch: np.array([[len(t), t.count(" ")] for t in batch]), "passage: ")

# %% Retrieval
vectors = np.random.default_rng(0).random((40, 8))
asked = tp.Retrieval(queries=[vectors[:5] + 0.01], relevant=[(k, k) for k in range(5)])

# %% label_sheet
tp.label_sheet([4, 17, 99], "to_label.csv")

# %% label_loop
ranking = tp.rank_models(features, compute=tp.Compute(progress=False))
tp.label_loop(ranking, features, images, classes=range(10))
