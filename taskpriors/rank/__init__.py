"""Rankings of models, from features to a verdict. Each module has a chapter in `nbs/rank`.

models       `rank_models`, the entry point, and the cost of a ranking
task         the arguments of a ranking, read and checked once
run          the steps in order: gather models, draw tasks, compute scores, assemble the ranking
model_features  features of the models, their cache, and the failures of models
reference_set  models that help to define the tasks and are not ranked
distributions  task distributions, their components and weights; tasks and scores
memory       the engine for features in memory: skills and probes; `disk` for rows in files
labelled     skills given known labels, and the examples to label next
errors       standard errors of skills over examples and tasks
forecast     the forecast for the user's task, from examples, labels, pairs and past results
ranking      the results and their verdict; `outputs` saves them
"""
