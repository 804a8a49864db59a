"""``audit.csv``: labels that look wrong, ranked, with a suggested label."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from newfound.arrays import Bools
from newfound.data.tables import as_objects, make_table, write_csv
from newfound.report.audit import audit_labels
from newfound.result.edits.decisions import Obeyed
from newfound.result.result import Result


def undecided_labels(result: Result) -> Bools:
    """Items whose label was given with the collection, and not by a decision on the result."""
    is_labelled = result.collection.is_labelled
    if result.folder is None:
        return is_labelled
    decided = list(Obeyed.read(result.folder).unedited)
    return is_labelled & ~np.isin(result.collection.ids, decided)


def write_audit(result: Result, path: Path) -> int:
    """Write the labels that a person should check, the most doubtful first.

    The columns are ``id``, ``label``, ``suggested_label``, ``score`` (from 0 to 1), and how many
    of the ``n_asked`` nearest items are in the suggested category (``n_neighbours``). Labels that
    a person has decided on are left out.

    Parameters
    ----------
    result : Result
        What was found.
    path : Path
        The file.

    Returns
    -------
    int
        Number of doubtful labels.
    """
    ids, names, codes = result.collection.ids, result.names, result.assigned.labels
    given = undecided_labels(result)
    has_space = result.V.shape[1] > 0
    suspects = audit_labels(result.V, codes, given) if has_space and given.any() else []
    columns = {
        "id": as_objects([ids[s.row] for s in suspects]),
        "label": as_objects([names[codes[s.row]] for s in suspects]),
        "suggested_label": as_objects([names[s.elsewhere] for s in suspects]),
        "score": np.array([s.score for s in suspects], dtype=np.float64),
        "n_neighbours": np.array([s.n_neighbours for s in suspects], dtype=np.int64),
        "n_asked": np.array([s.n_asked for s in suspects], dtype=np.int64),
    }
    write_csv(make_table(columns), path)
    return len(suspects)
