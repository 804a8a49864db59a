"""All runs of one data set on one GPU: many trainings at once, which share their stored views.

    python studies/benchmark.py tune cub --workers 9 --minutes 8 -- OPTIONS
    python studies/benchmark.py run cub --workers 12 --seeds 0 1 2 --minutes 20 -- OPTIONS
    python studies/benchmark.py try cub --variants base warmup_epochs=0 -- OPTIONS

`try` judges other settings of GPC on hidden known classes, like a trial of `tune`, with any seed.
Each piece of work is a command `newfound bench tune` or `newfound bench run` with these OPTIONS
(--root, --work, --results, --epochs, --n-stored-views, --model, --weights, --tuned, --commit), and
writes the same record as if it were typed. What is finished is skipped, so a run that was cut off
by --minutes continues. Stored views are computed once for each seed and shared by all processes.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import queue
import sys
import time
from pathlib import Path

import torch
import torch.multiprocessing as mp

from newfound.bench.datasets import load_dataset
from newfound.bench.methods import find_method
from newfound.bench.protocol import bench_settings
from newfound.bench.run import Place, rows_of
from newfound.bench.splits import make_split
from newfound.deep.engine import start_engine
from newfound.deep.images.view_pairs import Shelf, StoredViews, shared_views
from newfound.deep.method import PrototypicalContrast
from newfound.deep.setup import set_up

METHODS = ["dualrank", "uno", "simgcd", "gpc", "bacon", "cms", "dccl", "gcd", "rankstats", "orca"]


def fill_shelf(dataset: str, seed: int, given: argparse.Namespace) -> Shelf:
    """The stored views of a seed, on the GPU."""
    values = {"n_stored_views": given.n_stored_views, "seed": seed}
    values |= {"model": given.model, "weights": given.weights}
    settings = bench_settings(dataset, given.model).with_changes(**values)
    data = load_dataset(dataset, given.root, incomplete=True)
    fabric = start_engine(settings.run, settings.optimiser.batch_size)
    pixels = rows_of(data, make_split(data), settings, given.work)
    setup = set_up(pixels, settings, PrototypicalContrast(settings), fabric)
    shelf = Shelf()
    with shared_views(shelf):
        parts = setup.network.backbone, setup.views, setup.feed, fabric
        StoredViews(*parts, n_views=given.n_stored_views, seed=seed)
    return shelf


def work(shelf: Shelf, waiting: mp.Queue, done: mp.Queue) -> None:
    """Take commands from the queue until it is empty."""
    from newfound.bench.commands import app

    torch.set_num_threads(1)
    with shared_views(shelf):
        while True:
            try:
                commands = waiting.get(timeout=2)
            except queue.Empty:
                return
            for command in commands:
                done.put(run_one(app, command))


def run_variant(command: list[str]) -> None:
    """Train with settings that are named in one word, and judge by hidden known classes."""
    from newfound.bench import commands

    _, variant, dataset, seed, *options = command
    values = {} if variant == "base" else dict(part.split("=") for part in variant.split(","))
    changes = {name: _value(text) for name, text in values.items()}
    parser = argparse.ArgumentParser()
    for name in ("root", "work", "results"):
        parser.add_argument(f"--{name}", type=Path)
    for name in ("model", "weights"):
        parser.add_argument(f"--{name}")
    for name in ("n-stored-views", "epochs"):
        parser.add_argument(f"--{name}", type=int)
    parser.add_argument("--learning-rate", type=float, default=0.1)
    given = vars(parser.parse_known_args(options)[0])
    places = [given.pop(name) for name in ("root", "work", "results")]
    changes = {**given, **changes, "seed": int(seed)}
    one = commands._make_run("gpc", dataset, changes, {"hidden": True, "k": "brent"})
    commands._run(one, Place(*places, True, False, None))


def _value(text: str) -> object:
    try:
        return json.loads(text)
    except ValueError:
        return text


def run_one(app, command: list[str]) -> str:
    """What a command said, in one line. One that fails must not end the others."""
    started, said = time.time(), io.StringIO()
    try:
        with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
            if command[0] == "try":
                run_variant(command)
            else:
                app(command, standalone_mode=False)
        outcome = [line for line in said.getvalue().splitlines() if line.startswith("  ")]
    except BaseException as error:
        outcome = [f"FAILED {error!r}", said.getvalue()[-800:]]
    name = " ".join(command[: command.index("--root")])
    return f"{time.time() - started:.0f} s  {name}: {'; '.join(outcome)}"


def run_all(shelf: Shelf, commands: list[list[list[str]]], n_workers: int, until: float) -> None:
    """Run the commands, the first ones first, as many at once as there are workers."""
    context = mp.get_context("spawn")
    waiting, done = context.Queue(), context.Queue()
    for command in commands:
        waiting.put(command)
    n_workers = min(n_workers, len(commands))
    processes = [
        context.Process(target=work, args=(shelf, waiting, done)) for _ in range(n_workers)
    ]
    for process in processes:
        process.start()
    while time.time() < until and any(process.is_alive() for process in processes):
        with contextlib.suppress(queue.Empty):
            print(done.get(timeout=1), flush=True)
    for process in processes:
        process.terminate()
        process.join()
    with contextlib.suppress(queue.Empty):
        while True:
            print(done.get(timeout=0.2), flush=True)


def commands_of(given: argparse.Namespace, seed: int) -> list[list[list[str]]]:
    """The commands of a phase for one seed: a list for each training and what depends on it."""
    if given.phase == "try":
        return [
            [["try", variant, given.dataset, str(seed), *given.options]]
            for variant in given.variants
        ]
    methods = given.methods or METHODS
    commands = []
    for k in given.k if given.phase == "run" else [""]:
        for method in methods:
            shared = find_method(method).learns_without_k  # one training for all K
            if shared and k not in ("", given.k[0]):
                continue
            options = ["--k", "all" if shared else k, "--seed", str(seed)] if k else []
            names = "gcd,pim" if method == "gcd" else method
            command = [given.phase, names, given.dataset, *options, *given.options]
            commands.append([command])
            if k and find_method(method).own_k == "own":
                commands[-1].append([*command, "--k", "unknown"])  # the last of two counts
            if k and method != "gpc":  # our mixture on the finished features
                commands[-1].append([*command, "--clustering", "mixture"])
    for letter in given.without if given.phase == "run" else []:
        options = ["--k", "count", "--seed", str(seed), "--without", letter]
        commands.append([["run", "gpc", given.dataset, *options, *given.options]])
    return commands


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("phase", choices=["tune", "run", "try"])
    parser.add_argument("dataset")
    parser.add_argument("--methods", nargs="*", help="ids; by default all that train")
    parser.add_argument("--workers", type=int, default=8)
    parser.add_argument("--seeds", nargs="*", type=int, default=[0, 1, 2])
    parser.add_argument("--k", nargs="*", default=["known", "brent", "count"])
    parser.add_argument("--without", nargs="*", default=[], help="D25 and so on: GPC without it")
    parser.add_argument("--variants", nargs="*", default=["base"], help="such as a=1,b=2")
    parser.add_argument("--minutes", type=float, default=600.0)
    own, options = sys.argv[1:], []
    if "--" in own:
        own, options = own[: own.index("--")], own[own.index("--") + 1 :]
    given = parser.parse_args(own)
    places = argparse.ArgumentParser()
    for name in ("root", "work", "weights"):
        places.add_argument(f"--{name}", type=Path, required=True)
    places.add_argument("--model", required=True)
    places.add_argument("--n-stored-views", type=int, required=True)
    place, _ = places.parse_known_args(options)
    # --root first: the part of a command before it is its name in the log
    at = options.index("--root")
    given.options = [*options[at : at + 2], *options[:at], *options[at + 2 :]]
    place.weights = str(place.weights)
    until = time.time() + 60 * given.minutes
    for seed in given.seeds if given.phase != "tune" else [0]:
        if time.time() < until:
            started = time.time()
            shelf = fill_shelf(given.dataset, seed, place)
            print(f"seed {seed}: stored views in {time.time() - started:.0f} s", flush=True)
            run_all(shelf, commands_of(given, seed), given.workers, until)
            del shelf
            torch.cuda.empty_cache()


if __name__ == "__main__":
    main()
