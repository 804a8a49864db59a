"""Judged pairs change the number of categories, if the sampler drew them."""

from dataclasses import replace

import numpy as np
import pytest
from samples import Blobs, Species

from newfound.mixture.counting.answers import draw_questions
from newfound.result.edits.drawn import drawn_answers, partition_of
from newfound.result.edits.log import EDITS, read_edits
from newfound.workflows.discover import discover
from newfound.workflows.update import update


@pytest.fixture(scope="module")
def blobs(tmp_path_factory):
    """A run that expects novel categories to be twice as large as they are: one, not two."""
    out = tmp_path_factory.mktemp("blobs") / "run"
    discover(Blobs.without(8), out=out, rehearse=False, sizes=2.0)
    return out


def truth(result, row):
    return Blobs.truth[int(result.collection.ids[row].split()[-1])]


def judge(run, n, *, drawn=True):
    """Answer questions truthfully."""
    ids = run.collection.ids
    for q in draw_questions(partition_of(run), n, np.random.default_rng(0)):
        verb = run.same if truth(run, q.first) == truth(run, q.second) else run.different
        verb(ids[q.first], ids[q.second], probability=q.probability if drawn else None)


def test_drawn_answers_correct_the_number_and_undoing_them_takes_it_back(run):
    assert run.n_novel == 1
    judge(run, 60)
    result, _ = update(run.folder)
    assert result.n_novel == 2
    low, high = result.record.n_novel_interval
    assert low <= 2 <= high
    again, _ = update(run.folder)
    assert again.record.n_novel_interval == pytest.approx((low, high), rel=0.1)
    (run.folder / EDITS).unlink()
    back, _ = update(run.folder)
    assert back.n_novel == 1
    assert back.record.n_novel_interval == pytest.approx(run.record.n_novel_interval)


def test_pairs_that_a_person_chose_do_not_enter(run):
    judge(run, 6, drawn=False)
    assert drawn_answers(run, read_edits(run.folder)) == []
    result, _ = update(run.folder)
    assert result.record.n_novel_interval == pytest.approx(run.record.n_novel_interval)


def test_another_number_leaves_known_and_confirmed_categories_as_they_are(tmp_path, monkeypatch):
    run = discover(Species.take(Species.before), out=tmp_path / "run", rehearse=False)
    first, *others = run.names[run.n_known :]
    for name in others[:2]:
        run.confirm(name)
    items = np.flatnonzero(run.assigned.labels == run.names.index(first))[:2]
    run.same(*[run.collection.ids[row] for row in items], probability=0.01)

    def one_fewer(counter, answers):
        return replace(counter._prior, n_novel=len(others) - 2)

    monkeypatch.setattr("newfound.workflows.answering.AnswerCounter.count", one_fewer)
    result, _ = update(run.folder)
    assert (result.n_known, result.n_novel) == (run.n_known + 2, len(others) - 2)
    before, now = (np.array(r.names)[r.assigned.labels] for r in (run, result))
    is_known = np.isin(before, [*run.names[: run.n_known], *others[:2]])
    np.testing.assert_array_equal(now[is_known], before[is_known])
