"""Settings that end within minutes."""

import pytest

from newfound.deep import quick
from newfound.deep.quick import QUICK, shorten
from newfound.deep.settings import Settings
from newfound.errors import InputError


@pytest.mark.parametrize("model", ["tf_efficientnet_lite0", "test_vit"])
def test_a_quick_training_has_few_epochs_and_stored_views(model):
    given = Settings(model=model, weights="offline", image_size=448, seed=3, momentum=0.5)
    assert shorten(given) == given.with_changes(**QUICK)
    assert QUICK["epochs"] < 50
    assert QUICK["image_size"] <= 224
    assert QUICK["n_stored_views"] > 0


def test_small_pictures_stay_small():
    assert shorten(Settings(model="test_vit", weights="f", image_size=64)).network.image_size == 64


def test_a_network_that_takes_no_other_size_keeps_its_own(monkeypatch):
    original = quick.load_backbone

    def load(model, weights, *, image_size, trainable):
        if image_size != 448:
            raise InputError("test_vit does not take images of this size")
        return original(model, weights, image_size=image_size, trainable=trainable)

    monkeypatch.setattr(quick, "load_backbone", load)
    given = Settings(model="test_vit", weights="f", image_size=448)
    assert shorten(given) == given.with_changes(**{**QUICK, "image_size": 448})


@pytest.mark.parametrize("changes", [{"trainable": "all"}, {"weights": "random"}])
def test_a_network_that_is_trained_as_a_whole_has_no_stored_views(changes):
    settings = Settings(**{"model": "test_resnet", "weights": "f", **changes})
    assert shorten(settings).run.n_stored_views == 0
