"""What sets a category apart, in words: a first idea for its name.

For texts these are their words; for other items those of file names and ids. They are ranked by
class-based tf-idf: how often a word occurs in a category, times log(1 + A / f), where f is how
often it occurs anywhere and A the mean number of words of a category. An item counts once for each
word. Values of further columns of a person's table, such as a site, may tell something as well.
"""

from __future__ import annotations

import re
from collections import Counter

import numpy as np

from newfound.mixture.rows import squared_distances
from newfound.result.result import Result

#: Words and values of one category, and known categories that are named beside a novel one.
N_WORDS = 4
N_VALUES = 3
N_NEAREST = 2
#: Words longer than this are no words.
_LONGEST = 30
#: A word of file names, or a value, tells something if it is in this share of the category, and
#: rarer elsewhere.
_LEAST_SHARE, _LEAST_LIFT = 0.5, 2.0
_WORD = re.compile(r"[^\W\d_]{2,}")
#: English words, and halves of contractions, that name nothing. Words of other languages that are
#: as common are kept down by their tf-idf only. "Not", "up" and "without" stay: they make names.
_STOP_WORDS = frozenset(
    _WORD.findall(
        """
        about all also am an and any are as at be because been being both but by can could did didn
        do does doesn doing don each else ever every few for from get gets getting go goes going got
        had has hasn have haven having he her here him his how if in into is isn it its just ll may
        me might more most much must my no of on once one only or other our re shall she should so
        some such than that the their them then there these they this those through to too us ve
        very was wasn we were what when where which while who whom whose why will with won would you
        your
        """
    )
)


def telling_words(result: Result) -> list[list[str]]:
    """The words that set each category apart.

    Parameters
    ----------
    result : Result
        What was found.

    Returns
    -------
    list of list of str
        For each category at most `N_WORDS` words, the most telling first; none where file names
        tell nothing.
    """
    collection, codes = result.collection, result.assigned.labels
    texts = collection.texts if collection.texts is not None else collection.ids
    in_category: list[Counter[str]] = [Counter() for _ in result.names]
    for text, code in zip(texts, codes.tolist(), strict=True):
        in_category[code].update(_words(text))
    in_all: Counter[str] = Counter()
    for words in in_category:
        in_all.update(words)
    mean = sum(in_all.values()) / max(1, len(in_category))
    sizes = np.bincount(codes, minlength=len(result.names))
    found = []
    for words, size in zip(in_category, sizes.tolist(), strict=True):
        if collection.texts is None:
            words = _informative(words, in_all, size, len(collection))
        least = 2 if size > 2 else 1  # what a single text says is not what its category says
        scores = {w: n * np.log1p(mean / in_all[w]) for w, n in words.items() if n >= least}
        found.append(sorted(scores, key=lambda w: (-scores[w], w))[:N_WORDS])
    return found


def telling_values(result: Result) -> list[list[str]]:
    """Values of further columns that most items of a category have, and few others.

    Parameters
    ----------
    result : Result
        What was found.

    Returns
    -------
    list of list of str
        For each category at most `N_VALUES` texts of the form ``column: value``, the most telling
        first.
    """
    collection, codes = result.collection, result.assigned.labels
    in_category: list[Counter[str]] = [Counter() for _ in result.names]
    for name, values in collection.metadata.items():
        for value, code in zip(values, codes.tolist(), strict=True):
            if value is not None:
                in_category[code][f"{name}: {value}"] += 1
    in_all: Counter[str] = sum(in_category, Counter())
    sizes = np.bincount(codes, minlength=len(result.names)).tolist()
    found = []
    for counts, size in zip(in_category, sizes, strict=True):
        told = _informative(counts, in_all, size, len(collection))
        scores = {text: n * np.log1p(len(collection) / in_all[text]) for text, n in told.items()}
        found.append(sorted(scores, key=lambda text: (-scores[text], text))[:N_VALUES])
    return found


def _words(text: str) -> set[str]:
    return {
        word
        for word in _WORD.findall(text.lower())
        if len(word) <= _LONGEST and word not in _STOP_WORDS
    }


def _informative(
    words: Counter[str], in_all: Counter[str], size: int, n_items: int
) -> Counter[str]:
    """Words of file names, or values, that most items of a category have, and few others."""
    return Counter(
        {
            word: n
            for word, n in words.items()
            if n >= _LEAST_SHARE * size and n / size >= _LEAST_LIFT * in_all[word] / n_items
        }
    )


def nearest_known(result: Result) -> list[list[str]]:
    """For each novel category the known ones with the nearest prototypes; none for known ones."""
    n_known, prototypes = result.n_known, result.prototypes
    found: list[list[str]] = [[] for _ in result.names]
    if not n_known or not prototypes.shape[1]:
        return found
    gaps = squared_distances(prototypes[n_known:], prototypes[:n_known])
    for code, row in enumerate(gaps, start=n_known):
        found[code] = [result.names[i] for i in np.argsort(row, kind="stable")[:N_NEAREST]]
    return found


def suggested_name(words: list[str], values: list[str]) -> str:
    """A name made of the most telling words, or the most telling value; empty if there is none."""
    return " ".join(words[:3]) or (values[0].partition(": ")[2] if values else "")
