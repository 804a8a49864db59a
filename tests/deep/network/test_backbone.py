import copy
import pickle
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest
import torch
from safetensors.torch import save_file
from torch import nn

from newfound.deep.network import vision, weights
from newfound.deep.network.backbone import load_backbone, load_encoder
from newfound.deep.network.head import Network
from newfound.deep.network.vision import timm
from newfound.errors import DiscoveryWarning, InputError

#: A small model of each family → beginnings of the names of the parameters that are trained.
FAMILIES = {
    "test_vit": ("blocks.5.", "norm."),  # class token
    "test_vit3": ("blocks.8.", "norm.", "attn_pool."),  # another pooling, after the blocks
    "test_resnet": ("layer4.",),
    "test_efficientnet": ("blocks.4.", "conv_head.", "bn2."),
    "test_convnext": ("stages.3.", "head."),
    "mobilenetv3_small_050": ("blocks.5.", "conv_head."),  # the last convolution is in the head
    "swin_tiny_patch4_window7_224": ("layers.3.", "norm."),
}


@pytest.fixture(autouse=True)
def one_thread():
    torch.set_num_threads(1)


@pytest.fixture
def no_hub(monkeypatch, tmp_path):
    """A hub that nobody listens at, and an empty cache."""
    monkeypatch.setattr("huggingface_hub.constants.ENDPOINT", "http://127.0.0.1:9")
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", False)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path))
    return tmp_path


def scramble(module, seed=0):
    """Weights and statistics that leave no layer without effect, as some initial ones do."""
    generator = torch.Generator().manual_seed(seed)
    for value in module.state_dict().values():
        if value.is_floating_point():
            value.add_(0.1 * torch.rand(value.shape, generator=generator))
    return module


def small(model, image_size=64, **options):
    torch.manual_seed(0)
    size = 224 if model.startswith("swin") else image_size
    return scramble(load_backbone(model, "random", image_size=size, **options))


def images(backbone, n=3):
    generator = torch.Generator().manual_seed(1)
    return torch.randn(n, 3, backbone.image_size, backbone.image_size, generator=generator)


def whole(backbone, x):
    """What timm makes of the images."""
    network = backbone.network
    return network.forward_head(network.forward_features(x), pre_logits=True)


@pytest.mark.parametrize("model", FAMILIES)
def test_the_parts_together_are_the_whole(model):
    backbone = small(model, trainable="last").eval()
    x = images(backbone)
    with torch.no_grad():
        inputs = backbone.before(x)
        kept = inputs.clone()
        features = backbone.after(inputs)
        assert backbone.is_split
        assert inputs.shape[1:] != x.shape[1:]
        assert torch.equal(inputs, kept)  # `after` may be run again on the same inputs
        torch.testing.assert_close(features, whole(backbone, x), rtol=1e-5, atol=1e-5)
        torch.testing.assert_close(backbone(x), features)
    assert features.shape == (3, backbone.n_features)
    assert not torch.allclose(features[0], features[1])


@pytest.mark.parametrize("model", [*FAMILIES, "eva02_tiny_patch14_224"])
@pytest.mark.parametrize("trainable", ["last", "all"])
def test_a_map_that_is_pooled_is_the_feature(model, trainable):
    size = 28 if model.startswith("eva") else 64
    backbone = small(model, size, trainable=trainable).eval()
    x = images(backbone)
    with torch.no_grad():
        map = backbone.map(backbone.before(x))
        torch.testing.assert_close(map, backbone.network.forward_features(x), rtol=1e-4, atol=1e-5)
        torch.testing.assert_close(backbone.pool(map), backbone(x))


@pytest.mark.parametrize(
    ("model", "n_places", "n_channels"),
    [
        ("test_vit", 16, 64),  # without the class token
        ("test_resnet", 4, 96),
        ("test_convnext", 4, 64),
        ("mobilenetv3_small_050", 4, 288),
        ("swin_tiny_patch4_window7_224", 49, 768),  # channels come last
    ],
)
def test_a_map_has_a_vector_for_each_place(model, n_places, n_channels):
    backbone = small(model, trainable="last").eval()
    with torch.no_grad():
        map = backbone.map(backbone.before(images(backbone)))
        places = backbone.locations(map)
    assert places.shape == (3, n_places, n_channels)
    if model == "test_vit":
        assert torch.equal(places, map[:, 1:])
    elif model.startswith("swin"):
        assert torch.equal(places[1, 9], map[1, 1, 2])
    else:
        assert torch.equal(places[1, 2], map[1, :, 1, 0])


def test_the_mean_over_the_places_of_a_cnn_is_its_feature():
    backbone = small("test_resnet").eval()
    x = images(backbone)
    with torch.no_grad():
        places = backbone.locations(backbone.map(backbone.before(x)))
        torch.testing.assert_close(places.mean(dim=1), backbone(x))


class WantsMap(nn.Module):
    """A head that says so."""

    takes_map = True

    def forward(self, features, places=None):
        return features if places is None else features + places.sum(dim=1)


@pytest.mark.parametrize("model", ["test_vit", "test_resnet"])
@pytest.mark.parametrize("past_frozen_part", [False, True])
def test_a_head_gets_the_map_if_it_wants_it(model, past_frozen_part):
    backbone = small(model, trainable="last").eval()
    x = images(backbone)
    inputs = backbone.before(x) if past_frozen_part else x
    with torch.no_grad():
        features, plain = backbone(x), Network(backbone, nn.Identity())
        places = backbone.locations(backbone.map(backbone.before(x)))
        z, h = Network(backbone, WantsMap())(inputs, past_frozen_part=past_frozen_part)
        torch.testing.assert_close(h, features + places.sum(dim=1))
        torch.testing.assert_close(z, nn.functional.normalize(features, dim=1))
        torch.testing.assert_close(plain(inputs, past_frozen_part=past_frozen_part)[1], features)


@pytest.mark.parametrize("model", FAMILIES)
def test_one_step_moves_the_last_part_only(model):
    backbone = small(model, trainable="last").train()
    earlier = copy.deepcopy(backbone.network.state_dict())
    names = [name for name, p in backbone.network.named_parameters() if p.requires_grad]
    assert names
    assert {name for name in names if not name.startswith(FAMILIES[model])} == set()
    optimiser = torch.optim.SGD(backbone.parameters(), lr=1.0)
    backbone(images(backbone)).square().mean().backward()
    optimiser.step()
    moved = {
        name
        for name, value in backbone.network.state_dict().items()
        if not torch.equal(value, earlier[name])
    }
    assert {name for name in moved if not name.startswith(FAMILIES[model])} == set()
    for part in FAMILIES[model]:
        assert any(name.startswith(part) for name in moved), part


def test_the_frozen_part_has_no_gradients_and_does_not_train():
    backbone = small("test_efficientnet", trainable="last").train()
    x = images(backbone).requires_grad_()
    inputs = backbone.before(x)
    assert not inputs.requires_grad
    assert backbone.after(inputs).requires_grad
    modes = {name: part.training for name, part in backbone.network.named_modules()}
    assert modes["blocks.4"]
    assert modes["conv_head"]
    assert modes["bn2"]
    assert not any(modes[name] for name in ("conv_stem", "bn1", "blocks.0.0", "blocks.3"))
    assert not any(part.training for part in backbone.eval().modules())


def test_everything_is_trained_when_told():
    backbone = small("test_efficientnet", trainable="all").train()
    x = images(backbone)
    assert backbone.before(x) is x
    assert not backbone.is_split
    assert all(p.requires_grad for p in backbone.parameters())
    assert all(part.training for part in backbone.modules())
    backbone.eval()
    torch.testing.assert_close(backbone.after(x), whole(backbone, x))


def test_a_copy_runs_its_own_weights():
    backbone = small("test_vit", trainable="last").eval()
    twin = copy.deepcopy(backbone)
    x = images(backbone)
    expected = backbone(x)
    with torch.no_grad():
        for parameter in backbone.parameters():
            parameter.zero_()
    torch.testing.assert_close(twin(x), expected)


def test_a_network_that_is_no_chain_is_not_split_but_trained_in_its_last_block():
    backbone = small("eva02_tiny_patch14_224", 28, trainable="last").eval()
    x = images(backbone)
    assert not backbone.is_split
    assert backbone.trainable == "last"
    assert backbone.before(x) is x
    torch.testing.assert_close(backbone(x), whole(backbone, x))
    trained = {name for name, p in backbone.network.named_parameters() if p.requires_grad}
    assert trained
    assert {n for n in trained if not n.startswith(("blocks.11.", "norm.", "fc_norm."))} == set()
    assert not backbone.train().network.blocks[0].training


def test_a_chain_that_gives_something_else_is_not_split(monkeypatch):
    """As if a family had a step between its children that the walk does not see."""
    plain = type(timm.create_model("test_vit")).forward_features
    monkeypatch.setattr(
        "timm.models.vision_transformer.VisionTransformer.forward_features",
        lambda self, x: plain(self, x) + 1,
    )
    assert not small("test_vit", trainable="last").is_split


def test_a_family_without_a_last_part_is_trained_as_a_whole():
    with pytest.warns(DiscoveryWarning, match="last block or stage of dla34 was not found") as w:
        backbone = small("dla34", trainable="last")
    assert w[0].filename == __file__
    assert backbone.trainable == "all"
    assert all(p.requires_grad for p in backbone.parameters())


def test_random_weights_are_all_trained_and_follow_the_seed():
    backbones = []
    for seed in (0, 0, 1):
        torch.manual_seed(seed)
        backbones.append(load_backbone("test_vit", "random", image_size=32))
    first, again, other = (b.state_dict()["network.blocks.0.attn.qkv.weight"] for b in backbones)
    assert backbones[0].trainable == "all"
    assert torch.equal(first, again)
    assert not torch.equal(first, other)


def test_the_probe_draws_from_its_own_generator(tmp_path):
    torch.manual_seed(0)
    timm.create_model("test_vit", num_classes=0, img_size=32)
    expected = torch.rand(3)
    torch.manual_seed(0)
    load_backbone("test_vit", "random", image_size=32)
    assert torch.equal(torch.rand(3), expected)


def test_normalisation_is_the_models_own():
    assert small("test_vit").mean == (0.5, 0.5, 0.5)
    assert small("test_efficientnet").mean == pytest.approx((0.485, 0.456, 0.406))
    assert small("test_efficientnet").std == pytest.approx((0.229, 0.224, 0.225))


# ------------------------------------------------------------------------------------ image sizes


def test_a_transformer_is_built_for_the_size():
    backbone = load_backbone("test_vit", "random", image_size=48)
    assert backbone.network.pos_embed.shape[1] == 1 + 3 * 3
    assert backbone.image_size == 48


def test_a_size_that_the_network_cannot_take_is_refused():
    with pytest.raises(InputError, match="test_vit does not take images of 8 × 8 px"):
        load_backbone("test_vit", "random", image_size=8)


@pytest.mark.parametrize(("image_size", "side"), [(32, 3), (64, 3), (65, 7), (224, 7)])
def test_a_resnet_from_scratch_has_a_small_stem_for_small_images(image_size, side):
    backbone = load_backbone("resnet18", "random", image_size=image_size)
    first = backbone.network.conv1
    assert first.weight.shape == (64, 3, side, side)
    assert first.stride == ((1, 1) if side == 3 else (2, 2))
    assert isinstance(backbone.network.maxpool, nn.Identity) == (side == 3)


def test_a_resnet_from_a_file_has_the_stem_of_the_file(tmp_path):
    for size, name in ((32, "small"), (224, "large")):
        network = load_backbone("resnet18", "random", image_size=size).network
        torch.save(network.state_dict(), tmp_path / name)
    small_stem = load_backbone("resnet18", str(tmp_path / "small"), image_size=32)
    large_stem = load_backbone("resnet18", str(tmp_path / "large"), image_size=32)
    assert small_stem.network.conv1.stride == (1, 1)
    assert isinstance(small_stem.network.maxpool, nn.Identity)
    assert large_stem.network.conv1.stride == (2, 2)
    assert isinstance(large_stem.network.maxpool, nn.MaxPool2d)


# ---------------------------------------------------------------------------------- weights files


def prefixed(state, prefix):
    return {prefix + key: value for key, value in state.items()}


WRAPPINGS = {
    "plain": lambda state: state,
    "with optimiser": lambda state: {"state_dict": state, "epoch": 7, "optimiser": {"lr": 0.1}},
    "model": lambda state: {"model": state},
    "nested": lambda state: {"model": {"state_dict": state}},
    "data parallel": lambda state: {"state_dict": prefixed(state, "module.")},
    "compiled": lambda state: prefixed(state, "_orig_mod."),
    "our own": lambda state: {
        **prefixed(state, "backbone.network."),
        **prefixed({"0.weight": torch.ones(3), "0.bias": torch.ones(3)}, "head."),
    },
    "DINO": lambda state: {
        "student": prefixed({k: v + 1 for k, v in state.items()}, "module.backbone."),
        "teacher": {
            **prefixed(state, "backbone."),
            **prefixed({"mlp.0.weight": torch.ones(3)}, "head."),
        },
    },
}


@pytest.mark.parametrize("wrapping", WRAPPINGS)
@pytest.mark.parametrize("model", ["test_vit", "test_resnet"])
def test_weights_come_out_of_a_torch_file_however_wrapped(model, wrapping, tmp_path):
    source = small(model)
    torch.save(WRAPPINGS[wrapping](source.network.state_dict()), tmp_path / "w.pth")
    loaded = load_backbone(model, str(tmp_path / "w.pth"), image_size=64)
    assert loaded.trainable == "last"
    x = images(source)
    torch.testing.assert_close(loaded.eval()(x), source.eval()(x))


def test_weights_come_out_of_a_safetensors_file_whatever_its_name(tmp_path):
    source = small("test_vit")
    save_file(source.state_dict(), tmp_path / "weights")
    loaded = load_backbone("test_vit", str(tmp_path / "weights"), image_size=64)
    x = images(source)
    torch.testing.assert_close(loaded.eval()(x), source.eval()(x))


@pytest.mark.parametrize("n_classes", [7, 1000])
@pytest.mark.parametrize("model", ["test_vit", "test_resnet", "test_convnext", "test_efficientnet"])
def test_a_classifier_in_the_file_is_ignored(model, n_classes, tmp_path):
    network = timm.create_model(model, num_classes=n_classes)
    torch.save(network.state_dict(), tmp_path / "w.pth")
    backbone = load_backbone(model, str(tmp_path / "w.pth"), image_size=160)
    x = images(backbone)
    torch.testing.assert_close(
        backbone.eval()(x),
        network.eval().forward_head(network.forward_features(x), pre_logits=True),
    )


def test_positions_are_resampled_for_another_image_size(tmp_path):
    source = small("test_vit", 64)
    torch.save(source.network.state_dict(), tmp_path / "w.pth")
    table = load_backbone("test_vit", str(tmp_path / "w.pth"), image_size=96).network.pos_embed
    old = source.network.pos_embed
    assert table.shape[1] == 1 + 6 * 6
    torch.testing.assert_close(table[:, 0], old[:, 0])
    torch.testing.assert_close(table[:, 1:].mean(1), old[:, 1:].mean(1), rtol=0.1, atol=0.02)


def test_weights_that_do_not_fit_are_refused_by_name(tmp_path):
    state = small("test_vit").network.state_dict()
    missing = [key for key in state if key.startswith("blocks.5.")]
    for key in missing:
        del state[key]
    state["strange.weight"] = torch.ones(2)
    state["norm.weight"] = torch.ones(5)
    torch.save(state, tmp_path / "w.pth")
    with pytest.raises(InputError) as caught:
        load_backbone("test_vit", str(tmp_path / "w.pth"), image_size=64)
    message = str(caught.value)
    assert f"{len(missing)} missing ({', '.join(missing[:3])}, …)" in message
    assert "1 unexpected (strange.weight)" in message
    assert "1 of another shape (norm.weight (5,) for (64,))" in message
    assert "do not fit test_vit" in message


def test_weights_of_another_model_are_refused(tmp_path):
    torch.save(small("test_resnet").network.state_dict(), tmp_path / "w.pth")
    with pytest.raises(InputError, match="do not fit test_vit"):
        load_backbone("test_vit", str(tmp_path / "w.pth"), image_size=64)


class Bomb:
    """Runs code when it is unpickled."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return (open, (str(self.path), "w"))


@pytest.mark.parametrize("save", [torch.save, lambda x, path: path.write_bytes(pickle.dumps(x))])
def test_nothing_in_a_file_is_run(save, tmp_path):
    state = {**small("test_vit").network.state_dict(), "bomb": Bomb(tmp_path / "ran")}
    save(state, tmp_path / "w.pth")
    with pytest.raises(InputError, match="cannot be read as weights"):
        load_backbone("test_vit", str(tmp_path / "w.pth"), image_size=64)
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "cannot be read as weights"),
        (b"no weights at all", "cannot be read as weights"),
        (b"\xff" * 8 + b"{}", "cannot be read as weights"),
    ],
)
def test_a_file_without_weights_is_refused(content, message, tmp_path):
    (tmp_path / "w").write_bytes(content)
    with pytest.raises(InputError, match=message):
        load_backbone("test_vit", str(tmp_path / "w"), image_size=64)


@pytest.mark.parametrize("content", [{}, [1, 2], {"epoch": 3}, torch.ones(2)])
def test_a_torch_file_of_something_else_is_refused(content, tmp_path):
    torch.save(content, tmp_path / "w.pth")
    with pytest.raises(InputError, match="holds no weights"):
        load_backbone("test_vit", str(tmp_path / "w.pth"), image_size=64)


def test_weights_that_are_no_file_are_refused():
    with pytest.raises(InputError, match="'/no/where'; expected 'hub', 'offline', 'random' or an"):
        load_backbone("test_vit", "/no/where")


# ------------------------------------------------------------------------------ names and the hub


@pytest.mark.parametrize(
    ("wrong", "near"),
    [
        ("resnet_18", "resnet18"),
        ("vit_base_patch16_224.dinoo", "vit_base_patch16_224.dino"),
        ("vit_base_patch16_22", "vit_base_patch16_224"),
    ],
)
def test_an_unknown_model_is_refused_with_the_nearest_names(wrong, near):
    with pytest.raises(InputError, match=f"no model '{wrong}'") as caught:
        load_backbone(wrong)
    assert near in str(caught.value).partition("nearest names are")[2]


def test_a_name_like_no_other_is_refused():
    with pytest.raises(InputError, match="There is no similar name"):
        load_backbone("?" * 30)


def test_trainable_is_checked():
    with pytest.raises(InputError, match="trainable is 'first'; expected 'last' or 'all'"):
        load_backbone("test_vit", "random", trainable="first")


def test_a_hub_out_of_reach_is_said_at_once_with_what_to_do(no_hub, monkeypatch):
    monkeypatch.setattr(timm, "create_model", None)  # its own attempts take most of a minute
    with pytest.raises(InputError, match="could not be downloaded from timm's hub") as caught:
        load_backbone("test_vit")
    for part in ("http://127.0.0.1:9", "--weights offline", "tf_efficientnet_lite0", "random"):
        assert part in str(caught.value)


def test_a_hub_that_fails_halfway_is_said(no_hub, monkeypatch):
    def fail(*args, **options):
        raise ConnectionResetError("the line went dead")

    monkeypatch.setattr(weights, "_answers", lambda cfg, timeout: True)
    monkeypatch.setattr(timm, "create_model", fail)
    with pytest.raises(InputError, match="the line went dead"):
        load_backbone("test_vit")


def test_a_model_without_weights_is_said(no_hub):
    with pytest.raises(InputError, match="timm has no weights for convnext_atto_rms"):
        load_backbone("convnext_atto_rms", "hub")


def test_weights_in_the_local_cache_need_no_hub(no_hub, monkeypatch):
    def refuse(*args, **options):
        raise AssertionError("asked the network")

    monkeypatch.setattr("socket.getaddrinfo", refuse)
    monkeypatch.setattr("socket.socket.connect", refuse)
    repository = no_hub / "models--timm--test_vit.r160_in1k"
    snapshot = repository / "snapshots" / ("a" * 40)
    snapshot.mkdir(parents=True)
    (repository / "refs").mkdir()
    (repository / "refs" / "main").write_text("a" * 40)
    source = scramble(timm.create_model("test_vit"))
    save_file(source.state_dict(), snapshot / "model.safetensors")
    assert weights.has_hub_weights("test_vit")
    backbone = load_backbone("test_vit.r160_in1k", image_size=160).eval()
    assert backbone.trainable == "last"
    x = images(backbone)
    expected = source.eval().forward_head(source.forward_features(x), pre_logits=True)
    torch.testing.assert_close(backbone(x), expected)
    encoder = load_encoder("test_vit", "hub")
    assert encoder.image_size == 160
    assert not encoder.training


@pytest.fixture
def server():
    class Answer(BaseHTTPRequestHandler):
        def do_HEAD(self):
            self.send_response(self.server.status)
            self.end_headers()

        def log_message(self, *args):
            pass

    server = HTTPServer(("127.0.0.1", 0), Answer)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.mark.parametrize("status", [200, 403, 503])
def test_any_answer_of_the_hub_is_an_answer(status, server, no_hub, monkeypatch):
    server.status = status
    address = f"http://127.0.0.1:{server.server_port}"
    monkeypatch.setattr("huggingface_hub.constants.ENDPOINT", address)
    cfg = timm.get_pretrained_cfg("test_vit")
    assert weights._answers(cfg, timeout=10)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    assert not weights._answers(cfg, timeout=10)


def test_weights_are_downloaded_if_the_hub_answers(no_hub, monkeypatch):
    asked = []
    monkeypatch.setattr(timm, "create_model", lambda name, **options: asked.append(name))
    assert not weights.has_hub_weights("test_vit", timeout=1)
    assert asked == []
    monkeypatch.setattr(weights, "_answers", lambda cfg, timeout: True)
    assert weights.has_hub_weights("test_vit", timeout=1)
    assert asked == ["test_vit"]
    monkeypatch.setattr(timm, "create_model", None)  # a hub that answers, but does not give
    assert not weights.has_hub_weights("test_vit", timeout=1)


def test_what_features_depend_on(tmp_path):
    def described(model, source):
        return weights.describe_weights(model, source)

    (tmp_path / "a").write_bytes(b"one")
    (tmp_path / "b").write_bytes(b"two")
    first = described("test_vit", str(tmp_path / "a"))
    assert first["model"] == "test_vit.r160_in1k"
    assert first["image_size"] == 160
    assert first["crop"] == 0.95
    assert described("test_vit", "hub")["weights"] == "hub:timm/test_vit.r160_in1k"
    assert described("test_vit", str(tmp_path / "b"))["weights"] != first["weights"]
    (tmp_path / "b").write_bytes(b"one")
    assert described("test_vit", str(tmp_path / "b")) == first
    assert described("tf_efficientnet_lite1", "offline")["image_size"] == 240
    with pytest.raises(InputError, match="random weights cannot be stored"):
        described("test_vit", "random")
    with pytest.raises(InputError, match="no model"):
        described("test_vi", "hub")


# ------------------------------------------------------------------- the door to torchvision, timm


def test_operators_are_declared_once(monkeypatch):
    vision._declare_operators()  # they are there: by torchvision's compiled part, or by the import
    monkeypatch.setattr(torch.library, "define", None)
    vision._declare_operators()
    vision._import_torchvision()
    for name in ("nms", "qnms"):
        assert hasattr(torch.ops.torchvision, name)


def test_other_errors_of_torchvision_are_not_hidden(monkeypatch):
    def fail(module, extra):
        raise RuntimeError("something else")

    monkeypatch.setattr(vision, "require", fail)
    monkeypatch.setattr(vision, "_declare_operators", None)
    with pytest.raises(RuntimeError, match="something else"):
        vision._import_torchvision()


@pytest.mark.parametrize("absent", ["torchvision", "timm"])
def test_a_missing_package_names_the_extra(absent):
    program = f"""
import sys
sys.modules[{absent!r}] = None
from newfound.errors import MissingExtraError
try:
    import newfound.deep.network.vision
except MissingExtraError as error:
    print(error)
"""
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert f"'{absent}' could not be imported" in result.stdout, result.stderr
    assert "pip install 'newfound[train]'" in result.stdout
