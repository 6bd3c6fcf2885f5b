# Written by docs/stub.py from the names in __init__.py.

from .inputs.embed import embed as embed
from .inputs.images import load_images as load_images
from .inputs.row_pairs import Retrieval as Retrieval
from .inputs.texts import embed_texts as embed_texts
from .inputs.texts import load_texts as load_texts
from .inputs.texts import prefixed as prefixed
from .kernels import kernel_factor as kernel_factor
from .kernels import product_factor as product_factor
from .papers.neucrab import neucrab as neucrab
from .prior.calibration import calibrate_temperature as calibrate_temperature
from .prior.calibration import critical_temperature as critical_temperature
from .prior.consensus import consensus_prior as consensus_prior
from .prior.consensus import cross_skill as cross_skill
from .prior.heldout import expected_heldout_error as expected_heldout_error
from .prior.labelings import sample_labelings as sample_labelings
from .prior.moments import trace_moments as trace_moments
from .prior.objective import TaskPriorLoss as TaskPriorLoss
from .prior.prefix import sample_labels as sample_labels
from .prior.tails import outperform_probability as outperform_probability
from .prior.task_prior import TaskPrior as TaskPrior
from .rank.models import plan_models as plan_models
from .rank.models import rank_models as rank_models
from .rank.options import Compute as Compute
from .rank.options import Tasks as Tasks
from .rank.ranking import Ranking as Ranking
from .synbench.robust_bayes import robust_bayes as robust_bayes
from .synbench.score import synbench_score as synbench_score
from .tools.explore import explore as explore
from .tools.label_loop import label_loop as label_loop
from .tools.label_loop import label_sheet as label_sheet
from .tools.layers import layers_of as layers_of
from .tools.monitor import Monitor as Monitor
from .transfer.agreement import rank_agreement as rank_agreement
from .transfer.metrics import metrics as metrics
from .transfer.registry import METRICS as METRICS
from .transfer.registry import describe_metric as describe_metric
from .transfer.registry import metric_functions as metric_functions
from .transfer.registry import transfer_scores as transfer_scores
from .transfer.spectrum import cka as cka
from .transfer.spectrum import rankme as rankme

__version__: str
