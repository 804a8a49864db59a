import numpy as np

from newfound import SplitMergeMixture
from newfound.mixture import search
from newfound.mixture.prior import NIWPrior


def test_known_k_makes_no_moves(digits, fitted):
    mixture = fitted(digits, n_components=9)
    assert mixture.n_components_ == 9
    assert mixture.history_ == []
    assert mixture.converged_


def test_history_holds_every_pass(digits, fitted):
    passes = []
    mixture = fitted(digits, n_components_init=14, max_passes=4, n_init=1, callback=passes.append)
    assert passes == mixture.history_
    for done in passes:
        kinds = {move.kind for move in done.moves}
        assert kinds <= {"split", "merge"}
        assert np.isfinite(done.log_likelihood)


def test_verbose_prints_a_line_a_pass(digits, capsys, fitted):
    mixture = fitted(digits, verbose=1, max_passes=2, n_init=1)
    assert len(capsys.readouterr().out.splitlines()) == len(mixture.history_)


def test_passes_at_the_target_go_on_only_while_the_fit_improves(digits, monkeypatch):
    inertias = []
    original = search.split_merge_pass

    def watch(V, components, rules, seed):
        if len(components.stats) == 10:
            inertias.append(components.inertia)
        return original(V, components, rules, seed)

    monkeypatch.setattr(search, "split_merge_pass", watch)
    X, _, y = digits
    mixture = SplitMergeMixture(5 + 12, sizes="alike", n_init=1, random_state=4).fit(X, y)
    assert mixture.n_components_ == 10
    assert len(inertias) >= 2
    assert (np.diff(inertias) < 0).all()
    assert mixture.converged_


def test_settings_reach_the_mixture(digits, fitted):
    gamma = fitted(digits, max_passes=1, n_components_init=12)
    factorial = fitted(digits, max_passes=1, n_components_init=12, count_term="factorial")
    assert gamma.history_[0].moves[0].log_ratio != factorial.history_[0].moves[0].log_ratio
    prior = NIWPrior(np.zeros(10), 1.0, 12.0, 0.01 * np.eye(10))
    assert fitted(digits, n_directions=10, prior=prior, max_passes=1).prior_ is prior
