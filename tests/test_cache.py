"""The cache where processes are killed, or two run at once, files are damaged, a disk is full, or
there is no network.
"""

import contextlib
import ctypes
import errno
import json
import os
import re
import shutil
import signal
import sys
import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from forks import Python, run_to_the_end
from PIL import Image

from taskpriors.inputs.embed import embed, embed_features
from taskpriors.inputs.encoders import PROBE_IMAGES
from taskpriors.inputs.images import load_images
from taskpriors.inputs.zoo import _ZOO, zoo_model
from taskpriors.rank.models import rank_models
from taskpriors.rank.options import nested
from taskpriors.store import cache_dir, load_tensors, save_tensors
from taskpriors.synbench.score import synbench_score

ROOT = Path(__file__).resolve().parent.parent
PROBE = PROBE_IMAGES  # rows that a model sees before the cache is asked: the probe
CHECK = PROBE_IMAGES + 3  # rows that it sees again before it embeds anything
SENTENCE = re.compile(r"(\w+: .+\. Got .*; .+\.)$", re.M)

# `work.py CACHE STOP` embeds 60 digits in batches of 5 and says what it did; it stands still at the
# first row after STOP.
WORK = """
import json, signal, sys
import numpy as np, torch
from torch import nn
from taskpriors.inputs.embed import embed_features
from taskpriors.inputs.images import load_images

class Slow(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("w", torch.arange(640.).reshape(64, 10).sin())
        self._stop, self._rows = float(sys.argv[2]), 0
    def forward(self, x):
        if self._rows > self._stop:
            signal.pause()
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

    def start(stop="inf", before="", cache=tmp_path / "cache", **env):
        if before:
            script.write_text(before + WORK)
        return Python(script, cache, stop, env={"OMP_NUM_THREADS": 1, **env})

    return start


def finish(process):
    out, err = process.communicate()
    assert process.returncode == 0, err
    return json.loads(out.splitlines()[-1])


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
    first = work(PROBE + CHECK + 30)
    first.wait_until(lambda: len(list(tmp_path.rglob("*.parts/*.safetensors"))) >= 2)
    first.send_signal(sig)
    assert first.wait() != 0
    done = sum(len(load_tensors(p)[0]["features"]) for p in tmp_path.rglob("*.parts/*.safetensors"))
    assert 10 <= done < 60, "the process was to die in the middle"
    second = finish(work())
    assert second["rows"] == PROBE + CHECK + 60 - done and not second["cached"]
    assert second["total"] == pytest.approx(expected, rel=1e-6)
    assert finish(work()) == {**second, "rows": PROBE, "cached": True}
    left = {p.suffix for p in (tmp_path / "cache" / "features").iterdir()}
    assert left == {".safetensors", ".json", ".lock"}, "no parts, no temporary files"


def test_two_processes_share_one_cache(work, tmp_path, expected):
    both = [work(), work()]
    got = [finish(p) for p in both]
    assert sorted(g["cached"] for g in got) == [False, True]
    fewer, more = sorted(g["rows"] for g in got)
    assert more == PROBE + CHECK + 60
    assert fewer in (PROBE, PROBE + CHECK), "the second one waited instead of working"
    assert got[0]["total"] == got[1]["total"] == pytest.approx(expected, rel=1e-6)


@pytest.mark.skipif(sys.platform == "win32", reason="POSIX limits")
def test_a_disk_that_fills_half_way_costs_the_cache_only(work, tmp_path, expected):
    """A limit of the operating system stands for the disk: no file may grow beyond 1,200 bytes, so
    parts fit and the whole does not.
    """
    limit = (
        "import resource, signal; signal.signal(signal.SIGXFSZ, signal.SIG_IGN); "
        "resource.setrlimit(resource.RLIMIT_FSIZE, (1200, 1200))\n"
    )
    process = work(before=limit, PYTHONDONTWRITEBYTECODE="1")
    out, err = process.communicate()
    assert process.returncode == 0, err
    assert err.count("UserWarning") == 1 and "no partial file was left" in err, err
    assert json.loads(out.splitlines()[-1])["total"] == pytest.approx(expected, rel=1e-6)
    folder = tmp_path / "cache" / "features"
    assert not list(folder.glob(".*.tmp")) and not list(folder.glob("*.safetensors"))
    (tmp_path / "work.py").write_text(WORK)
    again = finish(work())
    assert again["rows"] == PROBE + CHECK, "all parts had been saved"
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


def flat(image):
    return torch.from_numpy(np.array(image)[..., 0]).float().flatten() / 255


def one_embedding(cache):
    how = dict(transform=flat, name="m", progress=False)
    return embed_features(flat_net, load_images(limit=40), cache=cache, **how).features


def flat_net(x):
    return x[:, :30]


def one_score(cache):
    few = dict(input_size=(1, 4, 4), n_train=60, n_test=60, scales=(1.0, 2.0), progress=False)
    return synbench_score(torch.nn.Flatten(), cache=cache, **few).margin


def one_ranking(cache):
    models = {f"m{k}": (lambda x, k=k: x[:, k : k + 30], flat) for k in range(3)}
    metrics = dict(average=average, accuracy=True, mean=True)
    few = dict(n_tasks=6, n_classes=2, metrics=metrics, progress=False)
    few |= dict(references=False, baselines=False)  # they are stored as any other embedding
    got = rank_models(models, load_images(limit=24), **nested(cache=cache, **few))
    return torch.cat([got.skill, got.mean, got.accuracies.flatten(), got.extra["average"]])


def average(features):
    return features.mean()


average.key = "the mean of a test"


def one_network(cache):
    return torch.cat([v.flatten() for v in zoo_model("convnext_brief", cache=cache).parameters()])


CACHED = [one_embedding, one_score, one_ranking, one_network]


@pytest.fixture(autouse=True)
def nothing_said(monkeypatch):
    "No cache has been named by a warning."
    monkeypatch.setattr("taskpriors.store._UNWRITABLE", set())


@pytest.fixture(autouse=True)
def two_steps(monkeypatch):
    "How long a network is trained changes nothing here."
    monkeypatch.setitem(_ZOO, "convnext_brief", replace(_ZOO["convnext_brief"], steps=2))


@pytest.fixture
def whole(work, tmp_path_factory):
    "A cache that the work has filled, made once for all tests of a kind of work, and its result."
    if work not in WHOLE:
        folder = tmp_path_factory.mktemp(work.__name__)
        WHOLE[work] = folder, work(folder)
    return WHOLE[work]


WHOLE = {}


@contextlib.contextmanager
def warned(n, says=""):
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        yield
    told = [str(w.message) for w in told]
    assert len(told) == n and all(says in text for text in told), told


@contextlib.contextmanager
def disk(number, after):
    "Synchronising a file fails with this error number once so many calls worked."
    real, calls = os.fsync, []

    def fsync(fd):
        calls.append(fd)
        if len(calls) > after:
            raise OSError(number, os.strerror(number))
        return real(fd)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", fsync)
        yield


def a_file(tmp_path):
    (tmp_path / "taken").write_text("not a directory")
    return tmp_path / "taken"


def read_only(tmp_path):
    "A folder of a file system that nobody may write, not even root."
    for place in (Path("/proc/fs"), Path("/sys/kernel")):
        if place.is_dir():
            return place / "taskpriors"
    pytest.skip("no read-only file system")


class Capabilities(ctypes.Structure):
    "What a thread of Linux may do, see capset(2): capabilities 0 to 31, then 32 to 63."

    _fields_ = [(name, ctypes.c_uint32 * 3) for name in ("low", "high")]


OVERRIDE = 1 << 1  # CAP_DAC_OVERRIDE in the first of the three: effective, permitted, inheritable


@contextlib.contextmanager
def bound_by_permissions():
    "Root may write everywhere; here it may write only what the mode of a folder allows."
    if os.geteuid() != 0:
        yield
        return
    libc = ctypes.CDLL(None, use_errno=True)
    header = (ctypes.c_uint32 * 2)(0x20080522, 0)  # version 3, this thread
    before, now = Capabilities(), Capabilities()
    assert libc.capget(header, ctypes.byref(before)) == libc.capget(header, ctypes.byref(now)) == 0
    now.low[0] &= ~OVERRIDE
    assert libc.capset(header, ctypes.byref(now)) == 0, os.strerror(ctypes.get_errno())
    try:
        yield
    finally:
        assert libc.capset(header, ctypes.byref(before)) == 0


@pytest.mark.skipif(sys.platform != "linux", reason="capabilities of Linux")
@pytest.mark.parametrize("work", CACHED)
def test_a_folder_of_somebody_else_costs_the_cache_only(work, whole, tmp_path):
    _, expected = whole
    shut = tmp_path / "shut"
    shut.mkdir(mode=0o555)
    with bound_by_permissions(), warned(1, "The run continues without storing its results."):
        got = work(shut)
    assert torch.equal(got, expected) and not list(shut.iterdir())


@pytest.mark.parametrize("place", [a_file, read_only])
@pytest.mark.parametrize("work", CACHED)
def test_a_cache_that_cannot_be_written_costs_the_cache_only(work, whole, place, tmp_path):
    cache = place(tmp_path)
    _, expected = whole
    with warned(1, "The run continues without storing its results."):
        got = work(cache)
    assert torch.equal(got, expected)


@pytest.mark.parametrize("number, after", [(errno.ENOSPC, 0), (errno.ENOSPC, 2), (errno.EIO, 0)])
@pytest.mark.parametrize("work", CACHED)
def test_a_failing_disk_costs_the_cache_only(work, whole, number, after, tmp_path):
    _, expected = whole
    with disk(number, after), warned(1, os.strerror(number)):
        got = work(tmp_path / "cache")
    assert torch.equal(got, expected)
    assert not list(tmp_path.rglob("*.tmp"))
    with warned(0):
        again = work(tmp_path / "cache")
    assert torch.equal(again, expected), "nothing half-written is believed"


FORGERIES = {
    "no description": lambda tensors, about: (tensors, {}),
    "description that is none": lambda tensors, about: (tensors, [1]),
    "other names": lambda tensors, about: ({f"{k}_": v for k, v in tensors.items()}, about),
    "a tensor too many": lambda tensors, about: (dict(tensors, more=torch.ones(2)), about),
    "one row": lambda tensors, about: (
        of_each(tensors, lambda v: v[:1] if v.ndim else v[None]),
        about,
    ),
    "whole numbers": lambda tensors, about: (of_each(tensors, lambda v: v.to(torch.int32)), about),
    "NaN": lambda tensors, about: (of_each(tensors, not_a_number), about),
    "nothing": lambda tensors, about: ({}, about),
}


def of_each(tensors, change):
    return {name: change(v).contiguous() for name, v in tensors.items()}


def not_a_number(v):
    return v * torch.nan if v.is_floating_point() else v


def damage(path, kind):
    if kind == "cut":
        path.write_bytes(path.read_bytes()[:-1])
    elif kind == "empty":
        path.write_bytes(b"")
    else:
        tensors, about = load_tensors(path)
        save_tensors(path, *FORGERIES[kind](tensors, about), sidecar=False)


@pytest.mark.parametrize("kind", [*FORGERIES, "cut", "empty"])
@pytest.mark.parametrize("work", CACHED)
def test_what_is_something_else_is_computed_again_with_one_warning(work, whole, kind, tmp_path):
    folder, expected = whole
    shutil.copytree(folder, tmp_path, dirs_exist_ok=True)
    files = sorted(tmp_path.rglob("*.safetensors"))
    for path in files:
        damage(path, kind)
    with warned(len(files), "recomputed"):
        again = work(tmp_path)
    assert torch.equal(again, expected)
    with warned(0):
        assert torch.equal(work(tmp_path), expected)


@pytest.mark.parametrize("work", CACHED)
def test_a_whole_file_under_another_name_is_not_believed(work, tmp_path):
    "All files of each folder change places."
    expected = work(tmp_path)
    moved = 0
    for folder in {p.parent for p in tmp_path.rglob("*.safetensors")}:
        files = sorted(folder.glob("*.safetensors"))
        contents = [p.read_bytes() for p in files]
        for path, content in zip(files, contents[1:] + contents[:1], strict=True):
            path.write_bytes(content)
        moved += len(files) if len(files) > 1 else 0
    with warned(moved, "recomputed"):
        again = work(tmp_path)
    assert torch.equal(again, expected)


@pytest.mark.parametrize("work", CACHED)
def test_strangers_in_the_cache_are_ignored(work, tmp_path):
    expected = work(tmp_path)
    strangers = [
        "notes.txt",
        ".hidden",
        "a.parts",
        "x.safetensors",
        ".mine.tmp",
        "b.safetensors.lock",
    ]
    for folder in {tmp_path, *(p.parent for p in tmp_path.rglob("*.safetensors"))}:
        for name in strangers:
            (folder / name).write_text("mine")
    before = {p: p.read_bytes() for p in tmp_path.rglob("*") if p.is_file()}
    with warned(0):
        assert torch.equal(work(tmp_path), expected)
    assert all(p.read_bytes() == content for p, content in before.items())


@pytest.mark.parametrize("work", CACHED)
def test_pieces_of_a_killed_write_are_removed_by_the_next(work, tmp_path):
    work(tmp_path)
    path = sorted(tmp_path.rglob("*.safetensors"))[0]
    left = path.with_name(f".{path.name}.4711.0123abcd.tmp")
    other = path.with_name(".of_another.json.4711.0123abcd.tmp")
    for piece in (left, other):
        piece.write_text("a piece")
    path.unlink()
    with warned(0):
        work(tmp_path)
    assert path.exists() and not left.exists() and not other.exists()


def test_the_cache_is_not_in_the_repository(monkeypatch):
    monkeypatch.delenv("TASKPRIORS_CACHE", raising=False)
    assert ROOT not in cache_dir().resolve().parents


def test_no_network_is_one_sentence(tmp_path):
    says = {
        "resnet18": "timm must load the weights of resnet18",
        "hf-hub:nobody/nothing": "must load",
        "resnet18x": "did you mean resnet18",
    }
    script = f"""
from taskpriors.inputs.embed import embed
from taskpriors.inputs.images import load_images
for model in {list(says)}:
    try: embed(model, load_images(limit=4), cache={str(tmp_path)!r}, progress=False)
    except (OSError, ValueError) as e: print(e)
"""
    env = {"HF_HUB_OFFLINE": "1", "HF_HOME": str(tmp_path / "hub")}
    asked_at_import = ("huggingface_hub", "timm", "taskpriors")  # these read HF_* when imported
    code, out, err = run_to_the_end("-c", script, env=env, anew=asked_at_import)
    lines = out.splitlines()
    assert code == 0 and len(lines) == 3, out + err
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
    assert torch.equal(local, file) and local.shape == (3, 512) and module.shape == (3, 512)
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


def test_hugging_face_datasets(tmp_path):
    datasets = pytest.importorskip("datasets")
    for i in range(6):
        path = tmp_path / "set" / "train" / "ab"[i % 2] / f"{i}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.new("RGB", (5 + i, 4)).save(path)
    where = dict(split="train", cache_dir=str(tmp_path / "cache"), streaming=True)
    opened = [
        load_images(datasets.load_dataset(str(tmp_path / "set"), **where)),
        load_images(f"hfds/{tmp_path}/set", split="train", root=str(tmp_path / "cache")),
        load_images(tmp_path / "set" / "train"),
    ]
    assert len({s.fingerprint for s in opened[1:]}) == 1  # of files; a stream decodes its images
    assert all(
        s.labels.tolist() == [0, 0, 0, 1, 1, 1] and [im.width for im in s] == [5, 7, 9, 6, 8, 10]
        for s in opened
    )


def columns_of(image):
    return torch.tensor(np.array(image.convert("L"))).float() / 255


def test_a_network_in_the_onnx_format_is_a_model(tmp_path):
    "The file, its session and the same function give one ranking, each from the cache as well."
    onnx, runtime = pytest.importorskip("onnx"), pytest.importorskip("onnxruntime")
    from onnx import TensorProto, helper

    pictures = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 8, 8])
    rows = helper.make_tensor_value_info("rows", TensorProto.FLOAT, ["n", 64])
    graph = helper.make_graph(
        [helper.make_node("Flatten", ["x"], ["rows"])], "g", [pictures], [rows]
    )
    opset = [helper.make_opsetid("", 13)]
    path = tmp_path / "flat.onnx"
    onnx.save(helper.make_model(graph, opset_imports=opset, ir_version=8), str(path))
    session = runtime.InferenceSession(str(path))
    models = dict(function=(torch.nn.Flatten(), columns_of), session=(session, columns_of))
    how = dict(images=load_images(limit=40), cache=tmp_path / "cache", progress=False, n_tasks=8)
    how |= dict(references=False, baselines=False)
    named = rank_models([(str(path), columns_of)], **nested(**how))
    assert named.models == ("flat",) and named.settings["n"] == 40
    models["file"] = (path, columns_of)
    for _ in range(2):
        ranking = rank_models(models, **nested(**how))
        torch.testing.assert_close(ranking.skill, ranking.skill[:1].expand(3), rtol=1e-6, atol=1e-6)
    assert len(list((tmp_path / "cache" / "features").glob("*.safetensors"))) == 4
