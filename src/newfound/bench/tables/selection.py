"""Which runs belong in a cell of a table."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable

from newfound.bench.case import Case, case_key
from newfound.bench.record import Record
from newfound.bench.results import deciding
from newfound.bench.tables.plan import PLAIN, Column, Row


def fits(case: Case, row: Row, column: Column) -> bool:
    """Whether runs of a case belong in the cell of a row and a column."""
    asked = {**row.where, **column.where}
    return all(getattr(case, name) == value for name, value in asked.items()) and all(
        getattr(case, name) == value for name, value in PLAIN.items() if name not in asked
    )


def one_group(records: Iterable[Record]) -> list[Record]:
    """Records that differ only in their seed, the newest of each: the group with most seeds.

    Parameters
    ----------
    records : iterable of Record
        Records that belong in a cell.

    Returns
    -------
    list of Record
        In the order of their seeds; of groups with as many seeds, the newest.
    """
    groups: dict[str, dict[int, Record]] = defaultdict(dict)
    for record in sorted(records, key=lambda record: record.date):
        settings = {n: v for n, v in deciding(record.settings).items() if n != "seed"}
        key = record.split + record.files + case_key(record.case, without=("seed",))
        groups[key + json.dumps(settings, sort_keys=True)][record.case.seed] = record

    def rank(group: dict[int, Record]) -> tuple[int, str]:
        return len(group), max(record.date for record in group.values())

    best = max(groups.values(), key=rank, default={})
    return [best[seed] for seed in sorted(best)]
