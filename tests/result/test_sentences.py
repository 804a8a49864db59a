"""A run and its categories in words."""

from dataclasses import replace

import numpy as np
import pytest

from newfound.result.evidence import MoveEvidence
from newfound.result.record import RehearsalRecord, Request, RunRecord
from newfound.result.sentences import (
    answer_sentence,
    has_bad_features,
    move_numbers,
    rerun_sentence,
    trust_sentence,
    unsure_sentence,
    why_not_merged,
    why_not_split,
)

CLOSE_HALVES = (
    "Its two most different halves are closer to each other than any two categories here."
)


def test_words_for_categories_that_may_split(result):
    reasons = result.categories["why_not_split"]
    assert reasons[:5].tolist() == ["Its labels say that it is one category."] * 5
    assert set(reasons[5:]) == {CLOSE_HALVES}


def test_words_for_people_hold_no_numbers(result):
    """An ecologist has no use for "log H = +1144"; the numbers stand behind a fold."""
    for column in ("why_not_split", "why_not_merged"):
        for reason in result.categories[column]:
            words = reason
            for name in result.names:  # names hold digits of their own
                words = words.replace(name, "")
            assert not any(sign.isdigit() for sign in words)
            assert "log H" not in words
    evidence = result.profiles.evidence
    split, merged = move_numbers(evidence, 7, result.names)
    assert f"{evidence.split_gap[7]:.3g}" in split
    assert f"log H = {evidence.split_log_ratio[7]:+.0f}" in split
    assert f"Gap to {result.names[evidence.merge_partner[7]]}: " in merged
    assert f"{evidence.merge_gap[7]:.3g}, log H = {evidence.merge_log_ratio[7]:+.0f}" in merged
    assert len(move_numbers(evidence, 0, result.names)) == 1  # no split of a known category


NAN = float("nan")


def evidence(split, merge=NAN):
    """Of a known and a novel category, with (gap, log H) of the split and of the merge."""
    (gap, log_ratio), (merge_gap, merge_ratio) = (
        (NAN, NAN) if numbers is NAN else numbers for numbers in (split, merge)
    )
    return MoveEvidence(
        split_gap=np.array([NAN, gap]),
        split_log_ratio=np.array([NAN, log_ratio]),
        merge_gap=np.array([merge_gap] * 2),
        merge_log_ratio=np.array([merge_ratio] * 2),
        merge_partner=np.array([-1, -1] if merge is NAN else [1, 0]),
    )


@pytest.mark.parametrize(
    ("split", "merge", "why_split", "why_merged"),
    [
        ((2.0, -3.0), (5.0, -7.0), CLOSE_HALVES,
         "It differs from cat, the category most like it, more than the two halves of any "
         "category differ from each other."),
        ((9.0, 4.0), (5.0, 6.0),
         "Its two halves differ more than the two closest categories here. It was kept as one, "
         "because a split would make one category too many: look whether it holds two kinds.",
         "It differs from cat, the category most like it, less than the two halves of some "
         "category differ from each other: compare the two."),
        (NAN, (5.0, -7.0),
         "It is too small to split: a half would have 5 items or fewer.",
         "It differs from cat, the category most like it, and no category has halves to compare "
         "that with."),
        (NAN, NAN,
         "It is too small to split: a half would have 5 items or fewer.",
         "The nearest category, cat, is too far away."),
        ((2.0, -3.0), NAN,
         "There is no other category to compare its two halves with.",
         "The nearest category, cat, is too far away."),
    ],
)  # fmt: skip
def test_evidence_in_words(split, merge, why_split, why_merged):
    numbers = evidence(split, merge)
    assert why_not_split(numbers, 1, n_known=1) == why_split
    assert why_not_merged(numbers, 1, 1, ["cat", "new-001"], nearest=0) == why_merged


def test_known_and_single_categories_in_words():
    numbers = evidence(NAN)
    assert why_not_split(numbers, 0, n_known=1) == "Its labels say that it is one category."
    names = ["cat", "new-001"]
    assert why_not_merged(numbers, 0, 2, names, nearest=1) == (
        "The nearest category, new-001, has other labels."
    )
    assert why_not_merged(numbers, 0, 1, ["cat"], nearest=-1) == "There is no other category."


def record(**changes):
    counts = {"n_items": 1234, "n_labelled": 100, "n_known": 5, "n_novel": 4}
    return RunRecord(**{"kind": "pictures", **counts, "n_novel_interval": (2.7, 6.2), **changes})


def trust(**changes):
    return trust_sentence(record(**changes))


def rehearsed(*ratios):
    return trust(rehearsal=RehearsalRecord(len(ratios), ratios))


def test_the_answer_in_words():
    assert answer_sentence(record()) == (
        "4 new categories were found in 1,234 pictures, in addition to 5 known categories."
    )
    assert answer_sentence(record(n_novel=1, n_known=1, kind="texts")) == (
        "1 new category was found in 1,234 texts, in addition to 1 known category."
    )
    assert answer_sentence(record(n_novel=0)) == (
        "No new category was found in 1,234 pictures, in addition to 5 known categories."
    )
    given = record(n_items=10, kind="features", settings=Request(n_categories=9))
    assert answer_sentence(given) == (
        "9 categories in 10 items, as requested: 5 known categories and 4 new categories."
    )


def test_trust_in_words():
    assert trust() == (
        "90 % interval for the number of new categories: 3 to 6. There was no rehearsal with "
        "hidden categories."
    )
    assert "interval for the number of new categories: 4." in trust(n_novel_interval=(3.6, 4.4))
    assert "The number of categories was given" in trust(settings=Request(n_categories=9))
    assert "Fewer than two classes have labels" in trust(n_novel_interval=None, n_known=1)
    assert "which gives no interval" in trust(n_novel_interval=None)


def test_the_rehearsal_in_words():
    assert rehearsed(0.9, 1.0, 1.2).endswith(
        "In a rehearsal, some known categories were hidden 3 times: for each hidden category, 1.0 "
        "were found (0.9 to 1.2), which is close to the correct value, 1."
    )
    assert rehearsed(1.0, 2.0, 3.0).endswith(", so there may be fewer new categories: about 2.")
    assert rehearsed(0.4, 0.5, 0.6).endswith(", so there may be more new categories: about 8.")
    assert rehearsed(0.0, 0.0, 0.1).endswith(", so there may be more new categories.")


def test_why_no_command_repeats_a_run():
    assert rerun_sentence(record()) == "This run was started from Python, so no command repeats it."
    assert "continued with newfound update" in rerun_sentence(record(command="update"))
    assert "was recorded" in rerun_sentence(record(settings=Request(train=True)))


def test_unsure_items_are_counted():
    record = RunRecord("pictures", 1500, 300, 5, 2, settings=Request(min_confidence=0.975))
    assert unsure_sentence(1, record) == (
        "1 of 1,200 pictures without a label is unsure: its confidence is below 97.5 %."
    )
    assert unsure_sentence(1030, record).startswith("1,030 of 1,200 pictures without a label are")
    assert unsure_sentence(0, replace(record, settings=Request())) is None


# ------------------------------------------------------------------------------------ the features


def record_of(label_accuracy, n_known=24, n_labelled=192, **changes):
    return RunRecord(
        "pictures", 600, n_labelled, n_known, 11, label_accuracy=label_accuracy, **changes
    )


@pytest.mark.parametrize(
    ("label_accuracy", "n_known", "n_labelled", "bad"),
    [
        (0.11, 24, 192, True),  # raw pixels of birds
        (0.84, 24, 192, False),  # a network
        (0.44, 24, 192, True),  # halfway from chance to 1 is 52 %; 6 points of it may be luck
        (0.48, 24, 192, False),
        (0.60, 2, 1000, True),  # with two classes halfway is 75 %
        (0.60, 2, 4, False),  # four labels say little
        (None, 24, 192, False),
    ],
)
def test_what_bad_features_are(label_accuracy, n_known, n_labelled, bad):
    record = record_of(label_accuracy, n_known, n_labelled)
    assert has_bad_features(record) == bad
    caution = "Do not rely on this: the features hardly tell known categories apart."
    assert answer_sentence(record).endswith(caution) == bad
    assert ("With their labels hidden" in trust_sentence(record)) == bad


def test_bad_features_are_said_with_numbers_and_advice():
    record = record_of(0.109, n_novel_interval=(0.0, 29.0))
    assert trust_sentence(record).startswith(
        "With their labels hidden, only 11% of the labelled items are put into the right one of "
        "the 24 known categories (by chance: 4%), so the new categories are not reliable either. "
        "Use another encoder (--encoder), or train one (--train), and check the labels. 90 % inter"
    )
    assert record.chance == pytest.approx(1 / 24)


def test_a_given_number_of_categories_does_not_hide_bad_features():
    record = record_of(0.1, settings=Request(n_categories=35))
    assert "as requested" in answer_sentence(record)
    assert "Do not rely on this" in answer_sentence(record)
