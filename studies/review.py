"""A simulated reviewer: what do decisions and answers teach, if they come from the truth?

    python studies/review.py number --sets digits=…/digits.npz --out results/review.jsonl
    python studies/review.py decisions --sets cifar100=…/cifar100.npz --out results/review.jsonl
    python studies/review.py table results/review.jsonl

`number` answers drawn pairs and measures K^n and its interval, against the count alone, pairs at
random, and inverse probabilities as weights. `decisions` decides on categories in the order of the
review page, in random order, or labels single items, and measures accuracy after Apply.
"""

import argparse
import json
import tempfile
import warnings
from pathlib import Path

import numpy as np
from find_k_cases import SITUATIONS, Case, Source, draw, read_lines

from newfound import SplitMergeMixture
from newfound.data.collection import Collection
from newfound.metrics import discovery_scores
from newfound.mixture.counting.answers import (
    Answer,
    AnswerCounter,
    Partition,
    draw_questions,
    partner_probabilities,
)
from newfound.result.edits.decisions import Obeyed, decide
from newfound.result.edits.log import Edit
from newfound.review.desk import Desk
from newfound.workflows.discover import discover
from newfound.workflows.job import Job
from newfound.workflows.obeying import obey

NUMBERS = (10, 30, 100, 200)
STEPS = (0, 5, 10, 20, 40, 80)
SIZES = ("like sizes", "novel a third", "long tail over all")
ORDERS = ("page", "random", "single items")


def case_of(source, scenario, permutation):
    situation = SITUATIONS[scenario]
    case = Case(source.name, scenario, permutation, situation.share, situation.rate, "review", None)
    return draw(source, case)


def number_lines(source, scenario, permutation, n_reviewers):
    """Lines of one case of the first study."""
    X, classes, y, known = case_of(source, scenario, permutation)
    mixture = SplitMergeMixture(random_state=permutation).fit(X, y)
    V = mixture.projection_.transform(X).astype(np.float32)
    partition = Partition(V, mixture.labels_, y >= 0, mixture.n_known_)
    truth = len(np.unique(classes)) - len(known)
    head = {"study": "number", "set": source.name, "scenario": scenario, "truth": truth}
    head["permutation"] = permutation

    def line(method, n, reviewer, count):
        low, high = count.interval
        found = {"n_novel": round(count.n_novel, 2), "low": round(low, 2), "high": round(high, 2)}
        return {**head, "method": method, "answers": n, "reviewer": reviewer, **found}

    yield line("count", 0, 0, mixture.count_)
    counter = AnswerCounter(mixture.count_, partition)
    for reviewer in range(n_reviewers):
        rng = np.random.default_rng([permutation, reviewer])
        drawn = draw_questions(partition, max(NUMBERS), rng)
        pairs = {"drawn": [(q.first, q.second) for q in drawn]}
        novel = np.flatnonzero(partition.is_novel)
        firsts = np.repeat(rng.choice(novel, max(NUMBERS) // 2), 2)
        others = rng.integers(1, len(y), len(firsts))
        pairs["at random"] = [
            (int(i), int((i + j) % len(y))) for i, j in zip(firsts, others, strict=True)
        ]
        for method, some in pairs.items():
            answers = [Answer(i, j, bool(classes[i] == classes[j])) for i, j in some]
            for n in NUMBERS:
                yield line(method, n, reviewer, counter.count(answers[:n]))
        for n in NUMBERS:
            found = weighted_number(partition, n, classes, rng)
            yield {**head, "method": "weights", "answers": n, "reviewer": reviewer, **found}


def weighted_number(partition, n, classes, rng):
    """K^n by the paper's weights: each n_i by inverse probabilities, then the mean of 1 / n_i.

    Of `n` answers, ten are about each item: with fewer, most estimates of n_i would be 1.
    """
    sizes, novel = partition.sizes, np.flatnonzero(partition.is_novel)
    share = 1 / sizes[novel]
    ratios = []
    for first in rng.choice(novel, max(1, n // 10), p=share / share.sum()):
        p = partner_probabilities(partition, int(first))
        partners = rng.choice(len(p), 10, p=p)
        size = 1 + np.mean((classes[partners] == classes[first]) / p[partners])
        ratios.append(sizes[first] / size)
    return {"n_novel": round(float(share.sum() * np.mean(ratios)), 2)}


class Reviewer:
    """Decides by the truth: each category that is looked at is one decision."""

    def __init__(self, folder, classes, known, order, seed):
        self.desk, self.classes, self.order = Desk(folder), classes, order
        self.rng = np.random.default_rng(seed)
        self.known, self.seen = set(known.tolist()), set()
        self.row_of = {item: row for row, item in enumerate(self.desk.result.collection.ids)}

    def decide_one(self):
        """Look at the next category or item, and decide."""
        if self.order == "single items":
            labels = self.desk.decisions.state.labels
            item = self.rng.choice([item for item, label in labels.items() if label is None])
            self.desk.add(Edit("relabel", str(item), value=self.name(self.row_of[str(item)])))
            return
        names = [card["name"] for card in self.desk.view()["cards"]]
        names = [name for name in names if name not in self.seen]
        if names:
            self.judge(names[0] if self.order == "page" else str(self.rng.choice(names)))

    def name(self, row):
        return f"class {self.classes[row]:03d}"

    def judge(self, category):
        """Split off the second class if it is large; else give the category its true name."""
        state = self.desk.decisions.state
        members = state.members(category)
        rows = np.array([self.row_of[item] for item in members])
        found, counts = np.unique(self.classes[rows], return_counts=True)
        by_size = np.argsort(-counts)
        true_name = f"class {found[by_size[0]]:03d}"
        self.seen |= {category, true_name}
        if len(found) > 1 and counts[by_size[1]] >= 0.3 * len(rows):
            other = self.classes[rows] == found[by_size[1]]
            free = [
                m
                for m, is_other in zip(members, other, strict=True)
                if is_other and not state.labels[m]
            ]
            if free and len(free) < len(members):
                self.split_off(category, free, f"class {found[by_size[1]]:03d}")
                return
        if category == true_name or (state.is_class(category) and category not in self.seen):
            return
        if true_name in state.categories:
            self.desk.add(Edit("merge", true_name, category))
        elif not state.is_class(category):
            self.desk.add(Edit("rename", category, value=true_name))

    def split_off(self, category, items, name):
        is_there = name in self.desk.decisions.state.categories
        subject = "\n".join(items)
        edit = Edit("move", subject, name) if is_there else Edit("split", category, subject, name)
        self.desk.add(edit)
        self.seen.add(name)


def decision_lines(source, permutation, orders):
    """Lines of one case of the second study."""
    X, classes, y, known = case_of(source, "like sizes", permutation)
    labels = np.array([None if c < 0 else f"class {c:03d}" for c in y], dtype=object)
    ids = [f"item {i:05d}" for i in range(len(X))]
    collection = Collection(ids=ids, y=labels, features=X)
    free, n_classes = y < 0, len(np.unique(classes))
    head = {"study": "decisions", "set": source.name, "permutation": permutation}
    for order in orders:
        with tempfile.TemporaryDirectory() as folder:
            run = Path(folder) / "run"
            discover(collection, out=run, rehearse=False, seed=permutation)
            reviewer = Reviewer(run, classes, known, order, permutation)
            for n in range(max(STEPS) + 1):
                if n in STEPS:
                    desk = reviewer.desk
                    decisions = decide(desk.result, desk.edits, Obeyed())
                    result = (
                        obey(desk.result, decisions, Job(0), None) if desk.edits else desk.result
                    )
                    accuracy = discovery_scores(
                        classes[free], result.assigned.labels[free], known
                    ).all
                    error = abs(len(result.names) - n_classes)
                    found = {"accuracy": round(float(accuracy), 4), "k_error": error}
                    yield {**head, "order": order, "decisions": n, **found}
                reviewer.decide_one()


def print_table(path):
    """Both tables, in Markdown."""
    lines = read_lines(path)
    print(
        "| set | sizes | method | answers | median error of K^n | width, high : low | in interval |"
    )
    print("|---|---|---|---:|---:|---:|---:|")
    groups = {}
    for line in lines:
        if line["study"] == "number":
            key = line["set"], line["scenario"], line["method"], line["answers"]
            groups.setdefault(key, []).append(line)
    for key, some in groups.items():
        errors = [abs(s["n_novel"] - s["truth"]) / s["truth"] for s in some]
        cells = [*map(str, key), f"{100 * np.median(errors):.0f} %"]
        if "low" in some[0]:
            width = np.median([(s["high"] + 1) / (s["low"] + 1) for s in some])
            covered = np.mean([s["low"] - 0.5 <= s["truth"] <= s["high"] + 0.5 for s in some])
            cells += [f"{width:.2f}", f"{100 * covered:.0f} %"]
        else:
            cells += ["", ""]
        print(f"| {' | '.join(cells)} |")
    print("\n| set | order | " + " | ".join(f"{n} decisions" for n in STEPS) + " |")
    print("|---|---|" + "---:|" * len(STEPS))
    for name, order in dict.fromkeys((x["set"], x["order"]) for x in lines if "order" in x):
        cells = []
        for n in STEPS:
            some = [x for x in lines if (x.get("order"), x.get("decisions")) == (order, n)]
            some = [x for x in some if x["set"] == name]
            accuracy = np.mean([x["accuracy"] for x in some])
            error = np.mean([x["k_error"] for x in some])
            cells.append(f"{100 * accuracy:.1f} % ({error:.0f})")
        print(f"| {name} | {order} | {' | '.join(cells)} |")


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("study", choices=("number", "decisions", "table"))
    parser.add_argument("file", nargs="?", type=Path, help="results, for the tables")
    parser.add_argument("--sets", nargs="*", default=["digits="], help="name=path of .npz files")
    parser.add_argument("--out", type=Path, default=Path("results/review.jsonl"))
    parser.add_argument("--max-rows", type=int, default=4000)
    parser.add_argument("--permutations", type=int, default=2)
    parser.add_argument("--reviewers", type=int, default=3)
    options = parser.parse_args()
    if options.study == "table":
        print_table(options.file or options.out)
        return
    warnings.simplefilter("ignore")
    sources = [Source(*text.split("=", 1), options.max_rows) for text in options.sets]
    with options.out.open("a", encoding="utf-8") as file:
        for permutation in range(options.permutations):
            for source in sources:
                source = Source(source.name, source.path or None, source.max_rows)
                made = [decision_lines(source, permutation, ORDERS)]
                if options.study == "number":
                    made = [
                        number_lines(source, scenario, permutation, options.reviewers)
                        for scenario in SIZES
                    ]
                for lines in made:
                    for line in lines:
                        file.write(json.dumps(line) + "\n")
                        file.flush()


if __name__ == "__main__":
    main()
