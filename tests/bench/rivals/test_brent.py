"""Brent's search tries few numbers."""

from newfound.bench.rivals import brent


def test_brent_looks_at_each_number_once_and_at_few(sphere, monkeypatch):
    tried = []
    plain = brent.k_means_labels
    monkeypatch.setattr(
        brent, "k_means_labels", lambda rows, k, n: tried.append(k) or plain(rows, k, n)
    )
    brent.brent_search(*sphere, random_state=0)
    assert len(tried) == len(set(tried)) <= brent.N_EVALUATIONS
    assert 3 <= min(tried) <= max(tried) <= 120
