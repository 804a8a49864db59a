"""Settings: each is read, each is checked, each is documented."""

import ast
import json
import math
import pickle
import re
import subprocess
import sys
from dataclasses import MISSING, FrozenInstanceError, fields
from functools import lru_cache
from pathlib import Path
from typing import Literal, get_args, get_origin, get_type_hints

import pytest

import newfound
from newfound.deep.images.views import Views
from newfound.deep.settings import Settings, ViewSettings
from newfound.errors import InputError

GROUPS = get_type_hints(Settings)
FIELDS = [item for group in GROUPS.values() for item in fields(group)]
NAMES = [item.name for item in FIELDS]
#: What 0.1.0 wrote into checkpoints and result lines, in that order.
WRITTEN = [
    "model",
    "weights",
    "trainable",
    "image_size",
    "crop_min",
    "crop_max",
    "padding",
    "flip",
    "rotation",
    "color_jitter",
    "epochs",
    "n_labelled_per_batch",
    "n_unlabelled_per_batch",
    "accumulate",
    "learning_rate",
    "momentum",
    "weight_decay",
    "weight_average",
    "contrastive_temperature",
    "supervised_weight",
    "supervised_temperature",
    "prototype_temperature",
    "prototype_weight",
    "target_temperature",
    "warmup_epochs",
    "projection_head",
    "n_components",
    "n_components_init",
    "acceptance",
    "count_term",
    "count_on",
    "pca",
    "n_directions",
    "whiten",
    "sizes",
    "known_rows",
    "moves_every",
    "moves_after_epoch",
    "selection",
    "validation_share",
    "rehearse",
    "seed",
    "precision",
    "device",
    "devices",
    "num_nodes",
    "compile",
    "token_cache",
    "n_stored_views",
]
ROOT = Path(newfound.__file__).parent


@lru_cache
def reads_of_settings():
    """Names that the loop takes from settings or from one of their groups."""
    found = set()
    for path in (ROOT / "deep").rglob("*.py"):
        if path.name in ("settings.py", "setting_groups.py"):
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load):
                owner = ast.unparse(node.value).split(".")[-1]
                if owner in ("settings", *GROUPS):
                    found.add(node.attr)
    return found


@pytest.mark.parametrize("name", sorted(set(NAMES) - {item.name for item in fields(ViewSettings)}))
def test_every_setting_is_read(name):
    assert name in reads_of_settings()


def test_settings_of_views_are_read_by_views():
    """`views_for` hands them over by name."""
    assert {item.name for item in fields(ViewSettings)} < {item.name for item in fields(Views)}


@pytest.mark.parametrize("item", FIELDS, ids=lambda item: item.name)
def test_every_setting_has_a_default_and_a_line_of_help(item):
    assert item.default is not MISSING
    assert item.metadata["help"].endswith(".")


def bad_values():
    hints = {name: hint for name, hint, _, _ in Settings.options()}
    for item in FIELDS:
        hint = hints[item.name]
        kinds = (hint,) if get_origin(hint) in (None, Literal) else get_args(hint)
        if get_origin(kinds[0]) is Literal:
            yield item.name, "no such choice"
            yield item.name, 3
        elif bool in kinds:
            yield item.name, 1
            yield item.name, "yes"
        elif str in kinds:
            yield item.name, 1
        else:
            yield item.name, "3"
            yield item.name, True
            if int in kinds:
                yield item.name, 2.5
            else:
                yield item.name, math.nan
        if type(None) not in kinds:
            yield item.name, None
        least = item.metadata["least"]
        if least is not None:
            yield item.name, type(least)(least - 1)


@pytest.mark.parametrize(("name", "value"), list(bad_values()))
def test_a_bad_value_is_refused_with_the_name_of_the_setting(name, value):
    with pytest.raises(InputError, match=name) as caught:
        Settings(**{name: value})
    assert str(value) in str(caught.value)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("image_size", 0),
        ("epochs", 0),
        ("n_labelled_per_batch", 0),
        ("accumulate", 0),
        ("learning_rate", -0.1),
        ("contrastive_temperature", 0.0),
        ("supervised_temperature", 0),
        ("prototype_temperature", -1.0),
        ("supervised_weight", 1.1),
        ("target_temperature", -0.1),
        ("weight_average", -0.1),
        ("momentum", 1.0),
        ("momentum", 1000.0),
        ("learning_rate", float("inf")),
        ("padding", 1.5),
        ("weight_average", 1.0),
        ("validation_share", 1.5),
        ("warmup_epochs", -1),
        ("n_directions", 0),
        ("moves_every", 0),
        ("n_components", 0),
        ("crop_min", 0.0),
        ("crop_max", 1.2),
        ("crop_max", 0.5),  # less than crop_min
    ],
)
def test_a_number_out_of_range_is_refused(name, value):
    with pytest.raises(InputError, match=name) as caught:
        Settings(**{name: value})
    assert str(value) in str(caught.value)


def test_the_ends_of_a_range_are_allowed():
    Settings(crop_min=1.0, crop_max=1.0, supervised_weight=1.0, validation_share=0.0)
    Settings(epochs=1, warmup_epochs=0, padding=0, learning_rate=0, seed=0, color_jitter=1)
    Settings(target_temperature=0, weight_average=0)
    Settings(weight_average=0.9999)


@pytest.mark.parametrize("sizes", ["unknown", "alike", "none", "0.5", "2"])
def test_sizes_are_a_word_or_a_ratio(sizes):
    assert Settings(sizes=sizes).estep.sizes == sizes
    assert Settings(**Settings(sizes=sizes).as_dict()).estep.sizes == sizes


@pytest.mark.parametrize("sizes", ["", "half", "0", "-1", "nan", "inf"])
def test_other_sizes_are_refused(sizes):
    with pytest.raises(InputError, match="sizes must be unknown, alike, or") as caught:
        Settings(sizes=sizes)
    assert repr(sizes) in str(caught.value)


def test_choices_are_listed():
    with pytest.raises(InputError, match=r"pca must be one of all, batch, off; got 'some'"):
        Settings(pca="some")


def test_defaults_are_those_of_the_paper_where_it_gives_them():
    settings = Settings()
    optimiser = settings.optimiser
    assert settings.network.model == "vit_base_patch16_224.dino"
    assert (optimiser.n_labelled_per_batch, optimiser.n_unlabelled_per_batch) == (64, 64)
    assert optimiser.batch_size == 128
    assert (optimiser.learning_rate, optimiser.epochs) == (0.1, 200)
    assert (settings.estep.n_directions, settings.losses.warmup_epochs) == (128, 20)
    assert settings.estep.n_components is None


def test_the_letter_of_the_paper():
    paper = Settings.paper()
    letter = {
        "acceptance": "literal",
        "count_term": "factorial",
        "pca": "batch",
        "projection_head": False,
        "supervised_weight": 0.0,
        "moves_after_epoch": True,
        "moves_every": 1,
        "prototype_temperature": 1.0,
        "target_temperature": 0.0,
        "sizes": "none",
        "weight_average": 0.0,
    }
    assert letter.items() <= paper.as_dict().items()
    assert Settings(contrastive_temperature=0.3).to_the_letter() == paper  # today's default, too
    assert letter.items().isdisjoint(Settings().as_dict().items())
    assert Settings().to_the_letter() == paper
    changed = Settings.paper(epochs=3, pca="off")
    assert (changed.estep.pca, changed.estep.acceptance) == ("off", "literal")
    assert changed.optimiser.epochs == 3


def test_pretraining_reads_no_label_and_takes_changes():
    settings = Settings.pretraining(epochs=2)
    assert settings.losses.supervised_weight == 0
    assert (settings.network.weights, settings.optimiser.epochs) == ("random", 2)


def test_changes_leave_the_rest_and_the_original():
    settings = Settings(epochs=3)
    changed = settings.with_changes(seed=5)
    assert (changed.optimiser.epochs, changed.run.seed, settings.run.seed) == (3, 5, 0)
    with pytest.raises(InputError, match="pca"):
        settings.with_changes(pca="some")
    with pytest.raises(FrozenInstanceError):
        settings.optimiser.epochs = 4
    with pytest.raises(FrozenInstanceError):
        settings.optimiser = changed.optimiser


def test_an_unknown_setting_is_named_and_the_known_ones_are_listed():
    with pytest.raises(InputError, match=r"no setting epoch, sead; there are .*epochs.*seed"):
        Settings().with_changes(sead=1, epoch=3, pca="off")


def test_settings_go_to_json_and_back():
    settings = Settings.paper(epochs=7, n_components=4)
    assert Settings(**json.loads(json.dumps(settings.as_dict()))) == settings
    assert list(settings.as_dict()) == NAMES == WRITTEN


def test_no_name_is_in_two_groups():
    assert len(set(NAMES)) == len(NAMES) == 49
    assert not set(NAMES) & set(GROUPS)


def test_options_are_all_settings_with_their_defaults():
    options = Settings.options()
    assert [option.name for option in options] == NAMES
    assert {option.name: option.default for option in options} == Settings().as_dict()
    assert options[0].hint is str
    assert options[0].help == "Name of the network in timm."


def test_equal_settings_have_one_hash_and_a_repr_that_makes_them_again():
    settings = Settings.paper(seed=3)
    same, other = Settings.paper(seed=3), Settings.paper(seed=4)
    assert settings == same != other
    assert len({settings, same, other}) == 2
    assert eval(repr(settings)) == settings
    assert pickle.loads(pickle.dumps(settings)) == settings


def test_a_name_that_is_no_setting_is_no_argument():
    with pytest.raises(TypeError, match="unexpected keyword argument 'epoch'"):
        Settings(epoch=3)
    with pytest.raises(TypeError, match="unexpected keyword argument 'network'"):
        Settings(network=Settings().network)


def test_settings_need_no_torch():
    program = "import sys, newfound.deep.settings; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert loaded.returncode == 0, loaded.stderr
    assert set(re.split(r"\s+", loaded.stdout)).isdisjoint(["torch", "timm", "torchvision"])


@pytest.mark.parametrize(
    ("values", "rows"),
    [
        ({}, "all"),
        ({"weights": "random"}, "labelled"),
        ({"weights": "random", "known_rows": "all"}, "all"),
        ({"known_rows": "labelled"}, "labelled"),
    ],
)
def test_rows_of_known_prototypes_depend_on_the_weights_unless_given(values, rows):
    assert Settings(**values).known_rows == rows
