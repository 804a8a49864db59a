"""Where a timm network is divided into a frozen and a trained part.

timm has no common interface for this, so the last block or stage is found by its usual names.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from torch import Tensor, nn

#: Containers whose last element is the last block or stage; `layer4` and `s4` are stages.
_CONTAINERS = ("blocks", "stages", "layers")
_STAGES = ("layer4", "s4")
#: Children that are run by `forward_head`, not by `forward_features`.
_HEADS = frozenset(
    [
        *["global_pool", "attn_pool", "fc_norm", "pre_logits", "head_drop"],
        *["head", "head_dist", "fc", "classifier"],
    ]
)


class Cut(NamedTuple):
    """A network in parts.

    Attributes
    ----------
    before : list of callable
        The frozen part, in the order in which it runs.
    after : list of nn.Module
        The trained part up to the pooling, in the order in which it runs.
    head : list of nn.Module
        What is trained beside it: pooling and norms behind it.
    """

    before: list[Callable[[Tensor], Tensor]]
    after: list[nn.Module]
    head: list[nn.Module]


def find_cut(network: nn.Module) -> Cut | None:
    """Divide a network at its last block or stage.

    Parameters
    ----------
    network : nn.Module
        A timm network.

    Returns
    -------
    Cut or None
        None if no part has one of the usual names.
    """
    children = dict(network.named_children())
    names = list(children)
    place = next((name for name in (*_CONTAINERS, *_STAGES) if name in names), None)
    if place is None:
        return None
    earlier, later = names[: names.index(place)], names[names.index(place) + 1 :]
    stages = list(children[place].children()) if place in _CONTAINERS else [children[place]]
    n_tail = next((i for i, name in enumerate(later) if name in _HEADS), len(later))
    before: list[Any] = [*(children[name] for name in earlier), *stages[:-1]]
    # position embeddings are added by a method, which is not among the children
    if "patch_embed" in earlier and hasattr(network, "_pos_embed"):
        before.insert(earlier.index("patch_embed") + 1, network._pos_embed)
    return Cut(
        before=before,
        after=[*stages[-1:], *(children[name] for name in later[:n_tail])],
        head=[children[name] for name in later[n_tail:]],
    )
