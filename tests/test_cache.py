"""The cache against a hostile world: killed processes, two at once, damaged files, a full disk, no
network.
"""

import json
import os
import re
import signal
import subprocess
import sys
import time
import warnings
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from taskpriors.encoders import PROBE_IMAGES
from taskpriors.rank.embed import embed, embed_features
from taskpriors.rank.images import load_images
from taskpriors.store import cache_dir, load_tensors

ROOT = Path(__file__).resolve().parent.parent
PROBE = 2 * PROBE_IMAGES  # rows that a model sees before the cache is asked: the probe, twice
SENTENCE = re.compile(r"(\w+: .+\. Got .*; .+\.)$", re.M)

# `work.py CACHE PAUSE` embeds 60 digits in batches of 5, waits PAUSE seconds in each, and says what
# it did.
WORK = """
import json, sys, time
import numpy as np, torch
from torch import nn
from taskpriors.rank.embed import embed_features
from taskpriors.rank.images import load_images

class Slow(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("w", torch.arange(640.).reshape(64, 10).sin())
        self._pause, self._rows = float(sys.argv[2]), 0
    def forward(self, x):
        time.sleep(self._pause)
        self._rows += len(x)
        return x @ self.w

def flat(image): return torch.from_numpy(np.array(image)[..., 0]).float().flatten()

model = Slow()
print("ready", flush=True)
how = dict(transform=flat, batch_size=5, cache=sys.argv[1], save_every=0, progress=False)
try: got = embed_features(model, load_images(limit=60), **how)
except OSError as e: sys.exit(f"{type(e).__name__} {e}")
total = got.features.double().sum().item()
print(json.dumps(dict(rows=model._rows, cached=got.cached, total=total)))
"""


@pytest.fixture
def work(tmp_path):
    script = tmp_path / "work.py"
    script.write_text(WORK)

    def start(pause=0.0, before="", cache=tmp_path / "cache", **env):
        if before:
            script.write_text(before + WORK)
        env = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1", **env}
        return subprocess.Popen(
            [sys.executable, script, cache, str(pause)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=env,
        )

    return start


def finish(process):
    out, err = process.communicate(timeout=300)
    assert process.returncode == 0, err
    return json.loads(out.splitlines()[-1])


def wait_for_parts(folder, n, process):
    for _ in range(3000):
        if len(list(folder.rglob("*.parts/*.safetensors"))) >= n:
            return
        assert process.poll() is None, process.communicate()
        time.sleep(0.02)
    raise AssertionError("no parts appeared")


@pytest.fixture(scope="module")
def expected():
    w = torch.arange(640.0).reshape(64, 10).sin()
    x = torch.stack(
        [torch.from_numpy(np.array(im)[..., 0]).float().flatten() for im in load_images(limit=60)]
    )
    return (x @ w).double().sum().item()


@pytest.mark.skipif(sys.platform == "win32", reason="POSIX signals")
@pytest.mark.parametrize("sig", [signal.SIGKILL, signal.SIGINT], ids=["kill -9", "Ctrl-C"])
def test_a_killed_run_goes_on_where_it_stopped(work, tmp_path, expected, sig):
    first = work(0.3)
    wait_for_parts(tmp_path, 2, first)
    first.send_signal(sig)
    assert first.wait(60) != 0
    first.communicate()
    done = sum(len(load_tensors(p)[0]["features"]) for p in tmp_path.rglob("*.parts/*.safetensors"))
    assert 10 <= done < 60, "the process was to die in the middle"
    second = finish(work())
    assert second["rows"] == PROBE + 60 - done and not second["cached"]
    assert second["total"] == pytest.approx(expected, rel=1e-6)
    assert finish(work()) == {**second, "rows": PROBE, "cached": True}
    left = {p.suffix for p in (tmp_path / "cache" / "features").iterdir()}
    assert left == {".safetensors", ".json", ".lock"}, "no parts, no temporary files"


def test_two_processes_share_one_cache(work, tmp_path, expected):
    both = [work(0.1), work(0.1)]
    got = [finish(p) for p in both]
    assert sorted(g["cached"] for g in got) == [False, True]
    assert sorted(g["rows"] for g in got) == [PROBE, PROBE + 60], (
        "the second one waited instead of working"
    )
    assert got[0]["total"] == got[1]["total"] == pytest.approx(expected, rel=1e-6)


@pytest.mark.skipif(sys.platform == "win32", reason="POSIX limits")
def test_a_full_disk_is_one_sentence_and_costs_nothing(work, tmp_path, expected):
    """A limit of the operating system stands for the disk: no file may grow beyond 1,200 bytes, so
    parts fit and the whole does not.
    """
    limit = (
        "import resource, signal; signal.signal(signal.SIGXFSZ, signal.SIG_IGN); "
        "resource.setrlimit(resource.RLIMIT_FSIZE, (1200, 1200))\n"
    )
    process = work(before=limit, PYTHONDONTWRITEBYTECODE="1")
    out, err = process.communicate(timeout=300)
    assert process.returncode == 1 and SENTENCE.search(err) and "nothing was half-written" in err, (
        err
    )
    folder = tmp_path / "cache" / "features"
    assert not list(folder.glob(".*.tmp")) and not list(folder.glob("*.safetensors"))
    (tmp_path / "work.py").write_text(WORK)
    again = finish(work())
    assert again["rows"] == PROBE, "all parts had been saved"
    assert again["total"] == pytest.approx(expected, rel=1e-6)


def test_damaged_files_are_found_and_made_again(tmp_path):
    images = load_images(limit=20)

    def run():
        return embed_features("zoo/gradients", images, cache=tmp_path, progress=False)

    good = run()
    (path,) = tmp_path.rglob("*.safetensors")
    whole = path.read_bytes()
    damaged = [
        whole[:0],
        whole[:7],
        whole[: len(whole) // 2],
        whole[:-1],
        whole + b"x",
        bytes(len(whole)),
        whole[::-1],
    ]
    damaged += [
        whole[:i] + bytes([whole[i] ^ 128]) + whole[i + 1 :]
        for i in (0, 9, 200, len(whole) // 2, len(whole) - 1)
    ]
    for content in damaged:
        path.write_bytes(content)
        with pytest.warns(UserWarning, match="truncated or altered"):
            again = run()
        assert not again.cached and torch.equal(again.features, good.features)
        assert path.read_bytes()[8:] and run().cached
    path.with_suffix(".json").write_text("{")
    assert run().cached, "the readable copy is for people only"


def test_a_cache_that_cannot_be_written_is_one_sentence(tmp_path):
    (tmp_path / "file").write_text("not a directory")
    with pytest.raises(OSError) as e:
        embed("zoo/gradients", load_images(limit=5), cache=tmp_path / "file", progress=False)
    assert SENTENCE.match(str(e.value)), str(e.value)


def test_the_cache_is_not_in_the_repository(monkeypatch):
    monkeypatch.delenv("TASKPRIORS_CACHE", raising=False)
    assert ROOT not in cache_dir().resolve().parents


def test_no_network_is_one_sentence(tmp_path):
    says = {
        "resnet18": "weights of resnet18 must load",
        "hf-hub:nobody/nothing": "must load",
        "resnet18x": "did you mean resnet18",
    }
    script = f"""
from taskpriors.rank.embed import embed
from taskpriors.rank.images import load_images
for model in {list(says)}:
    try: embed(model, load_images(limit=4), cache={str(tmp_path)!r}, progress=False)
    except (OSError, ValueError) as e: print(e)
"""
    env = {
        **os.environ,
        "PYTHONPATH": str(ROOT),
        "HF_HUB_OFFLINE": "1",
        "HF_HOME": str(tmp_path / "hub"),
    }
    run = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, env=env, check=True
    )
    lines = run.stdout.splitlines()
    assert len(lines) == 3, run.stdout + run.stderr
    for line, part in zip(lines, says.values(), strict=True):
        assert SENTENCE.match(line) and part in line, line
    assert not list(tmp_path.rglob("*.safetensors"))


def test_weights_from_a_local_folder(tmp_path):
    timm = pytest.importorskip("timm")
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(5)
        model = timm.create_model("resnet10t", num_classes=3)
    timm.models.save_for_hf(model, str(tmp_path / "mine"))
    torch.save(model.state_dict(), tmp_path / "weights.pth")
    images = load_images(limit=3)
    local, file, module = (
        embed(m, images, cache=False, progress=False)
        for m in (
            f"local-dir:{tmp_path / 'mine'}",
            f"resnet10t@{tmp_path / 'weights.pth'}",
            model.eval(),
        )
    )
    assert torch.equal(local, file) and local.shape == (3, 512) and module.shape == (3, 3)
    assert not torch.allclose(
        local, embed("resnet10t@untrained", images, cache=False, progress=False)
    )


def test_one_unreadable_image_among_ten_thousand(tmp_path):
    image = tmp_path / "first.png"
    Image.fromarray(np.arange(64, dtype=np.uint8).reshape(8, 8)).save(image)
    data = image.read_bytes()
    for i in range(10_000):
        (tmp_path / f"{i}.png").write_bytes(data if i != 6_543 else data[:40])
    image.unlink()
    with pytest.warns(UserWarning, match="1 of 10000 images .* 6543.png"):
        images = load_images(tmp_path)
    assert len(images) == 9_999 and [name for name, _ in images.skipped] == ["6543.png"]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert load_images(tmp_path, limit=100).fingerprint == load_images([data] * 100).fingerprint


def test_hugging_face_datasets_and_tar_files(tmp_path):
    pytest.importorskip("datasets")
    import tarfile

    for i in range(6):
        path = tmp_path / "set" / "train" / "ab"[i % 2] / f"{i}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.new("RGB", (5 + i, 4)).save(path)
    with tarfile.open(tmp_path / "set.tar", "w") as t:
        t.add(tmp_path / "set" / "train", "train")
    opened = [
        load_images(f"hfds/{tmp_path}/set", split="train", root=str(tmp_path / "cache")),
        load_images(tmp_path / "set.tar"),
        load_images(tmp_path / "set" / "train"),
    ]
    assert len({s.fingerprint for s in opened}) == 1
    assert all(
        s.labels.tolist() == [0, 0, 0, 1, 1, 1] and [im.width for im in s] == [5, 7, 9, 6, 8, 10]
        for s in opened
    )
