"""Every setting of the deep loop, with the paper's values where it gives them.

Settings are given flat, by name, as on the command line: ``Settings(model="resnet18", epochs=3)``.
They are read by group, ``settings.network.model``, so that a function can take the group, or the
single value, that it uses. This module does not need torch, so the command line lists its options
quickly.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import Field, asdict, dataclass, fields
from typing import Any, Literal, NamedTuple, get_type_hints

from newfound.deep.setting_groups import (
    EStepSettings,
    Group,
    LossSettings,
    NetworkSettings,
    OptimiserSettings,
    RunSettings,
    ViewSettings,
)
from newfound.errors import InputError

__all__ = [
    "EStepSettings",
    "LossSettings",
    "NetworkSettings",
    "OptimiserSettings",
    "Option",
    "RunSettings",
    "Settings",
    "ViewSettings",
]


class Option(NamedTuple):
    """One setting, as a command line shows it."""

    name: str
    hint: Any
    default: Any
    help: str


#: The paper's values, where the defaults follow later work.
_PAPER: dict[str, Any] = {
    "projection_head": False,
    "supervised_weight": 0.0,
    "contrastive_temperature": 1.0,
    "prototype_temperature": 1.0,
    "target_temperature": 0.0,
    "sizes": "none",
    "weight_average": 0.0,
    "pca": "batch",
    "count_term": "factorial",
    "acceptance": "literal",
    "whiten": False,
    "known_rows": "labelled",
    "moves_every": 1,
    "moves_after_epoch": True,
    "selection": "validation",
}

#: Settings that only spread the work over devices and memory, and do not change a result.
HARDWARE = frozenset({"device", "devices", "num_nodes", "compile", "token_cache"})

#: SimCLR with a ResNet-18 on small images.
_PRETRAINING: dict[str, Any] = {
    "model": "resnet18",
    "weights": "random",
    "image_size": 32,
    "crop_min": 0.45,
    "crop_max": 1.0,
    "color_jitter": 0.5,
    "n_unlabelled_per_batch": 512,
    "learning_rate": 0.4,
    "weight_decay": 5e-4,
    "contrastive_temperature": 0.2,
    "supervised_weight": 0.0,
    "selection": "last",
    "rehearse": False,
}


@dataclass(frozen=True, init=False, repr=False)
class Settings:
    """How to train.

    Parameters
    ----------
    **values
        Settings by their own names, without the group; those that are not given have their
        default. `Settings.options` lists all of them.

    Attributes
    ----------
    network : NetworkSettings
        Network, weights, image size.
    views : ViewSettings
        Random views of the images.
    optimiser : OptimiserSettings
        Epochs, batches, learning rate.
    losses : LossSettings
        Weights and temperatures.
    estep : EStepSettings
        K, splits and merges, principal directions.
    run : RunSettings
        Seed, selection, devices, memory.

    Examples
    --------
    >>> Settings(epochs=3).optimiser.epochs, Settings.paper().estep.acceptance
    (3, 'literal')
    """

    # The order of the groups and of their fields is the order of `as_dict`.
    network: NetworkSettings
    views: ViewSettings
    optimiser: OptimiserSettings
    losses: LossSettings
    estep: EStepSettings
    run: RunSettings

    def __init__(self, **values: Any) -> None:
        for group, kind in _groups():
            own = {item.name: values.pop(item.name) for item in fields(kind) if item.name in values}
            object.__setattr__(self, group, kind(**own))  # frozen
        if values:
            raise TypeError(
                f"Settings.__init__() got an unexpected keyword argument {next(iter(values))!r}"
            )

    def __repr__(self) -> str:
        values = ", ".join(f"{name}={value!r}" for name, value in self.as_dict().items())
        return f"Settings({values})"

    @classmethod
    def paper(cls, **changes: Any) -> Settings:
        """The settings exactly as in the paper, with the given changes."""
        return cls(**{**_PAPER, **changes})

    def to_the_letter(self) -> Settings:
        """These settings, with the paper's values wherever the defaults follow later work."""
        return self.with_changes(**_PAPER)

    @property
    def known_rows(self) -> Literal["all", "labelled"]:
        """The setting `known_rows`, or its default.

        Components of random weights mean nothing at first, and labels are all there is to hold on
        to.
        """
        if self.estep.known_rows is not None:
            return self.estep.known_rows
        return "labelled" if self.network.weights == "random" else "all"

    @classmethod
    def pretraining(cls, **changes: Any) -> Settings:
        """Self-supervised pretraining from scratch on small images: SimCLR with a ResNet-18."""
        return cls(**{**_PRETRAINING, **changes})

    def with_changes(self, **changes: Any) -> Settings:
        """These settings with some of them changed.

        Parameters
        ----------
        **changes
            New values by their own names, without the group.

        Raises
        ------
        InputError
            If there is no setting of that name, or it cannot have that value.
        """
        values = self.as_dict()
        unknown = sorted(set(changes) - set(values))
        if unknown:
            raise InputError(
                f"There is no setting {', '.join(unknown)}; there are {', '.join(sorted(values))}."
            )
        return Settings(**{**values, **changes})

    def as_dict(self) -> dict[str, Any]:
        """All settings as plain values by their own names, for JSON."""
        flat: dict[str, Any] = {}
        for group, _ in _groups():
            flat.update(asdict(getattr(self, group)))
        return flat

    @classmethod
    def options(cls) -> list[Option]:
        """Name, type, default and line of help of every setting, in the order of `as_dict`."""
        return [
            Option(item.name, hint, item.default, item.metadata["help"])
            for item, hint in _all_fields()
        ]


def _groups() -> list[tuple[str, type[Group]]]:
    """Name and class of each group."""
    return list(get_type_hints(Settings).items())


def _all_fields() -> Iterator[tuple[Field[Any], Any]]:
    """Each field of each group, with its type."""
    for _, kind in _groups():
        hints = get_type_hints(kind)
        yield from ((item, hints[item.name]) for item in fields(kind))
