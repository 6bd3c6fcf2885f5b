"""What no notebook can show of the monitor: two processes, and what a look leaves behind in a
training run.
"""

import socket

import pytest
import torch
from forks import Python
from torch import nn

from taskpriors.tools.monitor import Monitor

IMAGES = torch.rand(60, 1, 4, 4, generator=torch.Generator().manual_seed(0))
DATA = (
    "import torch\nimages = torch.rand(60, 1, 4, 4, generator=torch.Generator().manual_seed(0))\n"
)

RANK = (
    DATA
    + """
import sys, math
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from taskpriors import Monitor

rank, port = int(sys.argv[1]), sys.argv[2]
dist.init_process_group("gloo", f"tcp://127.0.0.1:{port}", rank=rank, world_size=2)
torch.manual_seed(0)
net = DistributedDataParallel(nn.Sequential(nn.Flatten(), nn.Linear(16, 8), nn.BatchNorm1d(8)))
monitor = Monitor(images, n_tasks=4)
for step in range(3):
    net(images[rank::2]).sum().backward()
    monitor(net, step=step)
    assert net.training
try:
    monitor(lambda x: dict(logits=x))
except (TypeError, RuntimeError) as e:
    print("refused" if "dict" in str(e) else e)
print(monitor.best(), *(s.skill for s in monitor.history))
dist.destroy_process_group()
"""
)


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def test_rank_zero_computes_and_the_other_waits():
    "Both ranks hold the same history, and an error reaches both."
    port = str(free_port())
    ranks = [Python("-c", RANK, k, port) for k in range(2)]
    said = [rank.communicate()[0] for rank in ranks]
    assert [rank.returncode for rank in ranks] == [0, 0]
    assert said[0] == said[1] and said[0].startswith("refused")


def train(watch):
    torch.manual_seed(0)
    net = nn.Sequential(
        nn.Flatten(), nn.Linear(16, 8), nn.BatchNorm1d(8), nn.Dropout(), nn.Linear(8, 2)
    )
    optimizer = torch.optim.SGD(net.parameters(), 0.1)
    for step in range(4):
        watch(net, step)
        loss = net(IMAGES[torch.randperm(60)[:20]]).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return torch.cat([w.flatten() for w in net.state_dict().values()])


def test_a_watched_training_is_the_same_bit_for_bit():
    monitor = Monitor(IMAGES, n_tasks=4)
    assert torch.equal(train(lambda net, step: monitor(net, step)), train(lambda net, step: None))
    assert len(monitor.history) == 4


@pytest.mark.parametrize("cache", [True, False])
def test_weights_cast_during_a_look_keep_their_gradients(cache):
    "Inside an autocast region, casts are kept; those without gradients must not be."
    net = nn.Sequential(nn.Flatten(), nn.Linear(16, 2))
    monitor = Monitor(IMAGES, n_tasks=4)
    with torch.autocast("cpu", torch.bfloat16, cache_enabled=cache):
        monitor(net)
        net(IMAGES).sum().backward()
    assert net[1].weight.grad is not None


def test_a_training_goes_on_past_a_step_that_fails():
    "Weights that are not finite for one step, and a head that grows, leave a whole history."
    net = nn.Sequential(nn.Flatten(), nn.Linear(16, 8))
    monitor = Monitor(IMAGES, n_tasks=4)
    monitor(net)
    kept = net[1].weight.detach().clone()
    with torch.no_grad():
        net[1].weight[0] = torch.nan
    assert torch.isnan(torch.tensor(monitor(net)))
    net[1] = nn.Linear(16, 12)
    with torch.no_grad():
        net[1].weight[:8] = kept
    assert monitor(net) > 0 and monitor.best() in (0, 2)
    table = monitor.to_frame()
    assert table.dimension.tolist() == [8, 8, 12]
    assert "non-finite" in table.failure[1] and table.failure.ne("").tolist() == [0, 1, 0]
    with pytest.raises(ValueError, match="Got 1"):
        monitor.probability_better(1, 0)
