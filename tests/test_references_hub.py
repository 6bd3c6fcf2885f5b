"""Reference networks come from the hub where ranked models do, and nothing is asked elsewhere.

The hub is a server on this machine. It serves tiny networks of timm with random weights under the
names that the client of the hub asks for, and writes down what it was asked.
"""

import json
import os
import threading
from contextlib import contextmanager
from hashlib import sha256
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import pytest
import timm
import torch
from forks import run_to_the_end
from safetensors.torch import save

RANKED = "test_vit.r160_in1k"
REFERENCES = {  # name in the table -> network
    "first": "test_resnet.r160_in1k",
    "second": "test_convnext.r160_in1k",
    "third": "test_efficientnet.r160_in1k",
}
COMMIT = "0" * 40
ASKED_AT_IMPORT = ("huggingface_hub", "timm", "taskpriors")  # these read HF_* when imported

SCRIPT = """
import json, sys
import numpy as np
import taskpriors.rank.reference_set as reference_set
from taskpriors.rank.reference_set import _ReferenceModel
from taskpriors.rank.models import plan_models, rank_models
from taskpriors.rank.options import nested

case = json.loads(sys.argv[1])
table = tuple(_ReferenceModel(**row) for row in case["table"])
reference_set._read_reference_models = lambda: table
g = np.random.default_rng(0)
images = g.integers(0, 256, (24, 16, 16, 3), dtype=np.uint8)
rows = {name: g.normal(size=(24, 6)).astype("float32") for name in ("a", "b")}
models = {"net": case["model"], "a": rows["a"]} if case["model"] else rows
references = rows["b"] if case["references"] == "own" else case["references"]
references = {"own": references} if case["references"] == "own" else references
settings = nested(n_tasks=8, n_classes=2, cache=False)
if case["plan"]:
    plan = plan_models(models, images, references=references, **settings)
    answer = dict(downloads=plan.downloads, sizes=plan.download_bytes)
else:
    ranking = rank_models(models, images, references=references, **settings)
    weights = ranking.settings.get("reference_weights", {})
    answer = dict(weights=weights, notes=ranking.settings["notes"])
    answer["models"] = ranking.models
print(json.dumps(answer))
"""


@pytest.fixture(scope="module")
def weights():
    "Repository -> the file of its weights."
    files = {}
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        for name in (RANKED, *REFERENCES.values()):
            network = timm.create_model(name.partition(".")[0], pretrained=False)
            files[f"timm/{name}"] = save(network.state_dict())
    return files


class SmallHub(ThreadingHTTPServer):
    "A hub that sends files, and whose faults are set by repository."

    daemon_threads = True

    def __init__(self, files):
        super().__init__(("127.0.0.1", 0), Answer)
        self.files = files
        self.faults = {}  # repository -> "error", "truncated", "slow" or "stalled"
        self.asked = []  # method and path
        self.closing = threading.Event()

    @property
    def sent(self):
        "Repositories whose weights were asked for."
        return {path.split("/resolve/")[0][1:] for method, path in self.asked if method == "GET"}


class Answer(BaseHTTPRequestHandler):
    "What the hub says of one file."

    def log_message(self, *args):
        "Nothing on standard error."

    def do_HEAD(self):
        self.answer(body=False)

    def do_GET(self):
        self.answer(body=True)

    def answer(self, body):
        hub = self.server
        hub.asked.append((self.command, self.path))
        repository, _, rest = self.path[1:].partition("/resolve/")
        fault = hub.faults.get(repository)
        if fault == "slow" or (fault == "stalled" and body):
            hub.closing.wait(60)
            return
        data = hub.files.get(repository)
        if data is None or not rest.endswith("/model.safetensors"):
            self.send_response(200 if self.path == "/" else 404)
            self.send_header("X-Error-Code", "EntryNotFound")
            self.send_header("X-Repo-Commit", COMMIT)
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        if fault == "error" and body:
            self.send_response(500)
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        self.send_response(200)
        self.send_header("ETag", f'"{sha256(data).hexdigest()}"')
        self.send_header("X-Repo-Commit", COMMIT)
        sent = data[: len(data) // 2] if fault == "truncated" and body else data
        self.send_header("Content-Length", str(len(sent)))
        self.end_headers()
        if body:
            self.wfile.write(sent)


@contextmanager
def small_hub(files):
    "A hub that is gone afterwards."
    hub = SmallHub(files)
    thread = threading.Thread(target=hub.serve_forever)
    thread.start()
    try:
        yield hub
    finally:
        hub.closing.set()
        hub.shutdown()
        thread.join()
        hub.server_close()


@pytest.fixture
def hub(weights):
    with small_hub(weights) as server:
        yield server


def row_of(name, network, preference, size):
    "A reference model of the table."
    return dict(
        name=name,
        kind="images",
        family=name,
        preference=preference,
        source="hub",
        address=f"timm/{network}",
        network=network,
        side=160,
        parameters=1,
        bytes=size,
        operations=1,
        trained_on="nothing",
        licence="MIT",
        record="none",
    )


def rank(hub, home, *, model=RANKED, references="standard", plan=False, **environment):
    "Standard error and the answer of a ranking in a process whose hub this is."
    table = [
        row_of(name, network, k, len(hub.files[f"timm/{network}"]))
        for k, (name, network) in enumerate(REFERENCES.items(), 1)
    ]
    env = {k: None for k in os.environ if k.startswith(("HF_", "TRANSFORMERS_"))}
    env |= {
        "HF_ENDPOINT": f"http://127.0.0.1:{hub.server_port}",
        "HF_HOME": str(home),
        "HF_HUB_DISABLE_TELEMETRY": "1",
        "NO_PROXY": "127.0.0.1",
        "TASKPRIORS_REFERENCES": "",
        **environment,
    }
    case = json.dumps(dict(table=table, model=model, references=references, plan=plan))
    code, out, err = run_to_the_end("-c", SCRIPT, case, cwd=home, env=env, anew=ASKED_AT_IMPORT)
    return err, None if code else json.loads(out.splitlines()[-1])


def test_references_are_fetched_with_a_ranked_model_and_once(hub, tmp_path):
    err, planned = rank(hub, tmp_path, plan=True)
    assert planned, err
    assert planned["downloads"] == ["net", *REFERENCES] and hub.sent == set()
    assert planned["sizes"]["first"] == len(hub.files[f"timm/{REFERENCES['first']}"])
    err, first = rank(hub, tmp_path)
    assert first, err
    assert set(first["weights"]) >= set(REFERENCES), first
    assert set(first["models"]) == {"net", "a"}
    assert "They are downloaded first: first (" in err
    assert "HF_HUB_DOWNLOAD_TIMEOUT" in err
    assert any(
        note.startswith("Downloaded from the hub and not ranked: first") for note in first["notes"]
    )
    assert hub.sent == set(hub.files)
    hub.asked.clear()
    err, second = rank(hub, tmp_path)
    assert second, err
    assert set(second["weights"]) >= set(REFERENCES) and "is fetched" not in err
    assert not any("Downloaded from the hub" in note for note in second["notes"])
    assert hub.sent == set()


@pytest.mark.parametrize(
    "fault, says",
    [
        pytest.param("error", "500", marks=pytest.mark.long),
        ("truncated", "Consistency check failed"),
        ("slow", "no answer from the hub in time, HF_HUB_ETAG_TIMEOUT=1"),
        pytest.param(
            "stalled",
            "no answer from the hub in time, HF_HUB_ETAG_TIMEOUT=1",
            marks=pytest.mark.long,
        ),
    ],
)
def test_a_reference_that_cannot_be_fetched_is_left_out(fault, says, hub, tmp_path):
    address = f"timm/{REFERENCES['second']}"
    hub.faults[address] = fault
    patience = {}
    if fault in ("slow", "stalled"):
        patience = dict(HF_HUB_ETAG_TIMEOUT="1", HF_HUB_DOWNLOAD_TIMEOUT="1")
    err, answer = rank(hub, tmp_path, **patience)
    assert answer, err
    assert set(answer["models"]) == {"net", "a"}
    assert {"first", "third"} <= set(answer["weights"]) and "second" not in answer["weights"]
    left_out = [note for note in answer["notes"] if note.startswith("second, which is not ranked")]
    assert len(left_out) == 1 and f"{address} must be downloaded" in left_out[0], answer["notes"]
    assert says in left_out[0] and left_out[0].endswith(f"run `hf download {address}`."), left_out
    sent = [note for note in answer["notes"] if note.startswith("Downloaded from the hub")]
    assert len(sent) == 1 and "second" not in sent[0]
    hub.faults.clear()
    hub.asked.clear()
    err, answer = rank(hub, tmp_path, TASKPRIORS_REFERENCES="download")
    assert answer, err
    assert set(answer["weights"]) >= set(REFERENCES)
    assert hub.sent == {address}  # what had arrived is not sent again


@pytest.mark.parametrize(
    "case",
    [
        dict(model=None),
        dict(HF_HUB_OFFLINE="1"),
        dict(TRANSFORMERS_OFFLINE="1"),
        dict(HF_HUB_OFFLINE="1", TASKPRIORS_REFERENCES="download"),
    ],
)
def test_with_files_alone_or_offline_nothing_is_asked(case, hub, tmp_path):
    err, answer = rank(hub, tmp_path, **case)
    assert hub.asked == []
    if case.get("model", RANKED) is None:
        assert answer and not set(answer["weights"]) & set(REFERENCES), err
    else:
        assert (
            answer is None and "without a network connection, weights must be in the cache" in err
        )


def test_models_of_the_cache_bring_no_reference(hub, tmp_path):
    err, answer = rank(hub, tmp_path, references=False)
    assert answer, err
    assert hub.sent == {f"timm/{RANKED}"}
    hub.asked.clear()
    for environment in ({}, dict(HF_HUB_OFFLINE="1")):
        err, answer = rank(hub, tmp_path, HF_HUB_ETAG_TIMEOUT="1", **environment)
        assert answer and not set(answer["weights"]) & set(REFERENCES), err
        assert hub.sent == set() and "ownloaded from the hub" not in err
        assert not any(address in path for _, path in hub.asked for address in REFERENCES.values())
    assert np.all([method == "HEAD" for method, _ in hub.asked])


@pytest.mark.parametrize("named", [dict(references="own"), dict(TASKPRIORS_REFERENCES="none")])
def test_nobody_is_fetched_where_the_user_says_who_judges(named, hub, tmp_path):
    err, answer = rank(hub, tmp_path, **named)
    assert answer, err
    assert hub.sent == {f"timm/{RANKED}"}
    assert not set(answer["weights"]) & set(REFERENCES)
