"""Profiles of the categories, against slow loops."""

import numpy as np
import pandas as pd
import pytest

from newfound.result.profiles import N_EXAMPLES


def test_categories_against_loops(result):
    V, P = result.V.astype(np.float64), result.prototypes
    assert len(result.categories) == len(P) == 10
    assert (result.n_known, result.n_novel) == (5, 5)
    profiles = result.profiles
    for i, row in enumerate(result.categories.itertuples()):
        members = result.table[result.table["category"] == row.category]
        assert row.kind == members["kind"].iloc[0]
        assert row.size == len(members)
        assert row.n_labelled == members["given_label"].notna().sum()
        assert row.mean_confidence == pytest.approx(members["confidence"].mean())
        assert row.stability == result.mixture.stability_[i]
        distances = np.linalg.norm(P - P[i], axis=1)
        distances[i] = np.inf
        assert row.nearest == result.categories["category"][distances.argmin()]
        from_prototype = pd.Series(np.linalg.norm(V[members.index] - P[i], axis=1), members.index)
        nearest = from_prototype.sort_values().index[:N_EXAMPLES]
        assert profiles.exemplars[i].tolist() == nearest.tolist()
        free = members[members["given_label"].isna()].sort_values("confidence", kind="stable")
        assert profiles.borderline[i].tolist() == free.index[:N_EXAMPLES].tolist()
