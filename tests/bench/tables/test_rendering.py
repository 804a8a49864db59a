"""Tables as text: figures are there, and nothing in a name is taken for an instruction."""

import html
import re
import subprocess
import sys
from html.parser import HTMLParser

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from newfound.bench.tables.cells import Cell
from newfound.bench.tables.rendering import render
from newfound.bench.tables.table import NAMES, Line, Table, make_tables
from newfound.errors import InputError

STYLES = ("terminal", "markdown", "latex", "html")
EVIL = (
    r"<script>alert('x')</script> [bold]a|b[/bold] \input{x} 50% & $y$ #1 _z_ ~ ^ *s* `c` :smile:"
)


BOTH = (Cell("55.4", "54.9", True, "b"), Cell())


def small(name="net", cells=BOTH):
    return Table(
        title=f"Table 0: {name}",
        stub=("Method",),
        groups=(("CUB", ("All", "Old")),),
        rows=(Line((name,), cells, True),),
        notes=(f"b: {name}.",),
    )


class Reader(HTMLParser):
    """Tags, and the texts of table cells, items and captions."""

    def __init__(self):
        super().__init__()
        self.tags, self.texts, self.inside = [], [], False

    def handle_starttag(self, tag, attributes):
        self.tags.append((tag, tuple(attributes)))
        if tag in ("td", "th", "li", "caption", "title"):
            self.texts.append("")
            self.inside = True

    def handle_endtag(self, tag):
        self.inside = self.inside and tag == "sup"

    def handle_data(self, data):
        if self.inside:
            self.texts[-1] += data


def read_html(page):
    reader = Reader()
    reader.feed(page)
    return reader


@pytest.mark.parametrize("style", STYLES)
@pytest.mark.parametrize("name", NAMES)
def test_every_table_in_every_style(name, style):
    tables = make_tables(name, [])
    text = render(tables, style, width=200)
    assert text.endswith("\n")
    for line in (line for table in tables for line in table.rows):
        for cell in line.cells:
            assert cell.paper.replace("±", r"$\pm$" if style == "latex" else "±") in text


@pytest.mark.parametrize(
    ("style", "expected"),
    [
        ("terminal", "55.4† | 54.9ᵇ"),
        ("markdown", r"55.4† \| 54.9<sup>b</sup>"),
        ("latex", r"55.4\textsuperscript{\textdagger} \textbar{} 54.9\textsuperscript{b}"),
        ("html", "<td>55.4† | 54.9<sup>b</sup></td><td>–</td>"),
    ],
)
def test_both_figures_with_their_marks(style, expected):
    assert expected in render(small(), style)


def test_one_figure_without_the_other():
    text = render(small(cells=(Cell("55.4"), Cell("", "54.9"))), "html")
    assert "<td>55.4 | –</td><td>– | 54.9</td>" in text


def test_an_unknown_style_is_refused():
    with pytest.raises(InputError, match="terminal, markdown, latex or html; got 'pdf'"):
        render(small(), "pdf")


# Terminal


def test_the_terminal_shows_names_as_they_are():
    assert EVIL in render(small(EVIL), "terminal", width=200)


def test_a_wide_table_is_cut_between_its_groups():
    tables = make_tables("3", [])
    wide, narrow = (render(tables, "terminal", width=width) for width in (200, 80))
    assert max(map(len, wide.splitlines())) <= 200
    assert max(map(len, narrow.splitlines())) <= 80
    assert wide.count("RankStats+") == 1
    assert narrow.count("RankStats+") == 3
    figures = [sorted(re.findall(r"\d\d\.\d", text)) for text in (wide, narrow)]
    assert figures[0] == figures[1]


def test_figures_are_whole_even_where_nothing_fits():
    assert "55.4† | 54.9ᵇ" in render(
        small("a name that is longer than the terminal"), "terminal", width=20
    )


def test_a_name_cannot_steer_the_terminal():
    text = render(small("a\x1b[31mb\x07\r\nc\u202ed"), "terminal")
    assert "a [31mb   c d" in text
    assert "\x1b" not in text


def test_rich_is_imported_for_the_terminal_only():
    program = (
        "import sys; from newfound.bench.tables.rendering import render;"
        "from newfound.bench.tables.table import make_tables;"
        "[render(make_tables('1', []), style) for style in ('markdown', 'latex', 'html')];"
        "print({'rich', 'torch'} & set(sys.modules))"
    )
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert result.stdout == "set()\n", result.stderr


# Markdown


def cells_of(line):
    """Cells of a row of a Markdown table, unescaped, as GitHub splits and reads them."""
    return [
        re.sub(r"\\(.)", r"\1", cell.strip())
        for cell in re.split(r"(?<!\\)(?:\\\\)*\|", line)[1:-1]
    ]


def test_markdown_has_as_many_cells_in_every_row_whatever_a_name_holds():
    lines = [line for line in render(small(EVIL), "markdown").splitlines() if line.startswith("|")]
    assert [len(cells_of(line)) for line in lines] == [3, 3, 3]
    assert cells_of(lines[2])[0] == EVIL


def test_markdown_holds_no_html_but_its_own():
    text = render(small(EVIL), "markdown")
    assert re.findall(r"(?<!\\)<[^>]*>", text) == ["<sup>", "</sup>"]


# LaTeX


def test_latex_escapes_and_sets_the_letters_of_the_paper():
    text = render(small("K^n_init of K^n, 5% & x_y {a} \\input{b} #$~^<"), "latex")
    expected = (
        r"$K^n_{\mathrm{init}}$ of $K^n$, 5\% \& x\_y \{a\} \textbackslash{}input\{b\} "
        r"\#\$\textasciitilde{}\textasciicircum{}\textless{}"
    )
    assert text.count(expected) == 3
    for word in (r"\toprule", r"\midrule", r"\bottomrule", r"\cmidrule(lr){2-3}"):
        assert word in text
    assert r"\multicolumn{2}{c}{CUB}" in text


@settings(deadline=None, max_examples=60)
@given(st.text(max_size=20))
def test_latex_of_any_name_has_balanced_braces_and_the_same_commands(name):
    def skeleton(text):
        bare = re.sub(r"\\[\\{}&%$#_]", "", text.replace("\\\\\n", "\n"))
        return bare.count("{") - bare.count("}"), text.count(r"\begin"), text.count(" & ")

    assert skeleton(render(small(name), "latex")) == skeleton(render(small("x"), "latex"))


# HTML


@settings(deadline=None, max_examples=60)
@given(st.text(max_size=20) | st.sampled_from([EVIL, "</td><img src=x onerror=y>", "&lt;"]))
def test_html_of_any_name_has_the_same_tags_and_shows_the_name(name):
    page = read_html(render(small(name), "html"))
    assert page.tags == read_html(render(small("x"), "html")).tags
    shown = "".join(c if c.isprintable() else " " for c in name)
    assert page.texts.count(shown) >= 1
    assert f"Table 0: {shown}" in page.texts


def test_html_is_one_page_that_asks_for_nothing():
    page = render([small("one"), small("two")], "html")
    tags = [tag for tag, _ in read_html(page).tags]
    assert tags.count("html") == 1
    assert tags.count("table") == 2
    assert not {"script", "link", "img", "iframe"} & set(tags)
    assert "http" not in page
    assert "url(" not in page


def test_html_rows_have_as_many_cells_as_the_head():
    page = render(make_tables("1", []), "html")
    rows = re.findall(r"<tr[^>]*>(.*?)</tr>", page)
    assert {len(re.findall(r"<t[hd]>", row)) for row in rows[1:]} == {13}
    assert html.unescape(rows[0]).count("<th colspan=") == 3
