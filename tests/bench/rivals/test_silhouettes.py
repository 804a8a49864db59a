"""The silhouette against a plain search."""

from sklearn.cluster import KMeans
from sklearn.metrics import silhouette_score

from newfound.bench.rivals import silhouette, silhouettes
from newfound.bench.rivals.rival_input import prepare_input


def test_silhouette_agrees_with_a_plain_search(sphere):
    X, y = sphere
    rows = prepare_input(X, y, 12, 0)
    scores = {
        k: silhouette_score(rows.V, KMeans(k, n_init=5, random_state=0).fit_predict(rows.V))
        for k in range(3, 13)
    }
    assert max(scores, key=scores.get) - 3 == silhouette(X, y, n_max=12, random_state=0)


def test_silhouette_of_a_part_of_the_rows(sphere, monkeypatch):
    monkeypatch.setattr(silhouettes, "N_SILHOUETTE_ROWS", 100)
    assert silhouette(*sphere, random_state=0) == 3
