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
        "tiny-imagenet, digits, or an .npz file of features; separated by commas."
    ),
]
TableNumber = Annotated[str, typer.Argument(help="Number of the table in the paper, such as 3.")]
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
KnownK = Annotated[
    str,
    typer.Option(
        help="Whether the method is told the true number of categories K: known (it is), unknown "
        "(it is not), or both (one run of each)."
    ),
]
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
