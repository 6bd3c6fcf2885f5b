"""A ranking, from models to a verdict. Each module has a chapter in `nbs/rank`.

models       the door, `rank_models`: options and files become a run; `cost` plans it
run          the script: gather, draw, score, labels, and the ranking that is made of them
members      models on their way, and what is kept of them in the cache
jury         who votes and is not ranked
laws         the election: whose tasks judge, and with which weights; what an engine computes
memory       the engine of features in memory: skills, probes; `disk` that of rows in their files
labelled     what known labels change, and which points to label next
errors       standard errors of skills over the law's tasks, from which come the `tiers`
forecast     the user's own task, by points, labels, pairs and scores on earlier tasks
ranking      the verdict, and what moved between two; `record` writes its tables and files
"""
