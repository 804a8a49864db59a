"""The training loop against the bare network, and against GCD's training, in one run.

    python studies/deep.py --model vit_base_patch16_224 --trainable last --image-size 224
    python studies/deep.py --model resnet18 --image-size 32 --batch 512

Images are random, because their content does not matter for speed.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
import warnings
from pathlib import Path

import numpy as np
import torch

from newfound.deep.network.backbone import load_backbone
from newfound.deep.engine import start_engine
from newfound.deep.method import Contrast, PrototypicalContrast
from newfound.deep.network.head import Network
from newfound.deep.settings import Settings
from newfound.deep.optimiser import make_optimiser
from newfound.deep.trainer import train


def synchronise():
    if torch.cuda.is_available():
        torch.cuda.synchronize()


def bare_rate(settings, n_steps):
    """Images per second through forward pass, backward pass and optimiser only."""
    fabric = start_engine(settings.run, settings.optimiser.batch_size)
    backbone = load_backbone(
        settings.network.model,
        settings.network.weights,
        image_size=settings.network.image_size,
        trainable=settings.network.trainable,
    )
    network = Network(backbone, PrototypicalContrast(settings).head(backbone.n_features))
    optimiser = make_optimiser(network, settings.optimiser)
    if fabric.device.type == "cuda":
        network.to(memory_format=torch.channels_last)
    if settings.run.compile:
        backbone.compile()
    network, optimiser = fabric.setup(network, optimiser)
    network.train()
    size = 2 * settings.optimiser.batch_size
    side = settings.network.image_size
    images = torch.randn(size, 3, side, side, device=fabric.device)
    images = images.contiguous(memory_format=torch.channels_last)
    times = []
    for _ in range(n_steps):
        synchronise()
        start = time.perf_counter()
        z, h = network(images)
        fabric.backward(z.square().mean() + h.square().mean())
        optimiser.step()
        optimiser.zero_grad(set_to_none=True)
        synchronise()
        times.append(time.perf_counter() - start)
    return size / float(np.median(times[n_steps // 4 :]))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", default="vit_base_patch16_224")
    parser.add_argument("--trainable", default=None)
    parser.add_argument("--image-size", type=int, default=224)
    parser.add_argument("--stored-size", type=int, default=None)
    parser.add_argument("--n-images", type=int, default=50_000)
    parser.add_argument("--batch", type=int, default=128)
    parser.add_argument("--epochs", type=int, default=11)
    parser.add_argument("--weights", default="random")
    parser.add_argument("--n-stored-views", type=int, default=0, help="needs weights")
    parser.add_argument("--compile", action="store_true")
    given = parser.parse_args()
    settings = Settings(
        model=given.model,
        weights=given.weights,
        n_stored_views=given.n_stored_views,
        trainable=given.trainable,
        image_size=given.image_size,
        n_labelled_per_batch=given.batch // 2,
        n_unlabelled_per_batch=given.batch // 2,
        epochs=given.epochs,
        compile=given.compile,
        warmup_epochs=1,
        count_on="start",  # as for pretrained weights
        learning_rate=1e-3,
        rehearse=False,
        selection="last",
    )
    warnings.simplefilter("ignore")
    rate = bare_rate(settings, 40 if torch.cuda.is_available() else 4)
    stored = given.stored_size or round(given.image_size / settings.views.crop_max)
    rng = np.random.default_rng(0)
    classes = rng.integers(0, 100, given.n_images)
    # each class has its own tint, so that the E-step finds categories
    tints = rng.integers(0, 200, (100, 3, 1, 1), dtype=np.uint8)[classes]
    pixels = rng.integers(0, 55, (given.n_images, 3, stored, stored), dtype=np.uint8) + tints
    y = np.where((classes < 80) & (rng.random(given.n_images) < 0.5), classes, -1)
    with tempfile.TemporaryDirectory() as folder:
        history = train(pixels, y, settings, Path(folder) / "gpc").history
        gcd = train(pixels, y, settings, Path(folder) / "gcd", method=Contrast(settings)).history
    later = history[1:]  # the first epoch also fills caches and counts categories
    seconds = sum(record.seconds for record in later)
    of_gcd = sum(record.seconds for record in gcd[1:])
    result = {
        "model": given.model,
        "n_stored_views": given.n_stored_views,
        "bare_images_per_second": round(rate),
        "end_to_end_images_per_second": round(np.mean([r.images_per_second for r in later])),
        "ratio": round(float(np.mean([r.images_per_second for r in later]) / rate), 3),
        "e_step_share": round(sum(r.e_step_seconds for r in later) / seconds, 3),
        "times_gcd": round(seconds / of_gcd, 3),
        "seconds": [r.seconds for r in history],
        "seconds_of_gcd": [r.seconds for r in gcd],
        "e_step_seconds": [r.e_step_seconds for r in history],
        "n_components": [r.n_components for r in history],
        "device": torch.cuda.get_device_name() if torch.cuda.is_available() else "cpu",
    }
    print(json.dumps(result))


if __name__ == "__main__":
    main()
