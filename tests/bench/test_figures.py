"""Figures: what is drawn against slow references, the files, and what is said when runs lack.

Results and outcomes are written by hand; nothing is trained.
"""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from sklearn.decomposition import PCA
from typer.testing import CliRunner

from newfound.array_files import write_array
from newfound.bench.case import Case
from newfound.bench.commands import app
from newfound.bench.datasets import load_dataset
from newfound.bench.figures import FIGURES, draw_figure
from newfound.bench.figures.canvas import COLOURS, new_figure, save_figure
from newfound.bench.figures.directions import (
    K_MEANS,
    MIXTURE,
    accuracy_over_directions,
    direction_sizes,
    draw_directions,
)
from newfound.bench.figures.epochs import counts_by_epoch, draw_counts
from newfound.bench.figures.figure_data import FigureData
from newfound.bench.figures.maps import colour_groups, draw_maps, map_rows
from newfound.bench.figures.pictures import _of_gpc, draw_prototypes, nearest_pictures
from newfound.bench.figures.runs import Runs, describe
from newfound.bench.figures.variance import draw_variance, explained_variance
from newfound.bench.record import Record
from newfound.bench.results import Results
from newfound.bench.run_files import outcome_file, start_file
from newfound.bench.splits import Split, make_split
from newfound.deep.network.identity import weights_id
from newfound.errors import InputError, MissingExtraError
from newfound.files import whole_file
from newfound.metrics import discovery_scores
from newfound.mixture.kmeans import SemiSupervisedKMeans
from newfound.mixture.projection import Projection, unit_rows

torch.set_num_threads(1)

PNG = b"\x89PNG"


@pytest.fixture(scope="module")
def digits():
    dataset = load_dataset("digits", Path("nowhere"))
    return dataset, make_split(dataset)


def record_of(split, method="gpc", dataset="digits", *, date="2024-05-01", seed=0, **values):
    fields = {"model": "test_resnet", "weights": "random", "pretraining": "none", "epochs": 3}
    fields["pca"] = method.startswith("gpc")
    if method == "kmeans":
        fields["epochs"] = 0
    fields |= {"seed": seed, **values.pop("case", {})}
    defaults = {
        "split": split.checksum,
        "n_labelled": split.n_labelled,
        "n_unlabelled": split.n_unlabelled,
        "n_known": split.n_known,
        "n_novel_true": split.n_novel,
        "n_components": 10,
        "n_novel": 5,
        "k_source": "mixture",
        "checkpoint": "last epoch",
        "all": 71.6,
        "old": 92.7,
        "new": 61.0,
        "nmi": 0.6,
        "ari": 0.5,
        "n_novel_of_mixture": None,
        "n_novel_by_epoch": [2, 4, 5] if method.startswith("gpc") else [],
        "seconds": 8.0,
        "seconds_per_epoch": 1.0,
        "e_step_share": 0.2,
        "machine": "none",
        "versions": {},
        "date": date,
    }
    return Record(case=Case(method, dataset, **fields), **{**defaults, **values})


def features_of(split, noise, *, d=12, seed=0):
    """Rows around their class's place."""
    rng = np.random.default_rng(seed)
    places = rng.normal(size=(int(split.truth.max()) + 1, d))
    return (places[split.truth] + noise * rng.normal(size=(len(split.truth), d))).astype(np.float32)


def write_run(runs, record, features, labels):
    Results(runs.results / "bench.jsonl").add(record)
    with whole_file(outcome_file(record.case, runs.work)) as file:
        np.savez(file, features=features.astype(np.float16), labels=labels)
    if record.case.method == "kmeans":  # which keeps what it clusters
        settings = replace(runs, weights=None).settings("digits", record.case)
        split = make_split(load_dataset("digits", Path("nowhere")))
        write_array(start_file("digits", split, settings, runs.work), features)


@pytest.fixture
def runs(tmp_path, digits):
    """Runs of four methods on digits, as they would lie there."""
    split = digits[1]
    runs = Runs(tmp_path / "data", tmp_path / "work", tmp_path / "results")
    for method, noise in (("kmeans", 2.0), ("gcd", 1.0), ("gpc", 0.5), ("gpc-literal", 1.0)):
        write_run(runs, record_of(split, method), features_of(split, noise), split.truth)
    return runs


def without(runs, **changes):
    """The same places, read anew."""
    return replace(runs, **changes)


# Which runs


def test_newest_run_whose_outcome_is_there(runs, digits):
    split = digits[1]
    newer = record_of(split, seed=1, date="2024-06-01")
    newest = record_of(split, seed=2, date="2024-07-01")
    write_run(runs, newer, features_of(split, 1.0), split.truth)
    Results(runs.results / "bench.jsonl").add(newest)
    data = FigureData("digits", runs)
    assert runs.newest("gpc", "digits").case == newest.case
    assert data.newest("gpc").case == newer.case


def test_runs_of_ablations_and_other_splits_are_left_out(runs, digits):
    split = digits[1]
    others = [{"k_init": 3}, {"overlap": 2}, {"prototypes": "ward"}, {"pca": False}]
    for number, case in enumerate(others):
        record = record_of(split, date=f"2025-0{number + 1}-01", case=case)
        write_run(runs, record, features_of(split, 1.0), split.truth)
    other = record_of(split, date="2025-09-01", case={"epochs": 9})
    other = replace(other, split="0" * 12)
    write_run(runs, other, features_of(split, 1.0), split.truth)
    assert FigureData("digits", runs).newest("gpc").date == "2024-05-01"


def test_compared_runs_share_the_backbone_then_epochs_seed_and_knowledge_of_k(runs, digits):
    split = digits[1]
    mine = record_of(split, "gcd").case
    others = [
        {"model": "resnet18"},
        {"weights": "hub"},
        {"epochs": 9},
        {"changes": {"n_stored_views": 8}},
        {"seed": 1},
        {"k": "known"},
    ]
    for case in others:
        record = record_of(split, "gcd", date="2025-01-01", case=case)
        write_run(runs, record, features_of(split, 1.0), split.truth)
    data = FigureData("digits", runs)
    gpc = data.newest("gpc")
    assert data.newest("gcd", like=gpc.case).case == mine
    alike = data.newest("gcd", like=replace(gpc.case, epochs=9))
    assert alike.case.epochs == 9
    only = without(runs, model="resnet18")
    assert FigureData("digits", only).newest("gcd").case.model == "resnet18"


def test_missing_run_is_told_with_its_command(runs, digits):
    split = digits[1]
    runs = without(runs, results=runs.results / "other")
    with pytest.raises(InputError, match="newfound bench run gpc digits --root") as error:
        draw_maps("digits", runs)
    assert f"--work {runs.work}" in str(error.value)
    assert f"--results {runs.results}" in str(error.value)
    write_run(runs, record_of(split, seed=3), features_of(split, 1.0), split.truth)
    with pytest.raises(InputError, match=r"newfound bench run gcd digits --epochs 3 --seed 3 "):
        draw_maps("digits", without(runs))
    with pytest.raises(InputError, match=r"newfound bench run kmeans digits --seed 3 --root"):
        draw_prototypes("digits", without(runs))
    with pytest.raises(InputError, match="run gpc-literal digits --epochs 3"):
        draw_counts("digits", without(runs))


def test_defaults_are_not_in_the_command():
    assert Runs().command("gpc", "cub") == "newfound bench run gpc cub"
    other = Runs(model="resnet18", weights="random").command("gcd", "cifar10")
    assert other == "newfound bench run gcd cifar10 --model resnet18 --weights random"
    like = Case("gpc", "cub", model="resnet18", weights="0123456789ab", epochs=50)
    words = "newfound bench run gcd cub --model resnet18 --weights FILE --epochs 50"
    assert Runs().command("gcd", "cub", like) == words
    changed = Case("gpc", "cub", changes={"image_size": 96, "flip": False, "n_stored_views": 8})
    words = "newfound bench run gcd cub --image-size 96 --no-flip --n-stored-views 8"
    assert Runs().command("gcd", "cub", changed) == words
    assert Runs().command("kmeans", "cub", changed) == (
        "newfound bench run kmeans cub --image-size 96"
    )
    tuned = Case("simgcd", "cub", changes={"entropy_weight": 4.0})
    assert Runs().command("simgcd", "cub", tuned) == "newfound bench run simgcd cub --knob 4.0"
    assert describe(changed).endswith("seed 0, flip False, image_size 96, n_stored_views 8")


def test_lost_outcome_is_told_for_the_same_command_would_skip_the_run(runs, digits):
    outcome_file(record_of(digits[1]).case, runs.work).unlink()
    with pytest.raises(InputError, match=r"in the results, but .* --work") as error:
        draw_maps("digits", runs)
    assert "newfound bench run gpc digits --epochs 3" in str(error.value)
    assert f"--results {runs.results / 'again'}" in str(error.value)


def test_outcome_of_other_rows_is_refused(runs, digits):
    split = digits[1]
    write_run(runs, record_of(split, date="2024-06-01"), np.ones((5, 3)), np.arange(5))
    data = FigureData("digits", runs)
    with pytest.raises(InputError, match=r"has 5 rows, but the split of digits has 1797"):
        data.outcome(data.newest("gpc"))


# Features before training


def test_start_is_what_runs_kept_else_computed_and_kept(runs, digits):
    split = digits[1]
    data = FigureData("digits", runs)
    settings = runs.settings("digits", data.newest("gpc").case)
    np.testing.assert_array_equal(data.start(settings), features_of(split, 2.0))
    before = set(runs.work.glob("start-digits-*.npy"))
    other = settings.with_changes(seed=5)  # random weights of another seed
    first = data.start(other)
    assert first.shape == (1797, 96)
    (kept,) = set(runs.work.glob("start-digits-*.npy")) - before
    np.testing.assert_array_equal(np.load(kept, allow_pickle=False), first)
    write_array(kept, first + 1)
    np.testing.assert_array_equal(data.start(other), first + 1)


def test_start_without_the_file_of_weights_names_the_run(runs, digits, tmp_path):
    split = digits[1]
    file = tmp_path / "weights.safetensors"
    file.write_bytes(b"weights")
    checksum = weights_id(str(file))
    record = record_of(split, date="2025-01-01", case={"weights": checksum})
    write_run(runs, record, features_of(split, 1.0), split.truth)
    data = FigureData("digits", without(runs))
    settings = data.runs.settings("digits", record.case)
    with pytest.raises(
        InputError, match=f"{checksum}.*--weights FILE.*\n.*bench run kmeans digits"
    ):
        data.start(settings)
    k_means = record_of(split, "kmeans", case={"weights": checksum})
    write_run(runs, k_means, features_of(split, 3.0), split.truth)
    data = FigureData("digits", without(runs))
    assert data.start(settings).shape == (1797, 12)
    named = without(runs, weights=str(file))
    assert FigureData("digits", named).newest("gpc").case == record.case
    assert named.settings("digits", record.case).network.weights == str(file)


def test_settings_are_those_of_the_case(runs, digits):
    changes = {"n_directions": 7, "n_starts": 3}
    case = record_of(digits[1], "gpc", case={"changes": changes, "seed": 4, "pca": False}).case
    settings = runs.settings("digits", case)
    assert (settings.estep.n_directions, settings.run.seed, settings.estep.pca) == (7, 4, "off")
    assert runs.settings("cub").network.model == "vit_base_patch16_224.dino"
    fresh = without(runs, model="resnet18", weights="random")
    assert fresh.settings("cub").network.weights == "random"


# Maps


def test_a_class_has_its_points_one_colour_and_the_marker_of_its_kind():
    rng = np.random.default_rng(0)
    truth = rng.permutation(np.repeat(np.arange(30), 4))
    split = Split(np.arange(120), np.full(120, -1), truth, tuple(range(0, 30, 2)))
    rows = map_rows(split, 100)
    assert len(rows) == 100
    assert (np.diff(rows) > 0).all()
    names = tuple(f"class {number}" for number in range(30))
    groups, others = colour_groups(split, rows, names)
    assert [group.is_known for group in groups] == [True] * 10 + [False] * 10
    assert [group.colour for group in groups] == [*COLOURS, *COLOURS]
    assert len({group.name for group in groups}) == 20
    for group in groups:
        number = names.index(group.name)
        assert group.is_known == (number % 2 == 0)
        assert group.rows.tolist() == [i for i, row in enumerate(rows) if truth[row] == number]
    coloured = [place for group in groups for place in group.rows.tolist()]
    assert sorted(coloured + others.tolist()) == list(range(100))
    again, _ = colour_groups(split, rows, names)
    assert [group.name for group in again] == [group.name for group in groups]
    elsewhere, _ = colour_groups(split, rows, names, seed=1)
    assert [group.name for group in elsewhere] != [group.name for group in groups]


def test_few_classes_all_have_a_colour(digits):
    split = digits[1]
    rows = map_rows(split)
    groups, others = colour_groups(split, rows, tuple("0123456789"))
    assert [group.name for group in groups] == list("0123456789")
    assert len(others) == 0
    assert len(rows) == 1797


def test_maps_are_of_the_three_features_in_order(runs, digits, monkeypatch):
    split, seen = digits[1], []

    def fake_map(V, *, n_jobs):
        seen.append(V)
        return type("Map", (), {"points": np.arange(2 * len(V)).reshape(-1, 2) % 4096})

    monkeypatch.setattr("newfound.bench.figures.maps.draw_map", fake_map)
    figure = draw_maps("digits", runs)
    for V, noise in zip(seen, (2.0, 1.0, 0.5), strict=True):
        expected = unit_rows(features_of(split, noise))
        np.testing.assert_allclose(V, expected, rtol=1e-3, atol=1e-4)  # outcomes are float16
    titles = [axes.get_title() for axes in figure.axes]
    assert titles == [
        "before training",
        "GCD: K = 10 found, All 71.6 %",
        "GPC: K = 10 found, All 71.6 %",
    ]
    words = figure.get_suptitle().replace("\n", " ")
    for part in ("test_resnet", "random weights", "3 epochs", "seed 0", "true K = 10"):
        assert part in words
    entries = [[text.get_text() for text in legend.get_texts()] for legend in figure.legends]
    assert entries == [list("01234"), list("56789")]


def test_map_needs_the_extra_and_images(runs, monkeypatch, tmp_path):
    file = tmp_path / "some.npz"
    np.savez(file, X=np.random.default_rng(0).normal(size=(8, 3)), y=np.arange(8) % 4)
    with pytest.raises(InputError, match="finished features"):
        draw_maps(str(file), runs)
    monkeypatch.setitem(__import__("sys").modules, "openTSNE", None)
    with pytest.raises(MissingExtraError, match=r"newfound\[report\]"):
        draw_maps("digits", runs)


# Pictures


def test_nearest_pictures_against_a_loop():
    rng = np.random.default_rng(0)
    V = rng.normal(size=(60, 3))
    labels = rng.integers(0, 7, 60)
    labels[labels == 4] = 5  # a prototype without rows
    truth = rng.integers(0, 4, 60)
    centres = rng.normal(size=(7, 3))
    centres[2] = np.nan
    gallery = nearest_pictures(V, centres, labels, truth, n_prototypes=3, n_pictures=6)
    assert len(gallery.clusters) == 3
    everyone = nearest_pictures(V, centres, labels, truth, n_prototypes=9, n_pictures=6)
    assert everyone.clusters.tolist() == [0, 1, 3, 5, 6]
    for line, cluster in enumerate(everyone.clusters):
        distances = [sum((row - centres[cluster]) ** 2) for row in V]
        nearest = sorted(range(60), key=lambda row, distances=distances: distances[row])[:6]
        assert everyone.rows[line].tolist() == nearest
        members = [truth[row] for row in range(60) if labels[row] == cluster]
        counts = [members.count(number) for number in range(4)]
        assert everyone.classes[line] == counts.index(max(counts))
        assert everyone.shares[line] == max(counts) / len(members)
        expected = [truth[row] == everyone.classes[line] for row in nearest]
        assert everyone.is_right[line].tolist() == expected
    again = nearest_pictures(V, centres, labels, truth, n_prototypes=3, n_pictures=6)
    np.testing.assert_array_equal(again.rows, gallery.rows)


def test_prototypes_of_gpc_are_labelled_means_of_known_and_means_of_novel(runs, digits):
    split = digits[1]
    data = FigureData("digits", runs)
    record = data.newest("gpc")
    V, centres, labels = _of_gpc(data, record)
    for cluster in range(10):
        rows = (split.y == cluster) if cluster < 5 else (labels == cluster)
        np.testing.assert_allclose(centres[cluster], V[rows].mean(axis=0), atol=1e-5)


def test_prototypes_are_drawn_with_frames(runs):
    figure = draw_prototypes("digits", runs)
    assert [axes.get_title() for axes in figure.axes] == [
        "k-means before training, K = 10 found",
        "GPC, K = 10 found",
    ]
    for axes in figure.axes:
        assert len(axes.images) == len(axes.patches) == 50
        assert len(axes.texts) == 5


# Curves


def test_explained_variance_against_scikit_learn():
    X = np.random.default_rng(0).normal(size=(50, 6)) * [5, 4, 3, 2, 1, 0.5]
    units = X / np.linalg.norm(X, axis=1, keepdims=True)
    expected = np.cumsum(PCA().fit(units).explained_variance_ratio_)
    np.testing.assert_allclose(explained_variance(X), expected)


def test_variance_has_a_line_for_each_data_set(runs, tmp_path):
    file = tmp_path / "some.npz"
    X = np.random.default_rng(0).normal(size=(20, 5))
    np.savez(file, X=X, y=np.arange(20) % 4)
    figure = draw_variance(["digits", str(file)], runs)
    axes = figure.axes[0]
    assert [text.get_text() for text in axes.get_legend().get_texts()] == [
        "scikit-learn's digits (d = 12)",
        "some (d = 5)",
    ]
    np.testing.assert_allclose(axes.lines[1].get_ydata(), 100 * explained_variance(X))
    assert "test_resnet, seed 0; as given" in figure.get_suptitle()


@pytest.mark.parametrize(
    ("shape", "sizes"),
    [
        ((1000, 768, 50), [8, 16, 32, 64, 128, 256, 512, 768]),
        ((6000, 1280, 200), [8, 16, 32, 64, 128, 256, 512]),
        ((1000, 64, 10), [8, 16, 32, 64]),
        ((11, 64, 10), [8, 10]),
        ((100, 8, 10), [8]),
        ((100, 5, 10), [5]),
    ],
)
def test_directions_from_8_to_as_many_as_fit_into_memory(shape, sizes):
    assert direction_sizes(*shape) == sizes


def test_accuracy_over_directions_is_that_of_the_two_clusterings(digits, runs):
    split = digits[1]
    X = features_of(split, 0.8)
    settings = runs.settings("digits", record_of(split).case)
    scores = accuracy_over_directions(X, split, settings, [4, 12])
    free = split.y == -1
    for place, q in enumerate((4, 12)):
        V = Projection(q).fit(X).transform(X)
        k_means = SemiSupervisedKMeans(10, n_init=3, random_state=0).fit(V, split.y)
        expected = discovery_scores(split.truth[free], k_means.labels_[free], range(5))
        assert scores[K_MEANS][place] == expected
        assert scores[MIXTURE][place].all > 0.5
    assert scores[MIXTURE][1].all > scores[MIXTURE][0].all


def test_directions_are_of_the_start_and_of_gpc(runs, monkeypatch, digits, tmp_path):
    seen = []

    def fake_scores(X, split, settings, sizes):
        seen.append(X)
        score = discovery_scores([0, 1], [0, 1], [0])
        return {MIXTURE: [score] * len(sizes), K_MEANS: [score] * len(sizes)}

    monkeypatch.setattr("newfound.bench.figures.directions.accuracy_over_directions", fake_scores)
    figure = draw_directions("digits", runs)
    for X, noise in zip(seen, (2.0, 0.5), strict=True):
        np.testing.assert_allclose(X, features_of(digits[1], noise), rtol=1e-3)
    assert "K = 10 given" in figure.get_suptitle()
    file = tmp_path / "some.npz"
    np.savez(file, X=np.random.default_rng(0).normal(size=(20, 5)), y=np.arange(20) % 4)
    assert len(draw_directions(str(file), runs).axes) == 1


def test_counts_are_those_of_all_seeds_of_the_same_case(digits):
    split = digits[1]
    run = record_of(split, seed=1, date="2024-02-01", n_novel_by_epoch=[1, 2, 3])
    records = [
        run,
        record_of(split, seed=0, n_novel_by_epoch=[3, 4, 5]),
        record_of(split, seed=0, date="2024-01-01", n_novel_by_epoch=[9, 9, 9]),
        record_of(split, case={"epochs": 7}, n_novel_by_epoch=[8] * 7),
        record_of(split, "gpc-literal"),
    ]
    counts = counts_by_epoch("GPC", run, records)
    assert counts.lines == [[3, 4, 5], [1, 2, 3]]
    assert counts.title == "GPC, 3 epochs, seeds 0, 1"


def test_counts_need_no_data_and_no_outcome_but_an_unknown_k(runs, digits):
    split = digits[1]
    known = record_of(split, date="2025-01-01", case={"k": "known"}, n_novel_by_epoch=[5] * 3)
    Results(runs.results / "bench.jsonl").add(known)
    figure = draw_counts("digits", without(runs, work=Path("nowhere")))
    truth, gpc, literal = figure.axes[0].lines
    assert set(truth.get_ydata()) == {5}
    assert gpc.get_xdata().tolist() == [1, 2, 3]
    assert gpc.get_ydata().tolist() == literal.get_ydata().tolist() == [2, 4, 5]
    assert describe(record_of(split).case) in figure.get_suptitle().replace("\n", " ")


# Files and the command


@pytest.mark.parametrize("ending", [".png", ".svg", ".pdf"])
def test_same_figure_same_bytes(runs, tmp_path, ending):
    first, second = tmp_path / f"a{ending}", tmp_path / "deeper" / f"b{ending.upper()}"
    for out in (first, second):
        draw_figure("k", ["digits"], runs, out)
    assert first.read_bytes() == second.read_bytes()
    assert len(first.read_bytes()) > 2000


def test_figures_that_cannot_be(runs, tmp_path):
    with pytest.raises(InputError, match="no figure 'pie'"):
        draw_figure("pie", ["digits"], runs, tmp_path / "a.png")
    with pytest.raises(InputError, match="takes one data set"):
        draw_figure("k", ["digits", "cub"], runs, tmp_path / "a.png")
    with pytest.raises(InputError, match=r"\.png, \.svg, \.pdf"):
        draw_figure("k", ["digits"], runs, tmp_path / "a.gif")
    assert not list(tmp_path.glob("a.*"))


def test_long_titles_are_broken(tmp_path):
    figure = new_figure(4, 3, "word " * 30)
    assert figure.get_suptitle().count("\n") >= 2
    save_figure(figure, tmp_path / "a.png")


@pytest.mark.parametrize("name", [name for name in FIGURES if name != "tsne"])
def test_command_writes_a_picture(runs, tmp_path, name):
    out = tmp_path / "figure.png"
    places = ["--root", str(runs.root), "--work", str(runs.work), "--results", str(runs.results)]
    done = CliRunner().invoke(app, ["figure", name, "digits", *places, "--out", str(out)])
    assert done.exit_code == 0, done.output
    assert out.read_bytes().startswith(PNG)
    assert out.stat().st_size > 10_000


def test_command_says_what_is_missing(tmp_path):
    out = tmp_path / "figure.png"
    arguments = ["figure", "k", "digits", "--results", str(tmp_path), "--out", str(out)]
    done = CliRunner().invoke(app, arguments)
    assert done.exit_code == 2
    assert "newfound bench run gpc digits" in done.output
    assert not out.exists()


def test_real_maps_of_few_rows_are_the_same_twice(runs, digits, tmp_path, monkeypatch):
    monkeypatch.setattr(map_rows, "__defaults__", (60,))
    pages = [tmp_path / "a.png", tmp_path / "b.png"]
    for page in pages:
        draw_figure("tsne", ["digits"], runs, page)
    assert pages[0].read_bytes() == pages[1].read_bytes()
    assert pages[0].read_bytes().startswith(PNG)
