"""Features of pictures: pixels, and networks."""

import subprocess
import sys

import numpy as np
import pytest
from PIL import Image
from sklearn.datasets import load_digits

from newfound.encode import encode_pictures
from newfound.encode import pictures as picture_files
from newfound.errors import InputError


def digit(i):
    """One of scikit-learn's digits: 8 × 8 pixels, grey."""
    return np.uint8(load_digits().images[i] * 15)


def write_noise(path, size=(40, 30), seed=0):
    rng = np.random.default_rng(seed)
    Image.fromarray(rng.integers(0, 256, (*size[::-1], 3), dtype=np.uint8)).save(path)
    return path


def test_small_grey_pictures_of_one_size_are_taken_as_they_are(pictures):
    result = encode_pictures(pictures, "pixels")
    expected = np.stack([digit(i).ravel() for i in range(12)]) / 255
    np.testing.assert_allclose(result.features, expected, rtol=1e-6)
    assert result.features.dtype == np.float32
    assert result.encoder == "pixels-8x8-grey"
    assert result.kept.tolist() == list(range(12))
    assert result.skipped == []


def test_small_pictures_in_colour_keep_it(pictures):
    write_noise(pictures[5], (8, 8))
    result = encode_pictures(pictures, "pixels")
    assert result.encoder == "pixels-8x8-rgb"
    assert result.features.shape == (12, 8 * 8 * 3)
    np.testing.assert_allclose(result.features[0, ::3] * 255, digit(0).ravel(), rtol=1e-6)
    assert not np.allclose(result.features[5, ::3], result.features[5, 1::3])


def test_small_pictures_need_not_be_square(tmp_path):
    paths = [write_noise(tmp_path / f"{i}.png", (6, 4), i) for i in range(2)]
    result = encode_pictures(paths, "pixels")
    assert result.encoder == "pixels-6x4-rgb"
    expected = np.stack([np.asarray(Image.open(path)).ravel() for path in paths]) / 255
    np.testing.assert_allclose(result.features, expected, rtol=1e-6)


@pytest.mark.parametrize("size", [(33, 33), (40, 30), (9, 8)])
def test_other_pictures_are_scaled(size, pictures):
    write_noise(pictures[3], size)
    result = encode_pictures(pictures, "pixels")
    assert result.encoder == "pixels-16x16-rgb"
    assert result.features.shape == (12, 16 * 16 * 3)


def test_a_resolved_name_gives_features_that_can_be_compared(pictures, tmp_path):
    one = encode_pictures(pictures, "pixels")
    big = write_noise(tmp_path / "big.png", (64, 48))
    more = encode_pictures([pictures[2], big], one.encoder)
    np.testing.assert_array_equal(more.features[0], one.features[2])
    assert more.features.shape == (2, 64)
    with Image.open(big) as picture:
        middle = picture.resize((8, 8), box=(8, 0, 56, 48)).convert("L")
    np.testing.assert_allclose(more.features[1] * 255, np.asarray(middle).ravel(), rtol=1e-5)


def test_pictures_of_any_shape_are_scaled():
    """Rounding must not put the part to be scaled outside the picture."""
    for width in range(1, 200):
        for size in ((16, 16), (7, 11), (31, 3)):
            for picture in (Image.new("RGB", (width, 37)), Image.new("RGB", (width, width))):
                assert picture_files._scaled(picture, size).size == size


def test_large_pictures_are_not_read_twice_to_choose_a_size(tmp_path, read):
    paths = [write_noise(tmp_path / f"{i}.png", seed=i) for i in range(5)]
    encode_pictures(paths, "pixels")
    assert read == {"0.png": 2, "1.png": 1, "2.png": 1, "3.png": 1, "4.png": 1}


@pytest.mark.parametrize("name", ["pixels-0x8-rgb", "pixels-8", "pixels-8x8-blue"])
def test_a_wrong_name_of_pixels_is_refused(name):
    with pytest.raises(InputError, match=f"{name}.*expected 'pixels'"):
        encode_pictures([], name)


def test_pixels_need_no_torch(pictures):
    program = f"""
import sys
for name in ("torch", "torchvision", "timm"):
    sys.modules[name] = None
from pathlib import Path
from newfound.encode import encode_pictures
for encoder in ("pixels", "auto"):
    print(encode_pictures([Path({str(pictures[0])!r})], encoder).encoder)
"""
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert result.stdout.split() == ["pixels-8x8-grey"] * 2, result.stderr


def test_importing_the_module_loads_no_torch():
    program = "import sys, newfound.encode; m = sys.modules; print('torch' in m, 'PIL' in m)"
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert result.stdout.split() == ["False", "False"], result.stderr


def test_a_network_from_pip_encodes(pictures, tmp_path, torch, read):
    from newfound.deep.network.backbone import load_backbone

    write_noise(pictures[0], (300, 200))
    pictures[5].write_bytes(b"broken")
    options = {"cache": tmp_path / "cache", "batch_size": 5}
    result = encode_pictures(pictures, "efficientnet-lite0", **options)
    assert result.encoder == "efficientnet-lite0"
    assert result.features.shape == (11, 1280)
    assert [index for index, _ in result.skipped] == [5]

    backbone = load_backbone("tf_efficientnet_lite0", "offline").eval()
    with Image.open(pictures[0]) as picture:
        wide = picture.resize((256, 256), Image.Resampling.BICUBIC, box=(50, 0, 250, 200))
    with Image.open(pictures[2]) as picture:
        tiny = picture.convert("RGB").resize((256, 256), Image.Resampling.BICUBIC)
    pixels = np.float32([np.asarray(wide), np.asarray(tiny)])[:, 16:240, 16:240]
    with torch.no_grad():
        expected = backbone(torch.from_numpy((pixels / 255 - 0.5) / 0.5).permute(0, 3, 1, 2))
    np.testing.assert_allclose(result.features[[0, 2]], expected, rtol=1e-3, atol=1e-3)

    read.clear()
    again = encode_pictures(pictures, "efficientnet-lite0", **options)
    assert read == {"05.png": 1}
    np.testing.assert_array_equal(again.features, result.features)


def test_weights_from_a_file_encode_and_are_part_of_the_key(pictures, tmp_path, torch, read):
    from newfound.deep.network.backbone import load_backbone

    results = []
    for seed in (0, 1, 0):
        torch.manual_seed(seed)
        network = load_backbone("test_vit", "random", image_size=160).network
        torch.save(network.state_dict(), tmp_path / "w.pth")
        name = f"test_vit={tmp_path / 'w.pth'}"
        results.append(encode_pictures(pictures, name, cache=tmp_path / "cache"))
    assert sum(read.values()) == 24  # the third time, the weights are those of the first
    assert results[0].encoder == name
    assert not np.allclose(results[0].features, results[1].features)
    np.testing.assert_array_equal(results[0].features, results[2].features)


def test_the_device_is_the_one_that_was_asked_for(pictures, torch, monkeypatch):
    from newfound.deep import device
    from newfound.deep.network import backbone

    loaded = []
    plain = backbone.load_encoder
    monkeypatch.setattr(backbone, "load_encoder", lambda *a: loaded.append(plain(*a)) or loaded[0])
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)  # "cpu" must win over it
    encode_pictures(pictures[:2], "efficientnet-lite0", device="cpu")
    assert next(loaded[0].parameters()).device == torch.device("cpu") == device.current_device()
    with pytest.raises(InputError, match=r"device is 'cuda:99', which this machine does not have"):
        encode_pictures(pictures[:2], "efficientnet-lite0", device="cuda:99")
    with pytest.raises(InputError, match="device is 'gpu'"):
        encode_pictures(pictures[:2], "efficientnet-lite0", device="gpu")
    device.choose_device(None)


def test_a_network_is_loaded_only_if_there_is_work(pictures, tmp_path, torch, monkeypatch):
    from newfound.deep.network import backbone

    loaded = []
    plain = backbone.load_encoder
    monkeypatch.setattr(backbone, "load_encoder", lambda *a: loaded.append(a) or plain(*a))
    options = {"cache": tmp_path / "cache", "batch_size": 5}
    first = encode_pictures(pictures, "efficientnet-lite0", **options)
    assert loaded == [("tf_efficientnet_lite0", "offline", None)]
    monkeypatch.setattr("newfound.deep.network.backbone.load_encoder", None)
    again = encode_pictures(pictures, "efficientnet-lite0", cache=tmp_path / "cache")
    np.testing.assert_array_equal(again.features, first.features)


def test_an_encoder_that_does_not_exist_is_refused(pictures, torch):
    with pytest.raises(InputError, match="no model 'efficientnet-lite7'"):
        encode_pictures(pictures, "efficientnet-lite7")
    with pytest.raises(InputError, match=r"weights is '/no/where'"):
        encode_pictures(pictures, "test_vit=/no/where")


def test_a_hub_out_of_reach_is_said(pictures, no_hub):
    with pytest.raises(InputError, match="could not be downloaded from timm's hub"):
        encode_pictures(pictures, "test_vit")


def test_a_name_gets_the_tag_of_its_weights(torch):
    assert picture_files.picture_encoder("test_vit", []).name == "test_vit.r160_in1k"
