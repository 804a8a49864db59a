from types import SimpleNamespace

import numpy as np

from newfound import CategoryCount, SplitMergeMixture
from newfound.mixture import estimator, search
from newfound.mixture.outcome import best_start
from newfound.mixture.prior import NIWPrior
from newfound.mixture.search import FinishedStart
from newfound.mixture.split_merge import Rules


def novel_count(n_novel):
    """A count of so many novel categories."""
    return CategoryCount(float(n_novel), (n_novel - 1.0, n_novel + 1.0), 0.9, 0.5, 0.5, 5, 0)


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


def test_ratios_are_only_computed_where_they_are_read(digits, fitted):
    settings = {"n_components_init": 14, "max_passes": 4, "n_init": 1}
    literal = fitted(digits, acceptance="literal", **settings)
    for done in literal.history_:
        assert np.isfinite(done.log_likelihood)
        assert all(np.isfinite(move.log_ratio) for move in done.moves)
    steered = fitted(digits, **settings)
    moves = [move for done in steered.history_ for move in done.moves]
    assert {move.accepted for move in moves} == {True, False}
    assert all((move.log_ratio is not None) == move.accepted for move in moves)
    assert all(done.log_likelihood is None for done in steered.history_)


def test_a_pass_computes_no_evidence_of_refused_moves(digits, fitted, monkeypatch):
    n_seen = []
    original = Rules.log_evidence

    def watch(rules, stats):
        n_seen.append(len(stats))
        return original(rules, stats)

    monkeypatch.setattr(Rules, "log_evidence", watch)
    mixture = fitted(digits, n_components_init=14, n_init=1)
    done = [move for past in mixture.history_ for move in past.moves if move.accepted]
    # a merge needs its two parents and their union, a split its parent and two halves
    assert 0 < sum(n_seen) <= 3 * len(done)


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
    settings = {"count": novel_count(5), "n_init": 1, "random_state": 0}
    mixture = SplitMergeMixture(5 + 12, **settings).fit(X, y)
    assert mixture.n_components_ == 10
    assert len(inertias) >= 2
    assert (np.diff(inertias) < 0).all()
    assert mixture.converged_


def test_the_best_pass_is_kept_not_the_last(digits, monkeypatch):
    """A start ends with a pass that did not improve the fit: its partition is not the result."""
    X, _, y = digits
    described = []
    original = search._describe

    def watch(rows, labels, rules):
        described.append(original(rows, labels, rules))
        return described[-1]

    finished = []
    original_search = estimator.search

    def keep(*given):
        finished.append(original_search(*given))
        return finished[-1]

    monkeypatch.setattr(search, "_describe", watch)
    monkeypatch.setattr(estimator, "search", keep)
    settings = {"count": novel_count(7), "n_init": 1, "n_directions": 10, "random_state": 0}
    SplitMergeMixture(17, **settings).fit(X, y)
    at_target = [one.inertia for one in described[1:] if len(one.stats) == 12]
    assert min(at_target) < at_target[-1]
    assert finished[0].components.inertia == min(at_target)


def a_start(inertia, log_likelihood):
    """An ended start, as far as `best_start` reads it."""
    described = SimpleNamespace(inertia=inertia, log_likelihood=log_likelihood)
    return FinishedStart(described, None, [], True)


def test_the_best_start_has_the_least_inertia_or_the_largest_likelihood():
    starts = [a_start(3.0, -9.0), a_start(1.0, -8.0), a_start(2.0, -7.0)]
    assert best_start(starts, same_k=True) is starts[1]
    assert best_start(starts, same_k=False) is starts[2]


def test_the_result_follows_the_best_start(digits, monkeypatch):
    """Its partition leads the vote, and its history is the one that is shown."""
    X, _, y = digits
    starts, led = [], []
    original_search, original_conclude = estimator.search, estimator.conclude

    def keep(*given):
        starts.append(original_search(*given))
        return starts[-1]

    def watch(rows, partitions, **options):
        led.append(partitions[0])
        return original_conclude(rows, partitions, **options)

    monkeypatch.setattr(estimator, "search", keep)
    monkeypatch.setattr(estimator, "conclude", watch)
    places = set()
    for seed in range(3):
        starts.clear()
        settings = {"count": novel_count(5), "random_state": seed, "n_directions": 10}
        mixture = SplitMergeMixture(17, **settings).fit(X, y)
        place = int(np.argmin([start.components.inertia for start in starts]))
        places.add(place)
        assert led[-1] is starts[place].components.labels
        assert mixture.history_ is starts[place].history
    assert len(places) > 1


def test_settings_reach_the_mixture(digits, fitted):
    settings = {"max_passes": 1, "n_components_init": 12, "acceptance": "literal"}
    gamma = fitted(digits, **settings)
    factorial = fitted(digits, count_term="factorial", **settings)
    assert gamma.history_[0].moves[0].log_ratio != factorial.history_[0].moves[0].log_ratio
    prior = NIWPrior(np.zeros(10), 1.0, 12.0, 0.01 * np.eye(10))
    assert fitted(digits, n_directions=10, prior=prior, max_passes=1).prior_ is prior
