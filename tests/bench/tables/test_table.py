"""Tables: the paper's figures as printed, and the right records in the right cells.

Records here are made up; the figures in them mean nothing.
"""

import itertools
import math
from dataclasses import replace

import pytest

from newfound.bench.case import Case
from newfound.bench.methods import NAMES as METHOD_NAMES
from newfound.bench.record import Record
from newfound.bench.tables.cells import breaks_sum, count_broken, old_share
from newfound.bench.tables.paper_plans import PLANS
from newfound.bench.tables.plan import DATASETS, METHODS, PAPER
from newfound.bench.tables.table import NAMES, make_tables
from newfound.errors import InputError


def made_up(method="gpc", dataset="cub", scores=(54.9, 60.5, 52.1), *, case=None, **values):
    facts = DATASETS.get(dataset, DATASETS["cub"])
    defaults = {
        "split": "5ec0de",
        "n_labelled": facts["n_labelled"],
        "n_unlabelled": facts["n_unlabelled"],
        "n_known": facts["n_known"],
        "n_novel_true": facts["n_novel"],
        "n_components": facts["n_known"] + 7,
        "n_novel": 7,
        "k_source": "mixture",
        "checkpoint": "last epoch",
        "nmi": 0.7,
        "ari": 0.4,
        "n_novel_of_mixture": None,
        "n_novel_by_epoch": [],
        "seconds": 1234.0,
        "seconds_per_epoch": 6.0,
        "e_step_share": 0.1,
        "machine": "none",
        "versions": {},
        "date": "2024-05-01",
    }
    run = Case(method, dataset, **(case or {}))
    total, old, new = scores
    return Record(case=run, all=total, old=old, new=new, **{**defaults, **values})


def cells(table):
    """(titles, group, column) → cell."""
    heads = [(group, title) for group, titles in table.groups for title in titles]
    return {
        (line.titles, *head): cell
        for line in table.rows
        for head, cell in zip(heads, line.cells, strict=True)
    }


def cell(records, name, titles, group, column="All"):
    (table,) = make_tables(name, records)
    return cells(table)[titles, group, column]


GPC = ("(11)", "GPC", "count", "yes")
GPC_KNOWN = ("(7)", "GPC", "given", "yes")
GCD = ("(5)", "Vaze et al. (GCD)", "given", "no")
#: What notes say of records like these, which lack what older lines lack.
OLDER = "commit not recorded, settings not recorded"


# The paper's figures


@pytest.mark.parametrize(
    ("name", "row", "column", "figures"),
    [
        ("1", "gpc unknown pca", "cifar100", "75.4 84.6 60.1"),
        ("1", "gcd known", "cifar100", "73.0 76.2 66.5"),
        ("1", "orca known", "cifar10", "81.8 86.2 79.6"),
        ("3", "gpc known pca", "cub", "55.4 58.2 53.1"),
        ("3", "gpc unknown pca", "cars", "38.2 58.9 27.4"),
        ("3", "gcd unknown pca", "aircraft", "43.2 40.9 44.6"),
        ("4", "gpc known pca", "herbarium", "36.5 51.7 27.9"),
        ("6", "gcd longer", "imagenet100", "74.7 90.3 66.7"),
        ("7a", "mixture", "cub", "54.1"),
        ("7b", "gcd", "imagenet100", "73.4"),
        ("8", "gpc", "cars", "103"),
        ("9", "gpc", "75", "53.6 51.4 55.9"),
        ("10", "gpc", "60/140", "135"),
        ("11", "cifar10", "50", "8"),
        ("12", "gpc", "400", "122"),
        ("13", "gcd known", "cifar100", "76.9±0.3 84.6±0.3 61.5±0.2"),
        ("14", "gcd unknown pca", "aircraft", "41.2±0.3 40.9±0.4 44.6±0.2"),
        ("15", "gpc", "cars", "104±3.4"),
        ("16", "orca ImageNet", "cifar10", "91.4 88.0 91.2"),
        ("16", "gpc Target", "cifar10", "91.1 87.8 90.5"),
        ("16", "gpc Target", "cifar100", "65.0 74.3 42.6"),
        ("16", "orca Target", "cifar10", "90.6 87.2 90.1"),
        ("16", "orca Target", "cifar100", "64.7 73.2 42.1"),
        ("17", "gpc Target", "aircraft", "46.2 41.0 45.2"),
    ],
)
def test_figures_are_those_that_the_paper_prints(name, row, column, figures):
    assert PAPER[name]["rows"][row][column] == figures.split()


def test_table_5_gives_the_errors_of_k_that_are_known_of_it():
    errors = {}
    for dataset, row in PAPER["5"]["rows"].items():
        truth = int(row["novel"][0])
        found = [int(row[str(k)][0]) for k in (3, 5, 10, 20, 30, 50, 100)]
        errors[dataset] = round(100 * sum(abs(k - truth) for k in found) / truth / 7)
    assert errors == {"cifar10": 40, "cifar100": 21, "imagenet100": 10, "cub": 12, "cars": 11}


def test_all_637_figures_are_there_and_are_numbers():
    figures = [
        figure
        for table in PAPER.values()
        for row in table["rows"].values()
        for column in row.values()
        for figure in column
    ]
    assert len(figures) == 637
    for figure in figures:
        assert all(float(part) >= 0 for part in figure.split("±"))


def test_imagenet_rows_of_tables_16_and_17_are_row_6():
    for name, main in (("16", "1"), ("17", "3")):
        assert PAPER[name]["rows"]["gpc ImageNet"] == PAPER[main]["rows"]["gpc known"]


def test_main_tables_have_eleven_rows_of_three_results():
    for name in ("1", "3"):
        assert len(PAPER[name]["rows"]) == 11
        assert all(len(row) == 3 for row in PAPER[name]["rows"].values())


def test_23_of_66_results_break_the_sum_all_with_gpc_or_unknown_k():
    broken = {name: count_broken(PLANS[name]) for name in ("1", "3")}
    assert broken == {"1": (9, 33), "3": (14, 33)}
    for name in ("1", "3"):
        for line in make_tables(name, [])[0].rows:
            if any(cell.marked for cell in line.cells):
                assert line.titles[1] == "GPC" or line.titles[2] != "given"


def test_the_sum_is_checked_with_the_share_of_old_rows():
    assert old_share("cifar10") == pytest.approx(1 / 3)
    assert old_share("cifar100") == pytest.approx(2 / 3)
    assert old_share("cub", 50) == pytest.approx(749 / (749 + 2998))
    assert not breaks_sum(["60.3", "80.0", "20.0"], 2 / 3)
    assert breaks_sum(["60.4", "80.0", "20.0"], 2 / 3)
    assert breaks_sum(["59.6±0.1", "80.0±2.0", "20.0±0.3"], 2 / 3)


def test_only_all_is_marked():
    found = cells(make_tables("3", [])[0])
    titles = ("(6)", "GPC", "given", "no")
    assert [found[titles, "CUB", c].marked for c in ("All", "Old", "New")] == [True, False, False]
    assert not found[("(1)", "k-means", "given", "no"), "CUB", "All"].marked


# What is in every table


@pytest.mark.parametrize("name", NAMES)
def test_every_table_prints_without_records(name):
    for table in make_tables(name, []):
        assert {cell.ours for line in table.rows for cell in line.cells} <= {""}
        assert bool(table.rows) == bool(PAPER[table.title.split()[1].strip(":")]["rows"])
        assert any("None of our runs" in note for note in table.notes)


@pytest.mark.parametrize("name", PLANS)
def test_every_figure_of_the_paper_is_in_its_table(name):
    (table,) = make_tables(name, [])
    shown = {cell.paper for line in table.rows for cell in line.cells}
    shown |= {title for line in table.rows for title in line.titles}
    printed = {figure for row in PAPER[name]["rows"].values() for c in row.values() for figure in c}
    assert printed <= shown


@pytest.mark.parametrize("name", PLANS)
def test_rows_and_columns_fit_and_no_two_cells_are_the_same(name):
    (table,) = make_tables(name, [])
    n_columns = sum(len(titles) for _, titles in table.groups)
    assert {len(line.cells) for line in table.rows} <= {n_columns}
    assert {len(line.titles) for line in table.rows} <= {len(table.stub)}
    assert len(cells(table)) == n_columns * len(table.rows)


def test_names_are_the_17_tables_and_ours():
    assert set(NAMES) == {*map(str, range(1, 18)), "7a", "7b", "lt"}
    assert [table.title[:9] for table in make_tables("7", [])] == ["Table 7a:", "Table 7b:"]
    with pytest.raises(InputError, match="no table '18'"):
        make_tables("18", [])


def test_methods_are_those_of_the_benchmark():
    assert set(METHODS) == set(METHOD_NAMES)


@pytest.mark.parametrize("name", ["1", "3", "4", "13", "14"])
def test_main_tables_have_every_method_with_known_and_unknown_k(name):
    titles = [row.titles[-3:] for row in PLANS[name].rows]
    assert len(titles) == len(set(titles))
    for method, k in itertools.product(METHODS.values(), ("given", "Brent", "count")):
        assert (method.title, k, "no") in titles
        assert ((method.title, k, "yes") in titles) == method.has_pca
    assert ("GPC literal", "own", "yes") in titles
    assert ("SimGCD + our mixture", "count", "yes") in titles
    assert ("GPC without D27", "given", "yes") in titles


def test_rows_that_neither_the_paper_nor_we_have_are_not_shown():
    rows = make_tables("3", [made_up("simgcd", case={"k": "count", "pca": False})])[0].rows
    assert len(rows) == len(PAPER["3"]["rows"]) + 1
    assert [line.titles for line in rows if line.titles[1] == "SimGCD"] == [
        ("", "SimGCD", "count", "no")
    ]
    assert sum(line.ruled for line in rows) == 2  # the rules of rows that are left out move on


# Which record goes where


def test_a_record_stands_beside_the_paper_in_its_cell_and_nowhere_else():
    (table,) = make_tables("3", [made_up()])
    found = cells(table)
    assert [found[GPC, "CUB", c].ours for c in ("All", "Old", "New")] == ["54.9", "60.5", "52.1"]
    assert found[GPC, "CUB", "All"].paper == "52.0"
    assert sum(cell.ours != "" for cell in found.values()) == 3


@pytest.mark.parametrize(
    "special",
    [
        {"k_init": 5},
        {"overlap": 25},
        {"n_old": 20},
        {"labelled_only": "50/50"},
        {"prototypes": "ward"},
        {"joint": True},
        {"clustering": "mixture"},
        {"without": "D25"},
        {"hidden": True, "trial": 0},
        {"draw": 1},
    ],
)
def test_special_runs_stay_out_of_the_main_tables(special):
    assert cell([made_up(case=special)], "3", GPC, "CUB").ours == ""


def test_methods_without_pca_count_whatever_their_case_says_of_it():
    for pca in (True, False):
        record = made_up("uno", case={"k": "known", "pca": pca})
        assert cell([record], "3", ("(3)", "UNO+", "given", "no"), "CUB").ours == "54.9"


def test_the_mean_is_over_seeds_and_a_repeated_seed_counts_once_the_newest():
    records = [
        made_up(scores=(50, 0, 0), case={"seed": 0}),
        made_up(scores=(56, 0, 0), case={"seed": 1}, date="2024-05-02"),
        made_up(scores=(10, 0, 0), case={"seed": 1}, date="2024-05-01"),
    ]
    for order in itertools.permutations(records):
        assert cell(order, "3", GPC, "CUB").ours == "53.0 ± 4.2"
    (table,) = make_tables("3", records)
    assert f"Ours: 200 epochs, 2 seeds, {OLDER}." in table.notes


def test_runs_on_other_rows_are_not_averaged_with_each_other():
    records = [made_up(scores=(50, 0, 0), case={"seed": seed}) for seed in (0, 1)]
    records.append(made_up(scores=(80, 0, 0), case={"seed": 2}, split="other"))
    assert cell(records, "3", GPC, "CUB").ours == "50.0 ± 0.0"


def note_of(table):
    return next((note for note in table.notes if note.startswith("Only runs of one budget")), "")


def test_a_table_shows_the_budget_that_fills_most_cells_and_says_what_it_leaves_out():
    known = {"k": "known", "pca": False}
    records = [
        made_up(scores=(50, 0, 0), case={"epochs": 40}),
        made_up(scores=(70, 0, 0), case={"epochs": 800}),
        made_up("gcd", scores=(40, 0, 0), case={"epochs": 40, **known}),
        made_up("gcd", "cars", scores=(60, 0, 0), case={"epochs": 60, **known}),
    ]
    (table,) = make_tables("3", records)
    found = cells(table)
    assert found[GPC, "CUB", "All"].ours == "50.0"
    assert found[GCD, "CUB", "All"].ours == "40.0"
    assert found[GCD, "Stanford Cars", "All"].ours == ""  # no other budget fills a gap
    note = note_of(table)
    assert "40 epochs, the budget that fills most cells (6 cells)" in note
    assert "60 epochs (cars: 3 cells); 800 epochs (cub: 3 cells)" in note
    assert note_of(make_tables("3", records[:1])[0]) == ""  # there is nothing to choose


def test_a_table_shows_the_epochs_that_are_asked_for_and_no_others():
    records = [made_up(scores=(e / 2, 0, 0), case={"epochs": e}) for e in (0, 10, 100)]
    (table,) = make_tables("3", records[1:], epochs=10)
    assert cells(table)[GPC, "CUB", "All"].ours == "5.0"
    assert "10 epochs, as asked" in note_of(table)
    with pytest.raises(InputError, match=r"No run of this table has 50 epochs; .* of 10, 100"):
        make_tables("3", records, epochs=50)
    (table,) = make_tables("3", records[:1], epochs=50)  # finished features have no epochs
    assert cells(table)[GPC, "CUB", "All"].ours == "0.0"


def test_views_batches_and_tuning_are_part_of_the_budget_but_a_learning_rate_is_not():
    known = {"k": "known"}
    records = [
        made_up(scores=(50, 0, 0), case={"changes": {"learning_rate": 0.03}}),
        made_up(scores=(51, 0, 0), case=known),
        made_up(scores=(60, 0, 0), case={"changes": {"n_stored_views": 16}, **known}),
        made_up(scores=(70, 0, 0), case={"trial": 2, **known}),
        made_up("gpc-literal", case={"k": "own"}),  # nothing of it can be tuned
    ]
    (table,) = make_tables("3", records)
    assert cells(table)[GPC, "CUB", "All"].ours == "50.0"
    assert cells(table)[GPC_KNOWN, "CUB", "All"].ours == "51.0"
    left_out = "200 epochs, n_stored_views=16 (cub: 3 cells); 200 epochs, tuned (cub: 3 cells)"
    assert left_out in note_of(table)
    (table,) = make_tables("3", records[3:])
    assert cells(table)[GPC_KNOWN, "CUB", "All"].ours == "70.0"
    literal = ("", "GPC literal", "own", "yes")
    assert cells(table)[literal, "CUB", "All"].ours == "54.9"


def test_what_cannot_be_tuned_is_shown_on_a_data_set_without_tuned_runs():
    records = [
        made_up(case={"trial": 2}),
        made_up("gpc-literal", "cars", scores=(30, 0, 0), case={"k": "own"}),
    ]
    (table,) = make_tables("3", records)
    literal = ("", "GPC literal", "own", "yes")
    assert cells(table)[literal, "Stanford Cars", "All"].ours == "30.0"


def test_batches_and_the_size_of_images_follow_the_data_set_but_views_do_not():
    large, known = {"image_size": 128, "n_labelled_per_batch": 256}, {"k": "known"}
    records = [
        made_up(scores=(50, 0, 0)),
        made_up(scores=(51, 0, 0), case=known),
        made_up(dataset="cars", scores=(60, 0, 0), case={"changes": large}),
        made_up(dataset="cars", scores=(61, 0, 0), case={"changes": large, **known}),
        made_up("simgcd", "cars", scores=(99, 0, 0), case={**known, "pca": False}),
        made_up(dataset="aircraft", scores=(70, 0, 0), case={"changes": {"n_stored_views": 16}}),
    ]
    (table,) = make_tables("3", records)
    found = cells(table)
    assert found[GPC, "CUB", "All"].ours == "50.0"
    assert found[GPC, "Stanford Cars", "All"].ours == "60.0"
    assert found[GPC_KNOWN, "Stanford Cars", "All"].ours == "61.0"
    # another batch than most runs on the same set, and other views than on most sets
    assert not any(cell.ours.startswith(("99.0", "70.0")) for cell in found.values())
    note = note_of(table)
    both = "200 epochs or 200 epochs, image_size=128, n_labelled_per_batch=256, the budget that"
    assert both in note
    assert "200 epochs (cars: 3 cells); 200 epochs, n_stored_views=16 (aircraft: 3 cells)" in note


def test_the_difference_to_gpc_is_over_the_seeds_that_both_have_on_the_same_split():
    known = {"k": "known", "pca": False}
    simgcd = ("", "SimGCD", "given", "no")
    records = [
        made_up(scores=(50, 0, 0), case={"k": "known", "seed": 0}),
        made_up(scores=(53, 0, 0), case={"k": "known", "seed": 1}),
        made_up(scores=(99, 0, 0), case={"k": "count", "seed": 1}),  # another K
        *[
            made_up("simgcd", scores=(value, 0, 0), case={**known, "seed": seed})
            for seed, value in enumerate((48, 49, 80))
        ],
    ]
    assert cell(records, "3", simgcd, "CUB").ours == "59.0 ± 18.2 (−3.0 ± 1.4)"
    assert cell(records[:4], "3", simgcd, "CUB").ours == "48.0 (−2.0)"
    assert cell(records[1:4], "3", simgcd, "CUB").ours == "48.0"  # no seed in common
    assert cell(records, "3", GPC_KNOWN, "CUB").ours == "51.5 ± 2.1"
    elsewhere = [replace(record, split="other") for record in records[3:]]
    assert cell(records[:3] + elsewhere, "3", simgcd, "CUB").ours == "59.0 ± 18.2"
    again = [replace(record, files="cut again") for record in records[3:]]
    assert cell(records[:3] + again, "3", simgcd, "CUB").ours == "59.0 ± 18.2 (−3.0 ± 1.4‡)"
    brent = made_up("simgcd", scores=(90, 0, 0), case={"k": "brent", "pca": False, "seed": 1})
    titles = ("", "SimGCD", "Brent", "no")
    assert cell([*records, brent], "3", titles, "CUB").ours == "90.0 (−9.0)"


def test_runs_with_other_settings_are_not_averaged_even_if_nothing_is_listed_as_changed():
    records = [
        made_up(scores=(value, 0, 0), case={"seed": seed}, settings={"momentum": momentum})
        for seed, value, momentum in ((0, 50, 0.9), (1, 60, 0.9), (2, 90, 0.5))
    ]
    assert cell(records, "3", GPC, "CUB").ours == "55.0 ± 7.1"


def test_long_tails_have_a_table_without_figures_of_the_paper():
    record = made_up(dataset="cub-lt", scores=(40, 50, 30))
    (table,) = make_tables("lt", [record])
    assert [line.titles for line in table.rows] == [("GPC", "count", "yes")]
    assert cells(table)[("GPC", "count", "yes"), "cub-lt", "All"].ours == "40.0"
    (empty,) = make_tables("lt", [])
    assert empty.rows == ()


def test_another_draw_of_labels_has_its_own_table():
    records = [made_up(), made_up(scores=(40, 0, 0), case={"draw": 1})]
    assert cell(records, "3", GPC, "CUB").ours == "54.9"
    (table,) = make_tables("3", records, draw=1)
    assert cells(table)[GPC, "CUB", "All"].ours == "40.0"


def test_how_cells_were_run_is_said_in_letters_where_it_differs():
    records = [
        made_up(case={"epochs": 40}),
        made_up(case={"epochs": 40, "k": "known"}, settings={"seed": 0}, commit="c0ffee"),
        made_up("kmeans", "cars", case={"pca": False, "k": "known", "epochs": 0}),
        made_up(dataset="aircraft", n_unlabelled=334, case={"epochs": 40}),
    ]
    (table,) = make_tables("3", records)
    found = cells(table)
    letters = [
        found[titles, group, "All"].note
        for titles, group in (
            (("(1)", "k-means", "given", "no"), "Stanford Cars"),
            (GPC_KNOWN, "CUB"),
            (GPC, "CUB"),
            (GPC, "FGVC-Aircraft"),
        )
    ]
    assert letters == ["a", "b", "c", "d"]
    assert f"a: no training, 1 seed, {OLDER}." in table.notes
    assert "b: 40 epochs, 1 seed, commit c0ffee." in table.notes
    assert f"d: 40 epochs, 1 seed, 2,000 images instead of 6,667, {OLDER}." in table.notes
    assert found[GPC, "CUB", "Old"].note == ""  # the letter at All does for the three


def test_changed_settings_are_told():
    record = made_up(case={"changes": {"learning_rate": 0.03}})
    (table,) = make_tables("3", [record])
    assert cells(table)[GPC, "CUB", "All"].ours == "54.9"
    assert f"Ours: 200 epochs, 1 seed, changed: learning_rate=0.03, {OLDER}." in table.notes


def test_changed_and_unchanged_runs_are_not_averaged():
    records = [made_up(), made_up(scores=(0, 0, 0), case={"seed": 1, "changes": {"a": 1}})]
    assert cell(records, "3", GPC, "CUB").ours in ("54.9", "0.0")


def test_nan_is_nothing():
    record = made_up(scores=(50.0, 50.0, math.nan))
    assert cell([record], "3", GPC, "CUB", "New").ours == ""
    assert cell([record], "3", GPC, "CUB", "Old").ours == "50.0"


# Backbones


def test_every_backbone_has_a_table_of_its_own_the_papers_first():
    small = {"model": "a_small_net", "weights": "offline"}
    records = [
        made_up(scores=(40, 0, 0), case=small),
        made_up(scores=(50, 0, 0)),
        made_up(scores=(60, 0, 0), case={"weights": "c0ffee"}),
        made_up(scores=(70, 0, 0), case={"pretraining": "none", "weights": "random"}),
    ]
    tables = make_tables("3", records)
    shown = [cells(table)[GPC, "CUB", "All"].ours for table in tables]
    assert sorted(shown) == ["40.0", "50.0", "60.0", "70.0"]
    assert shown[-1] == "40.0"
    assert "a_small_net, weights offline, pretrained on ImageNet" in tables[-1].title
    warned = [any("with each other" in note for note in table.notes) for table in tables]
    assert dict(zip(shown, warned, strict=True)) == {
        "50.0": False,
        "60.0": False,
        "70.0": True,
        "40.0": True,
    }


def test_weights_pretrained_on_each_data_set_share_a_table():
    records = [
        made_up(dataset=name, case={"pretraining": "Target", "weights": f"file-of-{name}"})
        for name in ("cub", "cars")
    ]
    (table,) = make_tables("3", records)
    assert sum(cell.ours != "" for cell in cells(table).values()) == 6
    assert any("weights file-of-cars" in note for note in table.notes)


def test_two_weights_pretrained_on_one_data_set_are_not_averaged():
    records = [
        made_up(
            scores=(value, 0, 0),
            case={"pretraining": "Target", "weights": str(value), "seed": value},
        )
        for value in (40, 60)
    ]
    assert cell(records, "3", GPC, "CUB").ours in ("40.0", "60.0")


def test_tables_16_and_17_have_both_pretrainings_in_one_table():
    base = {"k": "known", "pca": False}
    records = [
        made_up("orca", scores=(30, 0, 0), case=base),
        made_up("orca", scores=(20, 0, 0), case={**base, "pretraining": "Target", "weights": "f"}),
    ]
    (table,) = make_tables("17", records)
    found = cells(table)
    imagenet = found[("ORCA", "ImageNet", "yes", "no"), "CUB", "All"]
    target = found[("ORCA", "Target", "yes", "no"), "CUB", "All"]
    assert (imagenet.paper, imagenet.ours) == ("45.2", "30.0")
    assert (target.paper, target.ours) == ("42.9", "20.0")
    assert imagenet.note != target.note


# Tables of their own kind


def test_table_2_shows_what_the_records_say_of_their_splits():
    records = [made_up(case={"model": "a"}), made_up(case={"model": "b"}, n_labelled=400)]
    (table,) = make_tables("2", records)
    found = cells(table)
    assert found[("CUB",), "Classes", "labelled"].ours == "100"
    assert found[("CUB",), "Images", "|D^l|"].ours == "400; 1,498"
    assert found[("CIFAR-10",), "Images", "|D^u|"].paper == "37,500"
    assert found[("ImageNet-100",), "Images", "|D^l|"].paper == "31.9k"


def test_table_5_by_first_guess():
    records = [
        made_up(case={"k_init": 20}, n_novel=91),
        made_up(case={"k_init": 20, "seed": 1}, n_novel=92),
        made_up(n_novel=102),
        made_up("gcd", case={"pca": False, "k": "brent"}, n_novel=140),
        made_up("gcd", case={"pca": False, "k": "known"}, n_novel=100),
    ]
    (table,) = make_tables("5", records)
    found = cells(table)
    titles = ("CUB", "100", "100")
    assert found[titles, "GPC, K^n_init =", "20"].ours == "91.5 ± 0.7"
    assert found[titles, "GPC, K^n_init =", "20"].paper == "88"
    assert found[titles, "GPC, K^n_init =", "none given"].ours == "102"
    assert found[titles, "", "Vaze et al."].ours == "140"
    assert found[titles, "GPC, K^n_init =", "30"].ours == ""


def test_table_6_takes_one_and_a_half_times_the_epochs_of_gpc():
    base = {"k": "known", "pca": False}
    records = [
        made_up(case={"k": "known", "epochs": 25}, seconds=1234.4),
        *[
            made_up("gcd", scores=(e, 0, 0), case={**base, "epochs": e}, seconds=e)
            for e in (25, 38, 50)
        ],
    ]
    found = cells(make_tables("6", records)[0])
    assert found[("Vaze et al. (GCD)",), "CUB", "All"].ours == "25.0"
    longer = ("Vaze et al. (GCD), epochs × 1.5",)
    assert found[longer, "CUB", "All"].ours == "38.0"
    assert found[longer, "CUB", "seconds"].ours == "38"
    assert found[("GPC",), "CUB", "seconds"].ours == "1,234"
    assert found[longer, "ImageNet-100", "All"].ours == ""


def test_tables_7a_and_7b():
    records = [
        made_up(case={"prototypes": "ward", "k": "brent"}, scores=(33, 0, 0)),
        made_up("rankstats", case={"joint": True, "pca": False, "k": "own"}, scores=(22, 0, 0)),
        made_up("rankstats", case={"pca": False, "k": "brent"}, scores=(11, 0, 0)),
        made_up(scores=(44, 0, 0)),
    ]
    a, b = (cells(table) for table in make_tables("7", records))
    assert a[("Ward (Murtagh et al.)", "no"), "All", "CUB"].ours == "33.0"
    assert a[("Ward (Murtagh et al.)", "yes"), "All", "CUB"].ours == ""
    assert a[("mixture (GPC)", "no"), "All", "CUB"].ours == "44.0"
    assert b[("RankStats+ with our mixture",), "All", "CUB"].ours == "22.0"
    assert b[("GPC",), "All", "CUB"].ours == "44.0"


def test_table_8_counts_on_finished_features():
    known = {"k": "known", "pca": False}
    records = [
        made_up("gcd", case={"pca": False, "k": "brent"}, n_novel=140),
        made_up("gcd", case=known, n_novel=100, n_novel_of_mixture=109),
        made_up("dualrank", case=known, n_novel=100, n_novel_of_mixture=90),
        made_up("dualrank", case={**known, "epochs": 150}, date="2024-06-01"),
        made_up(n_novel=102),
    ]
    (table,) = make_tables("8", records)
    found = {titles[0]: cell.ours for (titles, _, c), cell in cells(table).items() if c == "CUB"}
    assert found == {
        "Truth": "100",
        "Vaze et al. (GCD)": "140",
        "Our mixture on features of RankStats+": "",
        "Our mixture on features of DualRank": "90",
        "Our mixture on features of Vaze et al. (GCD)": "109",
        "GPC": "102",
    }


def test_what_a_table_does_not_show_makes_no_table():
    (table,) = make_tables("8", [made_up("simgcd", case={"model": "another"})])
    assert any("None of our runs" in note for note in table.notes)


def test_tables_9_and_10():
    records = [
        made_up(case={"overlap": 50}),
        made_up("gcd", case={"n_old": 40, "pca": False, "k": "brent"}, n_novel=99),
    ]
    assert cell(records, "9", ("GPC", "no"), "50 classes shared").ours == "54.9"
    assert cell(records, "9", ("GPC", "no"), "25 classes shared").ours == ""
    assert cell(records, "10", ("Vaze et al. (GCD)",), "Old/New", "40/160").ours == "99"


def test_table_11_is_of_labelled_data_alone():
    records = [
        made_up(case={"labelled_only": "50/50", "k_init": 25}, n_novel=48),
        made_up(case={"k_init": 25}, n_novel=1),
        made_up(case={"labelled_only": "90/10", "k_init": 25}, n_novel=2),
    ]
    titles = ("CUB", "50", "50")
    assert cell(records, "11", titles, "GPC, K^n_init =", "25").ours == "48"
    rows = [line.titles[1:] for line in make_tables("11", [])[0].rows]
    assert rows == [("3", "2"), ("60", "20"), ("25", "25"), ("50", "50"), ("49", "49")]


def test_table_12_follows_the_longest_run():
    long = made_up(case={"epochs": 450}, n_novel_by_epoch=list(range(1, 451)))
    short = made_up(case={"epochs": 200}, n_novel_by_epoch=[7] * 200)
    (table,) = make_tables("12", [long, short])
    found = {column: cell.ours for (_, _, column), cell in cells(table).items()}
    assert [found[c] for c in ("200", "400", "600", "last")] == ["200", "400", "", "450"]


def test_error_bars_are_sample_deviations():
    records = [
        made_up(scores=(value, 60, 50), case={"seed": seed}, n_novel=100 + value)
        for seed, value in enumerate((50, 52, 54))
    ]
    assert cell(records, "14", ("(7)", "GPC", "count", "yes"), "CUB").ours == "52.0 ± 2.0"
    assert cell(records[:1], "14", ("(7)", "GPC", "count", "yes"), "CUB").ours == "50.0"
    assert cell(records, "15", ("GPC",), "K^n", "CUB").ours == "152.0 ± 2.0"
    assert cell(records, "15", ("Truth",), "K^n", "CUB").ours == "100"
    assert f"Ours: 200 epochs, 3 seeds, {OLDER}." in make_tables("14", records)[0].notes


def test_records_are_left_as_they_are():
    record = made_up()
    copy = replace(record)
    make_tables("3", (record,))
    assert record == copy
