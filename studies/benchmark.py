"""All runs of one data set: many trainings at once, which share their stored views.

    python studies/benchmark.py cub --plan plan.txt --workers 12 --minutes 20 OPTIONS

The plan has a line for each training, the most important ones first; what comes after the third
word is handed on to `newfound bench run`:

    tune METHOD TRIAL                      tune gpc 0
    run METHOD K SEED [OPTIONS]            run gpc count 1 --without D25
    try SETTINGS SEED                      try warmup_epochs=0,whiten=false 1

`run` also puts our mixture on the finished features of a rival. A method that is tuned (--tuned)
waits for its trials, and a line that shares a training waits for the one that makes it. `try`
judges other settings of GPC on hidden known classes, like a trial.
OPTIONS are those of `newfound bench run` for all lines: --root, --work, --results, --epochs,
--tune-epochs, --n-stored-views, --model, --weights, --tuned, --n-starts, --precision, --compile.
Other settings that all lines share are named like those of `try`: --with
image_size=128,n_labelled_per_batch=256,n_unlabelled_per_batch=256.
Each line writes the same record as if the command were typed. What is finished is skipped, so a
plan that was cut off continues. Without --plan, the lines are printed that the protocol asks for
and --results lacks.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import os
import queue
import time
from collections import defaultdict
from pathlib import Path

import torch
import torch.multiprocessing as mp

from newfound.bench import commands
from newfound.bench.case import PARTS, Case, case_key
from newfound.bench.datasets import load_dataset
from newfound.bench.datasets.long_tail import base_of
from newfound.bench.finding_k import find_k
from newfound.bench.methods import NAMES, find_method
from newfound.bench.protocol import bench_settings
from newfound.bench.record import Record
from newfound.bench.run import Place, rows_of
from newfound.bench.run_files import start_file
from newfound.bench.splits import hide_known, make_split
from newfound.bench.tuning import trials_of
from newfound.deep.engine import start_engine
from newfound.deep.images.view_pairs import Shelf, StoredViews, shared_views
from newfound.deep.method import PrototypicalContrast
from newfound.deep.setup import set_up
from newfound.errors import InputError
from newfound.own_folder import FolderInUseError

#: How often a training is tried again if the memory of the GPU is full, and seconds between.
N_ATTEMPTS, PAUSE = 4, 15


def seed_of(line: list[str]) -> int:
    """The seed of the training, which its stored views depend on."""
    return 0 if line[0] == "tune" else int(line[3 if line[0] == "run" else 2])


def shared(given: argparse.Namespace) -> dict[str, object]:
    """The settings that all lines have."""
    names = ("model", "weights", "n_stored_views", "precision", "compile")
    return {name: getattr(given, name) for name in names} | values_of(given.others)


def searched_k(line: list[str]) -> tuple[str, bool]:
    """How K is searched for before a training, and whether known classes are hidden in it."""
    if line[0] != "run":
        return "brent", True
    # our mixture on a rival's features needs the K that the rival may find by itself
    counts = find_method(line[1]).own_k == "count" == line[2]
    return "own" if counts else line[2], False


def prepare(given: argparse.Namespace, seed: int, ways: set[tuple[str, bool]]) -> Shelf:
    """The stored views of a seed, on the device; and K, which else every worker would search."""
    settings = bench_settings(given.dataset, given.model).with_changes(**shared(given), seed=seed)
    data = load_dataset(given.dataset, given.root, incomplete=True)
    fabric = start_engine(settings.run, settings.optimiser.batch_size)
    split = make_split(data)
    pixels = rows_of(data, split, settings, given.work)
    setup = set_up(pixels, settings, PrototypicalContrast(settings), fabric)
    shelf = Shelf()
    with shared_views(shelf):
        parts = setup.network.backbone, setup.views, setup.feed, fabric
        StoredViews(*parts, n_views=given.n_stored_views, seed=seed)
    for way, hidden in sorted(ways):
        if way in ("brent", "count"):
            case = Case("kmeans", given.dataset, k=way, seed=seed, hidden=hidden)
            labels = hide_known(split) if hidden else split
            start = start_file(given.dataset, labels, settings, given.work)
            find_k(case, labels, pixels, settings, start)
    return shelf


def work(given: argparse.Namespace, shelves: dict[int, Shelf], queues: list[mp.Queue]) -> None:
    """Take lines of the plan; those that had to wait for their trials come first."""
    torch.set_num_threads(1)
    held, waiting, done = queues
    while True:
        for source in (held, waiting):
            with contextlib.suppress(queue.Empty):
                line = source.get(timeout=0.5)
                said = attempt(line, given, shelves[seed_of(line)])
                if said is not None:
                    done.put(said)
                    break
                held.put(line)
                time.sleep(2)  # else all cores would ask again and again


def attempt(line: list[str], given: argparse.Namespace, shelf: Shelf) -> str | None:
    """What a line of the plan said; None if its trials, or a training that it shares, run."""
    started, said = time.time(), io.StringIO()
    try:
        with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
            do(line, given, shelf)
        texts = said.getvalue().splitlines()
        outcome = [text for text in texts if text.startswith(("  All", "  already"))]
    except FolderInUseError:
        return None
    except InputError as error:
        if "tuning results" in str(error):
            return None
        outcome = [f"FAILED {error}"]
    except Exception as error:  # one that fails must not end the others
        outcome = [f"FAILED {error!r}"[:300], said.getvalue()[-300:]]
    return f"{time.time() - started:.0f} s  {' '.join(line)}: {'; '.join(outcome)}"


def do(line: list[str], given: argparse.Namespace, shelf: Shelf) -> None:
    """One line of the plan, again if the memory of the GPU is full."""
    for attempt in range(N_ATTEMPTS):
        try:
            with shared_views(shelf):
                results = given.tuned if line[0] == "tune" else given.results
                for one in runs_of(line, given):
                    commands._run(one, Place(given.root, given.work, results, incomplete=True))
            return
        except (RuntimeError, torch.OutOfMemoryError):
            torch.cuda.empty_cache()
            if attempt + 1 == N_ATTEMPTS:
                raise
            time.sleep(PAUSE)


def runs_of(line: list[str], given: argparse.Namespace) -> list[commands._Run]:
    """What a line stands for."""
    changes = {**shared(given), "epochs": given.epochs}
    trial = {**changes, "epochs": given.tune_epochs}
    if line[0] == "tune":
        method, number = line[1], int(line[2])
        return [commands._list_trials(method, given.dataset, 99, trial, {"n_starts": 5})[number]]
    if line[0] == "try":
        own = {**trial, **values_of(line[1]), "seed": seed_of(line)}
        return [commands._make_run("gpc", given.dataset, own, {"hidden": True, "k": "brent"})]
    _, method, k, seed, *more = line
    variant = dict(zip((name[2:].replace("-", "_") for name in more[::2]), more[1::2], strict=True))
    variant = {name: value_of(text) for name, text in variant.items()}
    variant = {"k": k, "n_starts": given.n_starts, **variant}
    trials = None if given.tuned is None else commands.read_records(given.tuned)
    finished = {record.case.trial for record in trials or [] if record.case.method == method}
    if trials is not None and len(finished) < n_trials(method):
        raise InputError("The tuning results lack trials.")

    def listed(names: str, **values: object) -> list[commands._Run]:
        all_of = {**variant, **values}
        return commands._list_runs(names, given.dataset, [int(seed)], changes, all_of, trials)

    runs = listed("gcd,pim" if method == "gcd" else method)
    if find_method(method).own_k == "own":
        runs += listed(method, k="unknown")
    has_features = method != "gpc" and find_method(method).learns
    return runs + listed(method, clustering="mixture") if has_features else runs


def whole_plan(dataset: str, rivals: tuple[str, ...]) -> list[str]:
    """All lines that the protocol asks for, the most important first."""
    # PIM clusters the features of GCD, in GCD's line
    methods = [name for name in NAMES if name not in ("gpc", "gpc-literal", "pim")]
    ways = [f"{k} {seed}" for k in ("known", "count", "brent") for seed in range(3)]
    tuned = ("gpc", *methods) if base_of(dataset) == dataset else ()
    lines = [f"tune {name} {i}" for name in tuned for i in range(n_trials(name))]
    lines += [f"run {name} {way}" for way in ways for name in ("gpc", *methods)]
    lines += [f"run gpc-literal {k} {seed}" for k in ("known", "unknown") for seed in range(3)]
    lines += [f"run gpc count {seed} --without {part}" for seed in range(3) for part in PARTS]
    own = {"gcd" if name == "pim" else name for name in rivals} | {"gpc"}
    return lines + [f"run {name} known 0 --draw {i}" for name in sorted(own) for i in (1, 2)]


def n_trials(method: str) -> int:
    return len(trials_of(method, bench_settings("cub", method=method)))


def best_rivals(records: list[Record], n: int = 2) -> tuple[str, ...]:
    """The rivals with the highest mean of All, K given."""
    scores = defaultdict(list)
    for record in records:
        case = record.case
        own = case.clustering == "own" and not case.draw and not case.hidden
        if own and case.k == "known" and case.method not in ("gpc", "mixture"):
            scores[case.method].append(record.all)
    return tuple(sorted(scores, key=lambda name: -sum(scores[name]) / len(scores[name]))[:n])


def missing(given: argparse.Namespace) -> list[str]:
    """Lines of the whole plan of which a record is missing."""
    records = commands.read_records(given.results)
    trials = [] if given.tuned is None else commands.read_records(given.tuned)

    def key(case: Case) -> str:
        return case_key(case, without=("weights",))

    done = {key(record.case) for record in (*records, *trials)}

    def is_open(line: str) -> bool:
        try:
            return any(key(run.case) not in done for run in runs_of(line.split(), given))
        except InputError:  # its trials are not finished
            return True

    return [line for line in whole_plan(given.dataset, best_rivals(records)) if is_open(line)]


def values_of(text: str) -> dict[str, object]:
    """Settings by name, from text like ``warmup_epochs=0,whiten=false``."""
    pairs = (part.split("=") for part in text.split(",") if "=" in part)
    return {name: value_of(value) for name, value in pairs}


def value_of(text: str) -> object:
    """A number or a truth value, or the text itself."""
    try:
        return json.loads(text)
    except ValueError:
        return text


def run_plan(given: argparse.Namespace, lines: list[list[str]]) -> None:
    """Run the lines, the first ones first, as many at once as there are workers."""
    until, started = time.time() + 60 * given.minutes, time.time()
    ways = defaultdict(set)
    for line in lines:
        ways[seed_of(line)].add(searched_k(line))
    shelves = {seed: prepare(given, seed, ways[seed]) for seed in sorted(ways)}
    torch.cuda.empty_cache()
    print(f"{len(shelves)} seeds prepared in {time.time() - started:.0f} s", flush=True)
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
        os.environ[name] = "1"  # from here on each worker has one core
    context = mp.get_context("spawn")
    _, waiting, done = queues = [context.Queue() for _ in range(3)]
    for line in lines:
        waiting.put(line)
    processes: list[mp.Process] = []
    n_left = len(lines)
    while n_left and time.time() < until:
        if len(processes) < min(given.workers, len(lines)):
            # one after the other, because each begins with the part that needs most memory
            processes.append(context.Process(target=work, args=(given, shelves, queues)))
            processes[-1].start()
        with contextlib.suppress(queue.Empty):
            print(done.get(timeout=2), flush=True)
            n_left -= 1
    for process in processes:
        process.terminate()
        process.join()


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("dataset")
    parser.add_argument("--plan", type=Path, help="a file, see above")
    parser.add_argument("--workers", type=int, default=8)
    parser.add_argument("--minutes", type=float, default=600.0)
    for name in ("root", "work", "results"):
        parser.add_argument(f"--{name}", type=Path, required=True)
    parser.add_argument("--tuned", type=Path, help="trials are written to it and read from it")
    for name in ("model", "weights"):
        parser.add_argument(f"--{name}", required=True)
    for name, value in (("n-stored-views", 16), ("epochs", 100), ("tune-epochs", 30)):
        parser.add_argument(f"--{name}", type=int, default=value)
    parser.add_argument("--with", dest="others", default="", help="other settings, see above")
    parser.add_argument("--n-starts", type=int, default=20)
    parser.add_argument("--precision", default="auto", help="bf16-mixed: faster on many CPUs")
    parser.add_argument("--compile", action="store_true")
    given = parser.parse_args()
    if given.plan is None:
        print("\n".join(missing(given)))
        return
    lines = [line.split() for line in given.plan.read_text(encoding="utf-8").splitlines()]
    run_plan(given, [line for line in lines if line])


if __name__ == "__main__":
    main()
