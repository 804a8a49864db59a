"""The settings that methods share, and the case that a request leads to."""

from typing import Literal, get_args, get_origin

import pytest

from newfound.bench.methods import NAMES
from newfound.bench.protocol import bench_settings, make_case
from newfound.deep.settings import Settings
from newfound.errors import InputError
from newfound.workflows.demo import DIGITS


def another(name):
    """A value that a setting does not have for digits."""
    value = bench_settings("digits").as_dict()[name]
    hint = next(item.hint for item in Settings.options() if item.name == name)
    kinds = [kind for kind in get_args(hint) or (hint,) if kind is not type(None)]
    if get_origin(hint) is Literal:
        return next(choice for choice in get_args(hint) if choice != value)
    if get_origin(kinds[0]) is Literal:
        return next(choice for choice in get_args(kinds[0]) if choice != value)
    if kinds[0] is bool:
        return not value
    if name in ("crop_max", "weight_average"):
        return 0.9
    if name == "device":
        return "cpu"
    if name == "model":
        return "test_vit"
    if name == "weights":
        return "offline"
    if name == "sizes":
        return "alike"
    return 3 if value is None else value + (1 if kinds[0] is int else 0.01)


ELSEWHERE = {
    *{"seed", "epochs", "model", "weights", "pca", "n_components", "n_components_init"},
    *{"device", "devices", "num_nodes", "compile", "token_cache"},
}


@pytest.mark.parametrize("name", [item.name for item in Settings.options()])
def test_changes_are_exactly_the_settings_that_differ(name):
    base = bench_settings("digits")
    settings = base.with_changes(**{name: another(name)})
    assert settings != base
    changes = make_case("gpc", "digits", settings).changes
    if name == "model":  # a network that is not the one for digits has no settings for digits
        plain = bench_settings("digits", settings.network.model).as_dict()
        own = {key: value for key, value in settings.as_dict().items() if value != plain[key]}
        assert changes == {key: own[key] for key in own.keys() - ELSEWHERE}
        assert changes["image_size"] == 12
        return
    assert changes == ({} if name in ELSEWHERE else {name: another(name)})
    start = {"image_size", "crop_max", "n_directions"}  # all that k-means has of them
    assert make_case("kmeans", "digits", settings).changes == (changes if name in start else {})


def test_without_changes_there_are_none():
    for source in ("digits", "cub", "cifar10"):
        for name in NAMES:
            assert make_case(name, source, bench_settings(source, method=name)).changes == {}
    resnet = bench_settings("cifar10", "resnet18")
    assert make_case("gpc", "cifar10", resnet).changes == {}


def test_starts_of_k_means_are_a_change_of_gcd_alone():
    settings = bench_settings("digits", method="gcd")
    assert make_case("gcd", "digits", settings, n_starts=5).changes == {"n_starts": 5}
    assert make_case("gcd", "digits", settings, n_starts=100).changes == {}
    assert make_case("gpc", "digits", bench_settings("digits"), n_starts=5).changes == {}


def test_weights_are_averaged_by_gpc_and_by_others_if_asked_for():
    for name in NAMES:
        average = bench_settings("cub", method=name).optimiser.weight_average
        assert average == (0.99 if name in ("mixture", "gpc", "gpc-literal") else 0.0)
    asked = bench_settings("cub", method="simgcd").with_changes(weight_average=0.99)
    assert make_case("simgcd", "cub", asked).changes == {"weight_average": 0.99}


def test_the_value_of_a_knob_is_a_change_of_methods_that_have_it():
    for name, changes in (("simgcd", {"entropy_weight": 1.0}), ("kmeans", {})):
        settings = bench_settings("cub", method=name)
        assert make_case(name, "cub", settings, knob=1.0).changes == changes
    assert (
        make_case("simgcd", "cub", bench_settings("cub", method="simgcd"), knob=2.0).changes == {}
    )


@pytest.mark.parametrize(
    ("name", "options", "k"),
    [
        ("gpc", {}, "count"),
        ("gpc", {"prototypes": "ward"}, "brent"),
        ("gpc", {"prototypes": "dbscan"}, "own"),
        ("gpc-literal", {}, "own"),
        ("mixture", {}, "count"),
        ("gcd", {}, "brent"),
        ("gcd", {"joint": True}, "own"),
        ("uno", {"k": "unknown"}, "brent"),
        ("uno", {"k": "count"}, "count"),
    ],
)
def test_unknown_is_what_the_method_does_by_itself(name, options, k):
    assert make_case(name, "cub", bench_settings("cub", method=name), **options).k == k


def test_what_the_weights_have_seen():
    settings = bench_settings("cub")
    assert make_case("gpc", "cub", settings).pretraining == "ImageNet"
    assert make_case("gpc", "cub", settings.with_changes(weights="random")).pretraining == "none"
    assert make_case("gpc", "cub", settings, pretraining="Target").pretraining == "Target"
    random = settings.with_changes(weights="random")
    assert make_case("gpc", "cub", random, pretraining="Target").pretraining == "Target"


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("simgcd", {"joint": True}, "SimGCD has no variant joint=True"),
        ("gpc", {"joint": True}, "no variant joint"),
        ("gcd", {"prototypes": "ward"}, "GCD has no variant prototypes='ward'"),
        ("gpc", {"prototypes": "birch"}, "mixture, dbscan, ward, kmeans; got 'birch'"),
        ("k-means", {}, "no method 'k-means'"),
        ("simgcd", {"k": "guess"}, "k must be one of known, brent, count, own; got 'guess'"),
        ("simgcd", {"k": "own"}, "SimGCD has no way of its own to find K"),
        ("simgcd", {"without": "D25"}, "SimGCD has no variant without='D25'"),
        ("gpc", {"without": "D1"}, "without must be one of D25, D26, D27, D28, D30; got 'D1'"),
        ("gcd", {"clustering": "ward"}, "clustering must be one of own, mixture; got 'ward'"),
    ],
)
def test_variants_that_a_method_has_not_are_refused(name, options, message):
    with pytest.raises(InputError, match=message):
        make_case(name, "digits", bench_settings("digits"), **options)


def test_settings_of_the_data_sets():
    digits = bench_settings("digits")
    assert digits == DIGITS.with_changes(epochs=80, rehearse=False)
    assert bench_settings("digits", DIGITS.network.model) == digits
    field = Settings(selection="last", rehearse=False)
    assert bench_settings("cub") == bench_settings("cifar10") == field
    assert field.optimiser.epochs == 200
    assert bench_settings("digits", "resnet18") == field.with_changes(model="resnet18")
    assert bench_settings("cub", "resnet18") == field.with_changes(model="resnet18")
    small = bench_settings("cifar100", "resnet18")
    assert (small.network.model, small.network.image_size) == ("resnet18", 32)
    assert small.run.selection == "last"
    views = small.views
    assert (views.crop_min, views.crop_max, views.color_jitter) == (0.45, 1.0, 0.5)


def test_a_file_with_the_name_of_a_data_set_is_refused():
    with pytest.raises(InputError, match=r"cub\.npz has the name of a data set"):
        make_case("kmeans", "some/cub.npz", bench_settings("some/cub.npz"))


def test_a_name_in_capitals_leaves_no_path_either():
    case = make_case("gpc", "/home/me/Dino.NPZ", bench_settings("/home/me/Dino.NPZ"))
    assert case.dataset == "Dino"
