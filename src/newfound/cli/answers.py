"""What commands show at their end: the report, the answer, and what was skipped."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.table import Table

from newfound.errors import MissingExtraError
from newfound.progress import Progress
from newfound.words import plural, things

if TYPE_CHECKING:
    from newfound.data.collection import Skipped
    from newfound.mixture.counting.count import CategoryCount
    from newfound.mixture.trust.verdict import TrustReport
    from newfound.result.result import Result
    from newfound.workflows.demo import Category


def write_page(result: Result, folder: Path, progress: Progress) -> None:
    """Write the report of a run, and the labels that look wrong."""
    from newfound.report.audit_table import write_audit
    from newfound.report.page import write_report

    write_audit(result, folder / "audit.csv")
    step = functools.partial(progress, "Drawing the report")
    write_report(result, folder / "report.html", progress=step)


def write_page_if_possible(result: Result, folder: Path, progress: Progress, is_done: bool) -> bool:
    """Write the report; a machine for training may lack what the page needs."""
    if is_done and (folder / "report.html").is_file():
        return True
    try:
        write_page(result, folder, progress)
    except MissingExtraError:
        return False
    return True


def print_answer(result: Result, folder: Path, *, has_report: bool = True) -> None:
    """Print the answer, how far to trust it, and where to look."""
    print(result.answer)
    print(result.trust)
    if result.unsure is not None:
        print(result.unsure)
    for warning in result.record.warnings:
        print(f"Note: {warning}")
    thing = "file" if result.record.kind == "pictures" else "row"
    print_skipped(result.collection.skipped, thing, folder / "skipped.csv")
    page = f"Report: {folder / 'report.html'}."
    if not has_report:
        page = f"For a report, run `newfound report {folder}` where newfound[report] is installed."
    print(f"{page} Table: {folder / 'assignments.csv'}.")


def print_predictions(table: Any, out: Path) -> None:
    """Print how many items were put into categories, and where the table is."""
    n_novel = int((table["kind"] == "novel").sum())
    unsure = f", {int(table['is_unsure'].sum()):,} unsure" if "is_unsure" in table else ""
    sorted_in = plural(len(table), things(table.attrs["kind"], 1))
    print(f"{sorted_in}, {n_novel:,} of them in new categories{unsure}: {out}")


def print_trust(report: TrustReport, names: tuple[str, ...]) -> None:
    """Print how far to believe a run, and where it is weak."""
    from newfound.result.trust import trust_tables

    shown = trust_tables(report, names)
    print(shown["word"].upper())
    for reason in (*shown["reasons"], shown["confidence"]):
        if reason:
            print(f"- {reason}")
    for title, rows in (
        ("Known categories that were not found again when hidden", shown["classes"]),
        ("New categories that did not come back (Jaccard index)", shown["unstable"]),
    ):
        if rows:
            print(f"{title}:")
            for name, words in rows:
                print(f"  {name}: {words}")


def print_count(count: CategoryCount) -> None:
    """Print how many new categories there are, and what that rests on."""
    low, high = count.interval
    known = plural(count.n_known, "known category", "known categories")
    print(
        f"{known}, and about {count.n_novel:.1f} new ones "
        f"({count.level:.0%} interval: {low:.1f} to {high:.1f})."
    )
    if not math.isnan(count.novel_share):
        print(
            f"{count.novel_share:.0%} of the unlabelled rows belong to new categories; "
            f"{count.label_rate:.0%} of the rows of known categories are labelled."
        )
    if not math.isnan(count.novel_size):
        print(size_sentence(count))


def size_sentence(count: CategoryCount) -> str:
    """How large new categories are, and what that was judged by, in one sentence."""
    low, high = count.novel_size_interval
    known = "" if math.isnan(count.known_size) else f", a known one {count.known_size:.0f}"
    reason = {
        "data": "judged by how many rows lie close to each row",
        "prior": "the rows do not tell, so the interval covers whatever is plausible",
        "given": "as you said",
    }
    return (
        f"A new category has about {count.novel_size:.0f} rows ({count.level:.0%} interval: "
        f"{low:.0f} to {high:.0f}){known}: {reason[count.sizes_from]}."
    )


def print_digits(categories: Sequence[Category]) -> None:
    """Print the table of the demo: each category with the digit that it mostly holds."""
    table = Table(title="Categories found in 1,797 pictures of digits")
    for heading in ("category", "kind", "pictures", "mostly", "share"):
        table.add_column(heading)
    for row in categories:
        table.add_row(row.name, row.kind, str(row.size), row.mostly, f"{row.share:.0%}")
    Console().print(table)


def print_done(folder: Path, is_done: bool) -> None:
    """Say that a run was finished before, and how to redo it."""
    if is_done:
        print(f"The run in {folder} is finished. To do it again, add --overwrite. Its answer:")


def print_skipped(
    skipped: Sequence[Skipped], thing: str = "file", listed: Path | None = None
) -> None:
    """Print how many items were left out, the commonest reason, and where all are listed."""
    if not skipped:
        return
    from newfound.data.collection import main_cause

    first, share = main_cause(skipped)
    counted = plural(len(skipped), f"{thing} was skipped", f"{thing}s were skipped")
    where = "" if listed is None else f" All reasons: {listed}."
    print(f"{counted}{share}. The first is {first.path}: {first.reason}.{where}")
