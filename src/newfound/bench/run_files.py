"""Names of the files that runs leave in the work folder.

A name is a digest of everything that its content depends on. So a file is found again only by a
run that would compute the same content.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

from newfound.bench.case import Case
from newfound.bench.methods import find_method
from newfound.bench.splits import Split
from newfound.deep.network.identity import weights_id
from newfound.deep.settings import Settings


def run_folder(case: Case, work: Path, n_components: int | None = None) -> Path:
    """Folder of the training of a case. Cases that differ only in later steps share it.

    Parameters
    ----------
    case : Case
        What is run.
    work : Path
        Folder of all runs.
    n_components : int, optional
        K, if the method is given it. Where it comes from does not matter to the training.
    """
    if find_method(case.method).learns_without_k:
        # K, PCA, mixture and k-means come after such a training, so they share its checkpoints
        changes = {name: value for name, value in case.changes.items() if name != "n_starts"}
        case, n_components = replace(case, pca=False, joint=False, changes=changes), None
    method = find_method(case.method).trained_as or case.method
    values = {**case.as_dict(), "method": method, "k": n_components}
    # how values were chosen does not matter to the training either
    values.pop("trial")
    return work / f"{method}-{_digest(values)}"


def outcome_file(case: Case, work: Path) -> Path:
    """File with the finished features and the cluster of each row of a case, for figures.

    Parameters
    ----------
    case : Case
        What was run.
    work : Path
        Folder of all runs.
    """
    return work / "outcomes" / f"{case.method}-{case.dataset}-{_digest(case.as_dict())}.npz"


def start_file(dataset: str, split: Split, settings: Settings, work: Path) -> Path:
    """File with the features before training.

    Parameters
    ----------
    dataset : str
        Name of the data set in records.
    split : Split
        Which rows take part.
    settings : Settings
        Backbone, weights (a file or its checksum), image size and seed.
    work : Path
        Folder of all runs.
    """
    inputs = {
        "model": settings.network.model,
        "weights": weights_id(settings.network.weights),
        "size": settings.network.image_size,
        "crop": settings.views.crop_max,
        "seed": settings.run.seed,
        "split": split.checksum,
    }
    return work / f"start-{dataset}-{_digest(inputs)}.npy"


def _digest(values: dict[str, Any]) -> str:
    text = json.dumps(values, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:12]
