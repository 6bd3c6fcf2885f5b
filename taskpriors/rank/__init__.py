"""A ranking, from models to a verdict. Each module has a chapter in `nbs/rank`.

models       the door, `rank_models`: options and files become a run; `cost` plans it
run          the script: gather, draw, score, labels, and the ranking that is made of them
members      models on their way, and what is kept of them in the cache
reference_set  models beside the ranked ones, which help to define the tasks
distributions  the task distribution: its components and their weights; what an engine computes
memory       the engine of features in memory: skills, probes; `disk` that of rows in their files
labelled     what known labels change, and which examples to label next
errors       standard errors of skills over examples and tasks
forecast     the user's own task, from examples, labels, pairs and past results
ranking      the verdict, and what moved between two; `record` writes its tables and files
"""
