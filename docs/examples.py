"""A call of each name of the front door, as a user would write it.

The page of functions shows the lines below the mark of a name; a test runs the file from top to
bottom, in an empty folder. What comes before the first mark is shown once.
"""

import numpy as np
import pandas as pd
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

# %% kernel_matrix
K = tp.kernel_matrix(Z)

# %% cholesky_factor
Z = tp.cholesky_factor(K, rank=32)  # of any kernel that you have as a matrix

# %% product_factor
both = tp.product_factor([(Z, 1.0), (tp.kernel_factor(Y), 2.0)])  # factors and temperatures

# %% ridge_probes
accuracy = tp.ridge_probes(X, labels, train=0.5).accuracy

# %% logistic_probes
accuracy = tp.logistic_probes(X, labels, train=0.5, C=10.0).accuracy

# %% edge_probabilities
P = tp.edge_probabilities(Z, T)  # of two points to be in one class

# %% sample_graphs
graphs = tp.sample_graphs(Z, T, 10, seed=0)

# %% trace_moments
moments = tp.trace_moments(tp.kernel_factor(Y), Z, T)
moments.mean, moments.variance

# %% trace_cumulants
cumulants = tp.trace_cumulants(tp.kernel_factor(Y), Z, T, order=4)

# %% sketch_trace_moments
sketched = tp.sketch_trace_moments(tp.kernel_factor(Y), Z, T, rel_tol=0.05, seed=0)  # many points

# %% trace_covariance
factors = {name: tp.kernel_factor(F) for name, F in features.items()}
C = tp.trace_covariance(factors, Z, T)

# %% trace_quantile
worst_tenth = tp.trace_quantile(tp.kernel_factor(Y), Z, T, 0.1)

# %% outperform_probability
p = tp.outperform_probability(tp.kernel_factor(X), tp.kernel_factor(Y), Z, T)

# %% outperform_matrix
P = tp.outperform_matrix(factors, Z, T)

# %% sample_labels
tasks = tp.sample_labels(Z, T, 5, n_tasks=100, n_orders=10, seed=0)  # shape (100, n)

# %% task_diversity
tp.task_diversity(tasks).rand_index

# %% sample_labelings
exact = tp.sample_labelings(Z[:60], T, 2, n_tasks=200, seed=0)  # from the measure itself
exact.trusted, exact.reason

# %% enumerate_labelings
all_tasks = tp.enumerate_labelings(Z[:8], T, 2)  # few points: every task with its probability

# %% calibrate_temperature
found = tp.calibrate_temperature(Z[:60], 2, n_tasks=100, seed=0)
found.temperature

# %% temperature_scan
tp.temperature_scan(Z[:40], 2, n_tasks=200, seed=0).plot()

# %% critical_temperature
T = tp.critical_temperature(Z, 5) / 20  # tasks of a ranking are drawn at a twentieth

# %% expected_heldout_error
error = tp.expected_heldout_error(Y, tasks)  # no probe is trained
error.skill, error.standard_error

# %% precision_at_k
tp.precision_at_k(Y, tasks, k=10)

# %% expected_regression_error
tp.expected_regression_error(Y, Z, noise=0.1).skill

# %% view_features
Z_views = tp.view_features(torch.stack([X, X + 0.1 * torch.randn_like(X)], 1))

# %% cross_skill
cross = tp.cross_skill(features)  # of each model over the tasks of each other

# %% elect_prior
tp.elect_prior(cross).weights

# %% copy_similarity
tp.copy_similarity(list(factors.values()))

# %% TaskPrior
prior = tp.TaskPrior.from_features(X, temperature=2.0)
prior.compare(features).to_frame()

# %% TaskPriorLoss
loss = tp.TaskPriorLoss(Z, T)
batch = torch.randn(300, 16, requires_grad=True)  # what your network makes of these points
loss(batch).backward()

# %% robust_bayes
tp.robust_bayes(mu=[1.0, 0.5], Sigma=[1.0, 2.0], eps=[0.0, 0.1]).accuracy

# %% synthetic_task
task = tp.synthetic_task(0.3, (3, 8, 8))
x, y = task.sample(64, seed=0)

# %% synbench_score
encoder = torch.nn.Sequential(torch.nn.AvgPool2d(8), torch.nn.Flatten())
size = (3, 32, 32)
score = tp.synbench_score(encoder, input_size=size, n_train=256, n_test=256, progress=False)

# %% robust_linear_probe
probe = tp.robust_linear_probe(torch.nn.Flatten(), x, y, eps=0.1)

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

# %% metric_convergence
tp.metric_convergence("rankme", X, sizes=[50, 100, 200]).drift

# %% rankme
tp.rankme(X)

# %% lidar
tp.lidar(torch.stack([X, X + 0.1 * torch.randn_like(X)], 1))

# %% cka
tp.cka(X, Y)

# %% hsic
tp.hsic(X, Y)

# %% Checkpoint
checkpoints = [tp.Checkpoint(name, family=name) for name in features]

# %% CheckpointTask
task = tp.CheckpointTask("digits", features, labels)

# %% neucrab
study = tp.neucrab(checkpoints, [task], per_class=[5], n_seeds=2, progress=False, cache=False)
study.taus()

# %% load_images
images = tp.load_images("digits", limit=300)  # or a folder, a parquet file, a data set

# %% embed
X = tp.embed("zoo/pixels", images)  # or a name of timm, a module, a function

# %% Ranking
ranking = tp.rank_models(features, labels=labels, compute=tp.Compute(progress=False))
ranking.forecast.to_frame()  # P(best), loss and lead on your task, the least expected loss first
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

# %% from_mteb
wide = pd.DataFrame(
    {"task_name": ["a task", "another"], "org/one": [0.6, 0.7], "org/two": [0.8, 0.7]}
)
scores = tp.from_mteb(wide)  # or a folder of mteb's results

# %% from_timm_results
pd.DataFrame(dict(model=["resnet18", "vit"], top1=[70.1, 81.2])).to_csv("results.csv", index=False)
imagenet = tp.from_timm_results("results.csv").top1  # results-imagenet.csv of timm

# %% outside_agreement
tp.outside_agreement(ranking, {"pixels": 0.95, "pca": 0.93, "projection": 0.85})

# %% scorer
better = tp.scorer("skill", n_tasks=20)

# %% label_sheet
tp.label_sheet([4, 17, 99], "to_label.csv")
