"""Features of all images, with and without kept inputs."""

import os

import numpy as np
import pytest
import torch
from lightning_fabric import Fabric

from newfound.deep.images import extraction
from newfound.deep.images.extraction import Extractor, features_of_pictures
from newfound.deep.images.feed import Feed
from newfound.deep.images.views import Views
from newfound.deep.network.backbone import load_backbone
from newfound.errors import DiscoveryWarning

VIEWS = Views(16, crop_min=1.0, crop_max=1.0)


@pytest.fixture(scope="module")
def fabric():
    return Fabric(accelerator="cpu", devices=1)


@pytest.fixture(params=["test_vit", "test_resnet"])
def backbone(request):
    torch.manual_seed(0)
    return load_backbone(request.param, "random", image_size=16, trainable="last")


def extractor(backbone, digits, fabric, keep_inputs=True):
    feed = Feed(digits.pixels, fabric.device)
    return Extractor(backbone, VIEWS, feed, fabric, keep_inputs=keep_inputs)


def features_by(extractor):
    return extractor.features().numpy()


@torch.no_grad()
def slow_features(backbone, digits):
    """One image at a time through the whole network."""
    was_training = backbone.training
    backbone.eval()
    images = torch.from_numpy(digits.pixels)
    rows = [backbone(VIEWS.centre(image[None]))[0] for image in images]
    backbone.train(was_training)
    return torch.stack(rows).numpy()


def watch_frozen_part(backbone, monkeypatch):
    seen = []
    original = backbone.before
    monkeypatch.setattr(
        backbone, "before", lambda images: (seen.append(len(images)), original(images))[1]
    )
    return seen


def train_a_little(backbone, digits):
    """Steps in training mode, which move the trained weights and any batch statistics."""
    trained = [value for value in backbone.parameters() if value.requires_grad]
    optimiser = torch.optim.SGD(trained, lr=0.1)
    backbone.train()
    for rows in np.split(np.arange(64), 2):
        images = VIEWS.centre(torch.from_numpy(digits.pixels[rows]))
        optimiser.zero_grad()
        backbone(images).square().mean().backward()
        optimiser.step()


def test_features_are_those_of_the_middle_views(backbone, digits, fabric):
    features = features_by(extractor(backbone, digits, fabric))
    assert features.dtype == np.float32
    assert features.shape == (len(digits.y), backbone.n_features)
    np.testing.assert_allclose(features, slow_features(backbone, digits), atol=1e-5)


def test_kept_inputs_give_the_same_features_after_training(backbone, digits, fabric, monkeypatch):
    keeping = extractor(backbone, digits, fabric)
    first = features_by(keeping)
    seen = watch_frozen_part(backbone, monkeypatch)
    np.testing.assert_array_equal(features_by(keeping), first)
    assert seen == []  # the frozen part has not run again
    train_a_little(backbone, digits)
    seen.clear()
    features = features_by(keeping)
    assert seen == []
    assert np.abs(features - first).max() > 1e-3
    np.testing.assert_allclose(features, slow_features(backbone, digits), atol=1e-5)
    fresh = features_by(extractor(backbone, digits, fabric, keep_inputs=False))
    np.testing.assert_array_equal(features, fresh)


def test_without_kept_inputs_the_whole_network_runs_each_time(
    backbone, digits, fabric, monkeypatch
):
    seen = watch_frozen_part(backbone, monkeypatch)
    forgetting = extractor(backbone, digits, fabric, keep_inputs=False)
    for n_times in (1, 2):
        forgetting.features()
        assert sum(seen) == n_times * len(digits.y)


def test_when_everything_is_trained_nothing_is_kept(digits, fabric, monkeypatch):
    backbone = load_backbone("test_resnet", "random", image_size=16, trainable="all")
    keeping = extractor(backbone, digits, fabric)
    keeping.features()
    train_a_little(backbone, digits)
    np.testing.assert_allclose(features_by(keeping), slow_features(backbone, digits), atol=1e-5)


def test_short_memory_is_said_and_changes_no_feature(backbone, digits, fabric, monkeypatch):
    expected = features_by(extractor(backbone, digits, fabric))
    monkeypatch.setattr(extraction, "free_memory", lambda device: 4096)
    short = extractor(backbone, digits, fabric)
    with pytest.warns(DiscoveryWarning, match="GiB to spare"):
        np.testing.assert_array_equal(features_by(short), expected)
    seen = watch_frozen_part(backbone, monkeypatch)
    np.testing.assert_array_equal(features_by(short), expected)  # warned once, not again
    assert sum(seen) == len(digits.y)


@pytest.mark.parametrize("training", [False, True])
def test_the_network_is_left_as_it_was(backbone, digits, fabric, training):
    backbone.train(training)
    modes = {name: module.training for name, module in backbone.named_modules()}
    state = {name: value.clone() for name, value in backbone.state_dict().items()}
    keeping = extractor(backbone, digits, fabric)
    keeping.features()
    keeping.features()
    assert {name: module.training for name, module in backbone.named_modules()} == modes
    for name, value in backbone.state_dict().items():
        assert torch.equal(value, state[name])


def test_progress_is_reported(backbone, digits, fabric):
    reported = []
    extractor(backbone, digits, fabric).features(lambda done, to_do: reported.append((done, to_do)))
    assert reported[-1] == (len(digits.y), len(digits.y))
    assert {to_do for _, to_do in reported} == {len(digits.y)}
    assert [done for done, _ in reported] == sorted({done for done, _ in reported})


def test_features_need_no_gradients(backbone, digits, fabric, monkeypatch):
    enabled = []
    original = backbone.after
    monkeypatch.setattr(
        backbone, "after", lambda x: (enabled.append(torch.is_grad_enabled()), original(x))[1]
    )
    extractor(backbone, digits, fabric).features()
    assert not any(enabled)


def test_free_memory_is_less_than_all_there_is_and_more_than_nothing():
    here = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    assert 0 < extraction.free_memory(torch.device("cpu")) <= here


def test_pictures_are_normalised_and_the_mode_is_left_alone():
    backbone = load_backbone("test_efficientnet", "random", image_size=64).train()
    pictures = np.random.default_rng(0).integers(0, 256, (4, 64, 64, 3), dtype=np.uint8)
    pictures.flags.writeable = False
    features = features_of_pictures(backbone, pictures)
    assert backbone.training
    assert features.dtype == np.float32
    mean, std = np.float32(backbone.mean), np.float32(backbone.std)
    x = torch.from_numpy(((pictures / np.float32(255) - mean) / std).transpose(0, 3, 1, 2))
    with torch.no_grad():
        expected = backbone.eval()(x)
    np.testing.assert_allclose(features, expected, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(
        features_of_pictures(backbone, pictures[2:3]), features[2:3], rtol=1e-4, atol=1e-4
    )


def test_without_an_engine_the_features_are_the_same(backbone, digits, fabric):
    feed = Feed(digits.pixels, torch.device("cpu"))
    alone = Extractor(backbone, VIEWS, feed, chunk=64)
    np.testing.assert_array_equal(
        features_by(alone), features_by(extractor(backbone, digits, fabric))
    )


def test_the_mode_is_put_back_even_if_an_image_cannot_be_read(backbone, digits):
    backbone.train()

    def broken(images):
        raise OSError

    with pytest.raises(OSError):  # noqa: PT011
        extraction.features_of(backbone, map(broken, [1]))
    assert backbone.training


def test_a_cpu_gets_few_large_images_at_a_time():
    cpu, gpu, other = map(torch.device, ("cpu", "cuda", "mps"))
    sizes = [extraction.chunk_size(cpu, side) for side in (28, 64, 96, 224, 448, 4000)]
    assert sizes == [64, 64, 43, 8, 2, 1]
    assert [extraction.chunk_size(device, 224) for device in (gpu, other)] == [512, 64]


def test_pictures_go_through_the_network_in_chunks(monkeypatch):
    backbone = load_backbone("test_efficientnet", "random", image_size=64)
    pictures = np.random.default_rng(0).integers(0, 256, (7, 64, 64, 3), dtype=np.uint8)
    whole = features_of_pictures(backbone, pictures)
    monkeypatch.setattr(extraction, "_PIXELS_ON_CPU", 3 * 64**2)
    seen = []
    backbone.register_forward_pre_hook(lambda module, images: seen.append(len(images[0])))
    np.testing.assert_allclose(
        features_of_pictures(backbone, pictures), whole, rtol=1e-4, atol=1e-4
    )
    assert seen == [3, 3, 1]
