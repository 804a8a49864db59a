"""The paper to the letter: which settings that is, and that it runs."""

import numpy as np
import pytest
import torch

from newfound.bench import method as base
from newfound.bench.methods.gpc_literal import GPCLiteralMethod
from newfound.deep.settings import Settings
from newfound.metrics import discovery_scores
from newfound.mixture.estimator import SplitMergeMixture
from newfound.workflows.demo import DIGITS

torch.set_num_threads(1)

#: What the paper says, field by field.
LETTER = {
    "projection_head": False,
    "supervised_weight": 0.0,
    "contrastive_temperature": 1.0,
    "prototype_temperature": 1.0,
    "target_temperature": 0.0,
    "sizes": "none",
    "weight_average": 0.0,
    "pca": "batch",
    "count_term": "factorial",
    "acceptance": "literal",
    "whiten": False,
    "moves_every": 1,
    "moves_after_epoch": True,
    "known_rows": "labelled",
    "selection": "validation",
}
#: None of them the paper's, and other fields that are not the defaults.
OTHER = DIGITS.with_changes(
    **{"whiten": True, "contrastive_temperature": 0.3, "learning_rate": 0.07, "seed": 5},
    **{"n_directions": 9, "epochs": 3, "warmup_epochs": 2, "rehearse": False},
)


def test_the_example_is_nowhere_the_papers():
    assert not [name for name, value in LETTER.items() if OTHER.as_dict()[name] == value]


@pytest.mark.parametrize("n_components", [None, 7])
def test_every_field_is_the_papers_or_the_benchmarks(tmp_path, n_components):
    settings = GPCLiteralMethod(n_components, settings=OTHER, folder=tmp_path).loop_settings()
    for item in Settings.options():
        expected = LETTER.get(item.name, OTHER.as_dict()[item.name])
        if item.name == "n_components":
            expected = n_components
        assert settings.as_dict()[item.name] == expected, item.name


def test_the_letter_is_that_of_settings_paper():
    plain, paper = Settings().as_dict(), Settings.paper().as_dict()
    assert {name: value for name, value in paper.items() if value != plain[name]} == {
        name: value for name, value in LETTER.items() if value != plain[name]
    }


def test_pca_is_off_when_asked(tmp_path):
    without = OTHER.with_changes(pca="off")
    settings = GPCLiteralMethod(settings=without, folder=tmp_path).loop_settings()
    assert settings.estep.pca == "off"
    literal = GPCLiteralMethod(settings=OTHER, folder=tmp_path).loop_settings()
    assert settings == literal.with_changes(pca="off")


@pytest.mark.parametrize("pca", ["all", "off"])
def test_these_settings_reach_loop_and_loss(tmp_path, few_digits, monkeypatch, pca):
    seen = []

    class Stop(Exception):
        pass

    def spy(pixels, codes, settings, folder, *, method, **options):
        seen.extend([settings, method.settings])
        raise Stop

    monkeypatch.setattr(base, "train", spy)
    method = GPCLiteralMethod(settings=OTHER.with_changes(pca=pca), folder=tmp_path)
    expected = method.loop_settings()
    with pytest.raises(Stop):
        method.fit(few_digits.pixels, few_digits.y)
    assert seen == [expected, expected]


@pytest.mark.parametrize("n_components", [None, 7])
def test_it_runs_and_is_better_than_chance_on_known_digits(seven_digits, tmp_path, n_components):
    settings = DIGITS.with_changes(epochs=4, rehearse=False)
    method = GPCLiteralMethod(n_components, settings=settings, folder=tmp_path)
    method.fit(seven_digits.pixels, seven_digits.y)
    free = seven_digits.y == -1
    truth = seven_digits.truth[free]
    scores = discovery_scores(truth, method.labels_[free], range(5))
    shuffled = np.random.default_rng(0).permutation(method.labels_[free])
    assert scores.old > discovery_scores(truth, shuffled, range(5)).old + 0.2
    assert len(method.history_) == 4
    assert method.n_components_ == method.labels_.max() + 1
    if n_components is not None:
        assert method.n_components_ == n_components
    # every round of moves comes after its epoch, and the last one's K is the answer
    labelled = seven_digits.y != -1
    np.testing.assert_array_equal(method.labels_[labelled], seven_digits.y[labelled])


def test_features_are_clustered_by_the_literal_mixture(few_digits, tmp_path):
    X = few_digits.pixels[:, 0].reshape(len(few_digits.truth), -1) / 255
    method = GPCLiteralMethod(settings=OTHER, folder=tmp_path).fit(X, few_digits.y)
    mixture = SplitMergeMixture(
        acceptance="literal",
        count_term="factorial",
        whiten=False,
        n_directions=9,
        random_state=5,
    ).fit(X, few_digits.y)
    np.testing.assert_array_equal(method.labels_, mixture.labels_)
