"""A finished table as text for the terminal, Markdown, LaTeX (booktabs) or a page of HTML.

All text is treated as plain text. Characters that have a meaning in a format are escaped, and
characters that cannot be printed become spaces. So a name in a results file cannot inject markup.
"""

from __future__ import annotations

import html
import io
import re
import shutil
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from newfound.bench.tables.cells import Cell
from newfound.bench.tables.table import Line, Table
from newfound.errors import InputError, require

NOTHING = "–"
_DAGGER = "†"
_SUPERSCRIPTS = str.maketrans("abcdefghijklmnoprstuvwxyz", "ᵃᵇᶜᵈᵉᶠᵍʰⁱʲᵏˡᵐⁿᵒᵖʳˢᵗᵘᵛʷˣʸᶻ")
_LATEX = str.maketrans(
    {
        "\\": r"\textbackslash{}",
        "~": r"\textasciitilde{}",
        "^": r"\textasciicircum{}",
        "|": r"\textbar{}",
        "<": r"\textless{}",
        ">": r"\textgreater{}",
        '"': "''",
        "–": "--",
        "−": "$-$",
        "±": r"$\pm$",
        "×": r"$\times$",
        "·": r"$\cdot$",
        "†": r"\textsuperscript{\textdagger}",
        **{character: f"\\{character}" for character in "&%$#_{}"},
    }
)
_LETTERS = re.compile(r"\b([KD])\^([lnu])\b|\b(K)\^n_init\b")
_MARKDOWN = re.compile(r"([\\`*_\[\]<>#|~$&])")
_STYLE = """
body { font: 15px/1.4 system-ui, sans-serif; margin: 2rem; color: #222; background: #fff }
table { border-collapse: collapse; margin: 1rem 0; font-variant-numeric: tabular-nums }
caption { text-align: left; font-weight: 600; padding-bottom: .5rem }
th, td { padding: .2rem .6rem; text-align: center; white-space: nowrap }
tbody th { text-align: left; font-weight: 400 }
thead tr:last-child th, table { border-bottom: 1px solid #222 }
table, tr.ruled > * { border-top: 1px solid #222 }
""".strip()


def render(tables: Table | Sequence[Table], style: str, *, width: int | None = None) -> str:
    """Tables as text.

    Parameters
    ----------
    tables : Table or sequence of Table
        From `newfound.bench.tables.table.make_tables`.
    style : {"terminal", "markdown", "latex", "html"}
        Output format. HTML is one self-contained page; LaTeX needs ``booktabs``.
    width : int, optional
        Width of the terminal in characters; by default that of the real one. A wider table is
        divided between its groups of columns.

    Returns
    -------
    str
        Ends with a line break.
    """
    tables = [tables] if isinstance(tables, Table) else list(tables)
    if style == "html":
        return _page(tables)
    if style == "terminal":
        columns = shutil.get_terminal_size((120, 24)).columns if width is None else width
        return "\n".join(_terminal(table, columns) for table in tables)
    if style not in _RENDERERS:
        raise InputError(f"The format is terminal, markdown, latex or html; got {style!r}.")
    return "\n".join(_RENDERERS[style](table) for table in tables)


def _clean(text: str) -> str:
    """Replace line breaks, control characters and the like by spaces."""
    return "".join(character if character.isprintable() else " " for character in text)


def _cell(cell: Cell, escape: Callable[[str], str], superscript: Callable[[str], str]) -> str:
    """The paper's figure and ours with their marks; one dash if there is neither."""
    if not cell.paper and not cell.ours:
        return escape(NOTHING)
    paper = escape((cell.paper or NOTHING) + (_DAGGER if cell.marked else ""))
    note = superscript(escape(cell.note)) if cell.note else ""
    return f"{paper}{escape(' | ')}{escape(cell.ours or NOTHING)}{note}"


def _headings(table: Table) -> Iterator[tuple[str, str]]:
    """Group and title of each column; a group is named only at its first column."""
    for group, titles in table.groups:
        for place, title in enumerate(titles):
            yield (group if place == 0 else ""), title


def _plain(line: Line) -> list[str]:
    """Texts of a row for the terminal."""
    cells = [_cell(cell, _clean, lambda note: note.translate(_SUPERSCRIPTS)) for cell in line.cells]
    return [*map(_clean, line.titles), *cells]


def _terminal(table: Table, width: int) -> str:
    require("rich", extra="cli")
    from rich.console import Console
    from rich.text import Text

    stream = io.StringIO()
    # no colours, because the text may go to a file
    console = Console(file=stream, width=max(width, 40), color_system=None)
    # a single group may be wider than the terminal: long lines are better than figures cut short
    wide = Console(file=stream, width=10_000, color_system=None)
    console.print(Text(_clean(table.title)))
    rows = [_plain(line) for line in table.rows]
    for places in _parts(table, rows, width):
        wide.print(_rich_table(table, rows, places))
    for note in table.notes:
        console.print(Text(f"· {_clean(note)}"))
    return "".join(f"{line.rstrip()}\n" for line in stream.getvalue().splitlines())


def _parts(table: Table, rows: list[list[str]], width: int) -> list[list[int]]:
    """Divide the columns into parts, each with as many groups as fit in the width."""
    headings = [*map(_clean, table.stub)]
    headings += [_clean(max(both, key=len)) for both in _headings(table)]
    widths = [max(map(len, texts)) + 3 for texts in zip(headings, *rows, strict=True)]
    n_stub = len(table.stub)
    room = width - sum(widths[:n_stub]) - 1
    parts: list[list[int]] = []
    start, used = n_stub, 0
    for _, titles in table.groups:
        group = list(range(start, start + len(titles)))
        need = sum(widths[place] for place in group)
        if not parts or used + need > room:
            parts.append([])
            used = 0
        parts[-1] += group
        start, used = start + len(titles), used + need
    return parts


def _rich_table(table: Table, rows: list[list[str]], places: list[int]) -> Any:
    from rich.box import SIMPLE_HEAD
    from rich.table import Table as RichTable
    from rich.text import Text

    n_stub = len(table.stub)
    headings = list(_headings(table))
    grid = RichTable(box=SIMPLE_HEAD, pad_edge=False)
    for title in table.stub:
        grid.add_column(Text(f"\n{_clean(title)}"), no_wrap=True)
    for place in places:
        group, title = map(_clean, headings[place - n_stub])
        grid.add_column(Text(f"{group}\n{title}"), no_wrap=True, justify="center")
    for line, row in zip(table.rows, rows, strict=True):
        if line.ruled:
            grid.add_section()
        grid.add_row(*(Text(row[place]) for place in [*range(n_stub), *places]))
    return grid


def _escape_markdown(text: str) -> str:
    return _MARKDOWN.sub(r"\\\1", _clean(text))


def _markdown(table: Table) -> str:
    escape = _escape_markdown
    groups = [
        f"{group}: {title}" if group else title
        for group, titles in table.groups
        for title in titles
    ]
    lines = [" | ".join(map(escape, [*table.stub, *groups]))]
    lines.append(" | ".join(["---"] * len(table.stub) + [":-:"] * len(groups)))
    for line in table.rows:
        cells = [_cell(cell, escape, "<sup>{}</sup>".format) for cell in line.cells]
        lines.append(" | ".join([*map(escape, line.titles), *cells]))
    notes = [f"- {escape(note)}" for note in table.notes]
    body = [f"| {line} |" for line in lines]
    return "\n".join([f"### {escape(table.title)}", "", *body, "", *notes, ""])


def _escape_latex(text: str) -> str:
    """Escaped text; the paper's symbols, such as K^n, are set as mathematics."""
    text = _clean(text)
    pieces, end = [], 0
    for match in _LETTERS.finditer(text):
        letter, upper, guess = match.groups()
        pieces.append(text[end : match.start()].translate(_LATEX))
        pieces.append(r"$K^n_{\mathrm{init}}$" if guess else f"${letter}^{upper}$")
        end = match.end()
    return "".join([*pieces, text[end:].translate(_LATEX)])


def _latex(table: Table) -> str:
    escape = _escape_latex
    n_stub, n_cells = len(table.stub), sum(len(titles) for _, titles in table.groups)
    over, rules, start = [], [], n_stub + 1
    for group, titles in table.groups:
        over.append(rf"\multicolumn{{{len(titles)}}}{{c}}{{{escape(group)}}}")
        if group:
            rules.append(rf"\cmidrule(lr){{{start}-{start + len(titles) - 1}}}")
        start += len(titles)
    headings = [*table.stub, *(title for _, title in _headings(table))]
    lines = [
        r"\begin{table}",
        r"\centering",
        rf"\caption{{{escape(table.title)}}}",
        rf"\begin{{tabular}}{{{'l' * n_stub}{'c' * n_cells}}}",
        r"\toprule",
        rf"{' & '.join([''] * n_stub + over)} \\",
        " ".join(rules),
        rf"{' & '.join(map(escape, headings))} \\",
        r"\midrule",
    ]
    for line in table.rows:
        cells = [_cell(cell, escape, r"\textsuperscript{{{}}}".format) for cell in line.cells]
        lines += [r"\midrule"] if line.ruled else []
        lines.append(rf"{' & '.join([*map(escape, line.titles), *cells])} \\")
    lines += [r"\bottomrule", r"\end{tabular}", r"\par\footnotesize"]
    lines += [rf"{escape(note)}\par" for note in table.notes]
    return "\n".join([*lines, r"\end{table}", ""])


def _escape_html(text: str) -> str:
    return html.escape(_clean(text), quote=True)


def _page(tables: Sequence[Table]) -> str:
    title = _escape_html(tables[0].title) if tables else "newfound"
    head = f'<meta charset="utf-8">\n<title>{title}</title>\n<style>\n{_STYLE}\n</style>'
    body = "\n".join(map(_html, tables))
    return (
        f'<!doctype html>\n<html lang="en">\n<head>\n{head}\n</head>\n'
        f"<body>\n{body}\n</body>\n</html>\n"
    )


def _html(table: Table) -> str:
    escape = _escape_html
    over = "".join(
        f'<th colspan="{len(titles)}">{escape(group)}</th>' for group, titles in table.groups
    )
    headings = [*table.stub, *(title for _, title in _headings(table))]
    lines = ["<table>", f"<caption>{escape(table.title)}</caption>", "<thead>"]
    lines.append(f'<tr><td colspan="{len(table.stub)}"></td>{over}</tr>')
    lines.append(f"<tr>{''.join(f'<th>{escape(text)}</th>' for text in headings)}</tr>")
    lines += ["</thead>", "<tbody>"]
    for line in table.rows:
        titles = "".join(f"<th>{escape(text)}</th>" for text in line.titles)
        cells = "".join(
            f"<td>{_cell(cell, escape, '<sup>{}</sup>'.format)}</td>" for cell in line.cells
        )
        kind = ' class="ruled"' if line.ruled else ""
        lines.append(f"<tr{kind}>{titles}{cells}</tr>")
    lines += ["</tbody>", "</table>", "<ul>"]
    lines += [f"<li>{escape(note)}</li>" for note in table.notes]
    return "\n".join([*lines, "</ul>"])


_RENDERERS: dict[str, Callable[[Table], str]] = {"markdown": _markdown, "latex": _latex}
