"""The arguments and options of ``newfound bench``, each with its help text, in one place.

Options of the training are not here: `newfound.cli.options.with_settings` derives them from
`newfound.deep.settings.Settings`, as for ``newfound train``.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from newfound.bench.methods import NAMES

# --- arguments

MethodNames = Annotated[
    str, typer.Argument(help=f"One or more of {', '.join(NAMES)}, separated by commas; or all.")
]
DatasetNames = Annotated[
    str,
    typer.Argument(
        help="One or more of cifar10, cifar100, imagenet100, cub, cars, aircraft, herbarium, "
        "tiny-imagenet, digits, one of the long tails cifar100-lt, cub-lt, cars-lt, "
        "tiny-imagenet-lt, digits-lt, or an .npz file of features; separated by commas."
    ),
]
DatasetsShown = Annotated[
    str, typer.Argument(help="Data sets to show, separated by commas; or all.")
]
TableNumber = Annotated[
    str, typer.Argument(help="Number of the table in the paper, such as 3; lt: long tails.")
]
FigureName = Annotated[
    str, typer.Argument(help="tsne, prototypes, variance, directions or k (K^n over epochs).")
]
FigureDatasets = Annotated[
    str, typer.Argument(help="Data set. The figure variance takes several, separated by commas.")
]

# --- which runs

Seeds = Annotated[
    list[int] | None,
    typer.Option(
        help="Seed. Repeat the option for several seeds.", show_default="0", metavar="<int>"
    ),
]
KChoice = Annotated[
    str,
    typer.Option(
        help="Where the number of categories K comes from: known (the truth), brent (Brent's "
        "search), count (our count), unknown (what the method does by itself), both (known and "
        "unknown) or all (known, brent and count)."
    ),
]
Draw = Annotated[int, typer.Option(help="Seed of the draw of labels; 0 is the field's.", min=0)]
Clustering = Annotated[
    str,
    typer.Option(
        help="own, or mixture: cluster the finished features of a run in --work with our mixture."
    ),
]
Without = Annotated[
    str | None, typer.Option(help="Run GPC without one of its deviations: D25 to D28 or D30.")
]
KnobValue = Annotated[
    float | None,
    typer.Option("--knob", help="Value of the method's own hyper-parameter (docs/benchmark.md)."),
]
Tuned = Annotated[
    Path | None,
    typer.Option(
        help="Results of `bench tune`: run each method with the values of its best trial."
    ),
]
Trials = Annotated[int, typer.Option(help="Number of trials for each method.", min=1)]
PCA = Annotated[
    bool | None,
    typer.Option(
        help="Project features on 128 principal directions.", show_default="only gpc, gpc-literal"
    ),
]
KInit = Annotated[
    int | None, typer.Option(help="Number of novel categories that the mixture starts with.")
]
Overlap = Annotated[
    int | None, typer.Option(help="How many known classes occur in the unlabelled part.")
]
NOld = Annotated[int | None, typer.Option(help="Number of known classes.")]
LabelledOnly = Annotated[
    str | None,
    typer.Option(
        help="Use labelled images only: K^l known classes, and K^n classes whose labels are "
        "hidden. Format K^l/K^n, such as 50/50."
    ),
]
PrototypesBy = Annotated[
    str, typer.Option(help="What finds GPC's prototypes: mixture, dbscan, ward or kmeans.")
]
Joint = Annotated[
    bool, typer.Option("--joint", help="Train rankstats, dualrank or gcd with our mixture inside.")
]
Pretraining = Annotated[
    str | None,
    typer.Option(
        help="What the weights were trained on: ImageNet, Target or none. It is only recorded."
    ),
]
NStarts = Annotated[int, typer.Option(help="Number of starts of GCD's k-means.")]

# --- folders and files

CommitName = Annotated[
    str | None,
    typer.Option(
        help="Commit of the code, for the records, where there is no repository; with -dirty at "
        "its end if files were changed. The environment variable NEWFOUND_COMMIT does the same."
    ),
]
DataRoot = Annotated[Path, typer.Option(help="Folder of the data sets.")]
WorkFolder = Annotated[Path, typer.Option(help="Folder of checkpoints, features and clusters.")]
ResultsPlace = Annotated[
    Path, typer.Option(help="Results: a .jsonl file, or a folder with bench.jsonl.")
]
Incomplete = Annotated[
    bool, typer.Option("--incomplete", help="Accept a data set with missing images.")
]
Download = Annotated[
    bool,
    typer.Option("--download", help="Download cifar10, cifar100, cub or aircraft if missing."),
]
TableFile = Annotated[
    Path | None, typer.Option(help="File to write the table to, instead of the screen.")
]
FigureFile = Annotated[Path, typer.Option(help="File to write: .png, .svg or .pdf.")]

TableEpochs = Annotated[
    int | None,
    typer.Option(
        help="Show runs of this many epochs only.",
        show_default="the budget that fills most cells",
        min=1,
    ),
]

# --- looks of a table, runs of a figure

TableStyle = Annotated[str, typer.Option("--format", help="terminal, markdown, latex or html.")]
Backbone = Annotated[
    str | None,
    typer.Option(
        help="Backbone of the runs, by its name in timm.", show_default="that of the newest run"
    ),
]
Weights = Annotated[
    str | None, typer.Option(help="Weights of the backbone: hub, offline, random or a file.")
]
