"""A ranking from disk that is interrupted, loses a worker or finds the disk full.

Models go to workers by path. The four processes of the cluster are forks of one that has imported
torch, because importing it four times takes most of a minute of two cores.
"""

import errno
import os
import sys
import tempfile
from concurrent.futures.process import BrokenProcessPool
from functools import partial
from pathlib import Path

import dask
import distributed
import fsspec
import numpy as np
import pytest
import torch
from distributed.utils import get_mp_context
from other_device import NAME, OtherDevice

from taskpriors.prior import low_rank_prior, ridge_on_disk
from taskpriors.rank.models import rank_models
from taskpriors.rank.options import nested


def rank_rows(models, **options):
    return rank_models(models, **nested(on_disk=True, **options))


def scores(fn):
    "Is it the function that scores a model, as a worker is given it, and not the door's trial?"
    while getattr(fn, "args", ()):
        fn = fn.args[0]
    return getattr(fn, "func", fn).__name__ == "_score_in_worker"


def die_once(fn, marker, item):
    "Compute `fn(item)`; the first of all calls that scores a model ends its process instead."
    if scores(fn):
        try:
            os.close(os.open(marker, os.O_CREAT | os.O_EXCL))
        except FileExistsError:
            pass
        else:
            os._exit(1)
    return fn(item)


class Deadly:
    "An executor one of whose workers dies."

    def __init__(self, executor, marker):
        self.executor, self.marker = executor, marker

    def map(self, fn, items):
        return self.executor.map(partial(die_once, fn, self.marker), items)


@pytest.fixture
def files(tmp_path):
    g = torch.Generator().manual_seed(0)
    S = torch.randn(400, 6, generator=g)
    found = {}
    for k in range(4):
        found[f"model {k}"] = tmp_path / f"{k}.npy"
        X = S @ torch.randn(6, 8, generator=g) + 0.3 * k * torch.randn(400, 8, generator=g)
        np.save(found[f"model {k}"], X.numpy())
    return found


@pytest.fixture
def cluster():
    "Four processes on this machine, forked from one that has imported what they need."
    how = dict(n_workers=4, threads_per_worker=1, processes=True, dashboard_address=None)
    with dask.config.set({"distributed.worker.multiprocessing-method": "forkserver"}):
        needed = ["distributed", "taskpriors.rank.disk"]
        get_mp_context().set_forkserver_preload(needed)
        with distributed.LocalCluster(**how) as made:
            yield made


def test_a_worker_that_dies_changes_nothing(files, cluster, tmp_path):
    how = dict(n_tasks=16, n_classes=3, cache=False, progress=False, metrics="all")
    how["labels"] = torch.arange(400) % 3
    here = rank_rows(files, **how)
    with distributed.Client(cluster) as client:
        deadly = Deadly(client.get_executor(), str(tmp_path / "dead"))
        there = rank_rows(files, executor=deadly, **how)
    assert (tmp_path / "dead").exists()
    assert_same(there, here)


def forbid(folder):
    "From now on this process may open nothing in a folder."

    def watch(event, args):
        if event == "open" and str(args[0]).startswith(folder):
            raise PermissionError(args[0])

    sys.addaudithook(watch)


def name_server(names):
    "Set variables in the environment of this process: a worker may be older than the server."
    os.environ.update(names)


@pytest.fixture
def bucket(monkeypatch):
    "A bucket of an S3 server on this machine, as a URL, and what names the server to a process."
    from moto.server import ThreadedMotoServer

    server = ThreadedMotoServer("127.0.0.1", 0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    names = dict.fromkeys(("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"), "testing")
    names["AWS_ENDPOINT_URL"] = f"http://{host}:{port}"
    for name, value in names.items():
        monkeypatch.setenv(name, value)
    s3 = fsspec.filesystem("s3", skip_instance_cache=True)
    s3.mkdir("bucket")
    yield "s3://bucket", names
    s3.rm("bucket", recursive=True)
    server.stop()


@pytest.mark.long
def test_workers_that_share_no_folder_rank_from_a_store(
    files, bucket, cluster, tmp_path, monkeypatch
):
    "Features, labels and tasks travel through S3; the workers can open no file of this process."
    bucket, names = bucket
    known = KNOWN[:100]
    for file in files.values():
        np.save(file, np.load(file)[: len(known)])
    store = fsspec.filesystem("s3")
    urls = {name: f"{bucket}/{file.name}" for name, file in files.items()}
    for name, file in files.items():
        store.put_file(str(file), urls[name])
    with store.open(f"{bucket}/labels.csv", "w") as file:
        file.write("label\n" + "\n".join(map(str, known.tolist())))
    labels = f"{bucket}/labels.csv"
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    how = dict(n_tasks=16, n_classes=3, progress=False, cache=False, metrics="all")
    here = rank_rows(files, labels=known, **how)
    assert_same(
        rank_models(urls, **nested(labels=labels, **how)),
        rank_models(files, **nested(labels=known, **how)),
    )
    with distributed.Client(cluster) as client:
        client.wait_for_workers(4)  # a late one would not hear what follows
        client.run(name_server, names)
        client.run(forbid, str(tmp_path))
        workers = dict(executor=client.get_executor(), labels=labels, **how)
        unread = r"at least one model must work\. Got 4 models: \S+skill\.npy"
        with pytest.raises(ValueError, match=unread):  # no worker can open this file
            rank_rows(urls, **workers)
        there = rank_rows(urls, scratch=f"{bucket}/scratch", **workers)
    assert_same(there, here)
    store.invalidate_cache()
    assert not store.exists(f"{bucket}/scratch")


def assert_same(a, b):
    for name in ("skill", "accuracies", "mean", "variance", "point_errors"):
        torch.testing.assert_close(getattr(a, name), getattr(b, name), rtol=1e-5, atol=1e-6)


FEW = dict(n_tasks=16, n_classes=3, metrics="all", progress=False)
KNOWN = torch.arange(400) % 3


@pytest.fixture
def scored(monkeypatch):
    "Names of the models that are scored, in order."
    names, plain = [], ridge_on_disk.scores_of_rows

    def counted(rows, *args, **how):
        names.append(rows.name)
        return plain(rows, *args, **how)

    monkeypatch.setattr(ridge_on_disk, "scores_of_rows", counted)
    return names


class Interrupted:
    "An executor that is interrupted after two models were scored."

    def map(self, fn, items):
        for k, item in enumerate(items):
            if k == 2 and scores(fn):
                raise KeyboardInterrupt
            yield fn(item)


class Broken:
    "A pool of processes that loses one while it scores the third model."

    def map(self, fn, items):
        for k, item in enumerate(items):
            if k == 2 and scores(fn):
                raise BrokenProcessPool("A process in the process pool was terminated abruptly")
            yield fn(item)


STOPS = {
    "interrupted": (Interrupted(), KeyboardInterrupt, None),
    "broken": (Broken(), RuntimeError, "workers must not terminate. Got A process.*; run again"),
}


@pytest.mark.parametrize("stop", STOPS)
def test_a_run_goes_on_where_it_stopped(files, scored, monkeypatch, stop):
    executor, error, said = STOPS[stop]
    how = dict(FEW, cache=files["model 0"].with_name("cache"), labels=KNOWN)
    with pytest.raises(error, match=said):
        rank_rows(files, executor=executor, **how)
    assert scored == ["model 0", "model 1"]
    monkeypatch.setattr(low_rank_prior, "row_kernel", None)
    monkeypatch.setattr(low_rank_prior, "low_rank_prior", None)
    resumed = rank_rows(files, **how)
    assert scored == 2 * [f"model {k}" for k in range(4)]  # over the tasks, and over the labels
    monkeypatch.undo()
    whole = rank_rows(files, **dict(FEW, cache=False, labels=KNOWN))
    for name in ("skill", "accuracies", "mean", "variance", "point_errors"):
        assert torch.equal(getattr(resumed, name), getattr(whole, name)), name
    for name in ("label skill", "label accuracy"):
        assert torch.equal(resumed.extra[name], whole.extra[name]), name


FULL = {  # numpy says how much it wrote, and not why it stopped
    "No space left on device": OSError(errno.ENOSPC, "No space left on device"),
    "9000 requested and 4096 written": OSError("9000 requested and 4096 written"),
}


@pytest.mark.parametrize("said", FULL)
@pytest.mark.parametrize("what", ["skill.npy", "labels.npy"])
def test_a_full_disk_leaves_nothing_behind(files, tmp_path, monkeypatch, what, said):
    room = tmp_path / "room"
    room.mkdir()
    plain = np.save

    def save(path, array):
        if Path(path).name == what:
            Path(path).write_bytes(b"half")
            raise FULL[said]
        plain(path, array)

    monkeypatch.setattr(tempfile, "tempdir", str(room))
    monkeypatch.setattr(np, "save", save)
    with pytest.raises(OSError, match=f"{said}.*set TMPDIR"):
        rank_rows(files, labels=KNOWN, **dict(FEW, cache=False))
    assert not list(room.iterdir())


def shrink_before(monkeypatch, path, module, step):
    "Truncate a file when a step of the library begins."
    plain = getattr(module, step)

    def shrinking(*args, **how):
        os.truncate(path, min(path.stat().st_size, 5000))
        return plain(*args, **how)

    monkeypatch.setattr(module, step, shrinking)


def test_a_file_that_shrinks_while_tasks_are_drawn_is_refused(files, monkeypatch):
    shrink_before(monkeypatch, files["model 1"], low_rank_prior, "low_rank_prior")
    with pytest.raises(OSError, match="the file of model 1 must"):
        rank_rows(files, **dict(FEW, cache=False))


@pytest.mark.parametrize("when", ["kernels", "scores"])
def test_a_file_that_shrinks_is_a_failure(files, monkeypatch, when):
    module, step = {
        "kernels": (low_rank_prior, "row_kernel"),
        "scores": (ridge_on_disk, "scores_of_rows"),
    }[when]
    shrink_before(monkeypatch, files["model 1"], module, step)
    ranking = rank_rows(files, **dict(FEW, cache=False))
    assert list(ranking.models) == ["model 0", "model 2", "model 3"]
    assert list(ranking.failures) == ["model 1"]
    assert "the file of model 1 must" in ranking.failures["model 1"]
    assert ranking.mean.shape == ranking.skill.shape == (3,)


def test_a_value_that_is_no_number_is_named_by_its_row(files):
    X = np.lib.format.open_memmap(files["model 2"], mode="r+")
    X[317, 4] = np.nan
    X.flush()
    ranking = rank_rows(
        files | {"none": files["model 0"].with_name("none.npy")}, cache=False, **FEW
    )
    assert list(ranking.models) == ["model 0", "model 1", "model 3"]
    assert (
        "model 2 must be finite. Got a non-finite value in row 317" in ranking.failures["model 2"]
    )
    assert "must exist" in ranking.failures["none"]


@pytest.mark.parametrize("prior", ["product", "of a file"])
def test_rows_go_to_another_device(files, prior):
    two = {name: files[name] for name in ("model 0", "model 1")}
    how = dict(n_tasks=4, n_classes=3, metrics="all", progress=False, cache=False)
    how["labels"] = torch.arange(400) % 5
    how["prior"] = files["model 3"] if prior == "of a file" else prior
    here = rank_rows(two, **how)
    with OtherDevice() as other:
        there = rank_rows(two, device=NAME, **how)
    assert other.made > 1000
    assert there.settings["models"]["model 0"]["device"] == NAME
    for name in ("skill", "accuracies", "mean", "variance", "point_errors"):
        found = getattr(there, name)
        assert type(found) is torch.Tensor, name
        torch.testing.assert_close(found, getattr(here, name), rtol=1e-5, atol=1e-6)
    assert there.extra["label accuracy"].equal(here.extra["label accuracy"])


def test_the_other_device_refuses_tensors_of_two_devices():
    with OtherDevice():
        X = torch.ones(3, 2).to(NAME)
        with pytest.raises(RuntimeError, match="two devices"):
            X @ torch.ones(2, 2)
        assert (X @ torch.ones(2, 2, device=NAME)).sum().item() == 12
