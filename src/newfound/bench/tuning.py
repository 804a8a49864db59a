"""Equal tuning: the same number of trials for every method, judged by hidden known classes.

Half of the known classes lose their labels and play novel (`newfound.bench.splits.hide_known`).
The score of a trial is the accuracy over all unlabelled rows whose true class is known, visible or
hidden, by one match over these rows; rows of the really novel classes take part in the training,
unlabelled, but their true class is withheld and they are not scored. Every method gets the same K:
the number of known classes, and the K^n that Brent's search finds with all labels. So a trial
judges the representation and the clustering, and not the search for K.

The trials of a method change one thing at a time: nothing; the average of the weights, on or off;
the learning rate; the weight decay; and two other values of the method's own hyper-parameter.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from newfound.bench.datasets.feature_file import is_feature_file
from newfound.bench.datasets.long_tail import base_of
from newfound.bench.methods import find_method
from newfound.bench.protocol import bench_settings
from newfound.bench.record import Record
from newfound.deep.network.identity import weights_id
from newfound.deep.settings import Settings
from newfound.errors import InputError

#: Factors of the learning rate and of the weight decay in a trial, and the average of weights.
LEARNING_RATE, WEIGHT_DECAY, WEIGHT_AVERAGE = 0.3, 10.0, 0.99


class Trial(NamedTuple):
    """Number of a trial, and the values that it changes."""

    number: int
    values: dict[str, Any]


def trials_of(method: str, base: Settings) -> list[dict[str, Any]]:
    """The values that each trial of a method changes; none for a method without training.

    Parameters
    ----------
    method : str
        Id.
    base : Settings
        The method's settings in the benchmark, which the trials change.
    """
    cls, optimiser = find_method(method), base.optimiser
    if not cls.learns or cls.knob is None:
        return []
    return [
        {},
        {"weight_average": 0.0 if optimiser.weight_average else WEIGHT_AVERAGE},
        {"learning_rate": LEARNING_RATE * optimiser.learning_rate},
        {"weight_decay": WEIGHT_DECAY * optimiser.weight_decay},
        *({cls.knob.name: value} for value in cls.knob.others),
    ]


def trials_on(method: str, source: str, model: str | None) -> list[dict[str, Any]]:
    """The values that each trial of a method changes on a data set.

    Parameters
    ----------
    method, source : str
        Ids.
    model : str or None
        Name of the backbone; None for the data set's own.

    Raises
    ------
    InputError
        If the data set is a long tail, which takes the trials of the set that it is cut from.
    """
    base = base_of(source)
    if base != source:
        raise InputError(f"{source} takes the trials of {base}. Tune {base} instead.")
    return trials_of(method, bench_settings(source, model, method=method))


def best_trial(
    method: str, source: str, changes: dict[str, Any], records: list[Record]
) -> Trial | None:
    """The trial with the highest score on hidden known classes; of equal ones the first.

    A long tail takes the trials of the data set that it is cut from: nothing is chosen on it.

    Parameters
    ----------
    method, source : str
        Ids.
    changes : dict
        Settings that are given: the backbone must be that of the trials.
    records : list of Record
        Of ``bench tune``.

    Returns
    -------
    Trial or None
        None for a method that has nothing to tune.

    Raises
    ------
    InputError
        If there are no trials, some are missing, or they had other values than today's.
    """
    source = base_of(source)
    base = bench_settings(source, changes.get("model"), method=method)
    declared, model = trials_of(method, base), base.network.model
    weights = weights_id(changes.get("weights", base.network.weights))
    if not declared or is_feature_file(source):
        return None
    found = {
        record.case.trial: record
        for record in sorted(records, key=lambda record: record.date)
        if (record.case.method, record.case.dataset) == (method, source)
        and (record.case.model, record.case.weights) == (model, weights)
        and record.case.hidden
        and record.case.trial is not None
    }
    if not found or sorted(found) != list(range(len(found))):
        raise InputError(
            f"The tuning results have the trials {sorted(found)} of {method} on {source} with "
            f"{model}; expected 0, 1, 2 and so on. Run `newfound bench tune {method} {source}` "
            "with the same --model and --weights first."
        )
    if len({(record.case.epochs, record.files) for record in found.values()}) > 1:
        raise InputError(
            f"The trials of {method} on {source} differ in epochs or images. Tune again into a new "
            "file."
        )
    for number, record in found.items():
        wrong = [n for n, value in declared[number].items() if record.settings.get(n) != value]
        if wrong:
            raise InputError(
                f"Trial {number} of {method} on {source} was run with another value of "
                f"{wrong[0]} than today's trial has. Tune again into a new file."
            )
    best = max(found, key=lambda number: (found[number].all, -number))
    return Trial(best, declared[best])
