"A SynBench score whose process is killed goes on where it stopped, and ends with the same numbers."

import json
import signal

import pytest
from forks import Python

from taskpriors.inputs.encoders import PROBE_IMAGES

SCALES, N = (1.0, 2.0, 3.0, 4.0), 150
PROBE = 2 * PROBE_IMAGES  # images that a model sees before the cache is asked: the probe, twice

# `work.py CACHE STOP` scores a small network at four scales and says how many images it saw; it
# stands still at the first image after STOP.
WORK = f"""
import json, signal, sys
import torch
from torch import nn
from taskpriors.synbench.score import synbench_score

class Slow(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("w", torch.arange(640.).reshape(64, 10).sin())
        self._stop, self._rows = float(sys.argv[2]), 0
    def forward(self, x):
        if self._rows > self._stop:
            signal.pause()
        self._rows += len(x)
        return (x.flatten(1) @ self.w).relu()

model = Slow()
r = synbench_score(
    model, input_size=(1, 8, 8), scales={SCALES}, eps=(0., .2), n_train={N}, n_test={N},
    batch_size=25, seed=3, cache=sys.argv[1], progress=False,
)
values = dict(score=r.score, accuracy=r.accuracy, margin=r.margin.double())
told = {{name: v.flatten().tolist() for name, v in values.items()}}
print(json.dumps(dict(rows=model._rows, **told)))
"""


def start(script, cache, stop="inf"):
    return Python(script, cache, stop, env={"OMP_NUM_THREADS": 1})


def finish(p):
    out, err = p.communicate()
    assert p.returncode == 0, err
    return json.loads(out)


def stored(cache):
    return {f.name: f.stat().st_mtime_ns for f in cache.rglob("scale-*.safetensors")}


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="no SIGKILL here")
def test_a_killed_score_goes_on_where_it_stopped(tmp_path):
    script, cache = tmp_path / "work.py", tmp_path / "cache"
    script.write_text(WORK)
    whole = finish(start(script, tmp_path / "other"))
    assert whole["rows"] == PROBE + 2 * N * len(SCALES)

    p = start(script, cache, stop=PROBE + 5 * N)
    p.wait_until(lambda: len(stored(cache)) == 2)
    p.kill()  # SIGKILL: no handler runs, nothing is tidied up
    p.communicate()
    assert p.returncode == -signal.SIGKILL
    done = stored(cache)
    assert len(done) == 2

    resumed = finish(start(script, cache))
    left = len(SCALES) - len(done)
    assert resumed["rows"] == PROBE + 2 * N * left  # no finished scale was computed again
    assert {k: stored(cache)[k] for k in done} == done  # nor written
    assert len(stored(cache)) == len(SCALES)
    for key in ("score", "accuracy", "margin"):
        assert resumed[key] == whole[key]

    again = finish(start(script, cache))
    assert again["rows"] == PROBE and again["score"] == whole["score"]


def test_a_damaged_scale_is_measured_again_with_one_warning(tmp_path):
    script, cache = tmp_path / "work.py", tmp_path / "cache"
    script.write_text(WORK)
    whole = finish(start(script, cache))
    path = sorted(cache.rglob("scale-*.safetensors"))[0]
    path.write_bytes(path.read_bytes()[:-1])
    p = start(script, cache)
    out, err = p.communicate()
    assert p.returncode == 0, err
    assert err.count(path.name) == 1 and "is recomputed" in err
    again = json.loads(out)
    assert again["rows"] == PROBE + 2 * N  # one scale of four
    for key in ("score", "accuracy", "margin"):
        assert again[key] == whole[key]
