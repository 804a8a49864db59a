"""Large collections: time per pass, memory, traffic, workers, K in the thousands.

python studies/scale.py make FOLDER --rows 10000000 --features FILE.npz   # Parquet parts, float16
python studies/scale.py fit FOLDER [--rows 1000000] [--workers 2] [--resume FOLDER]
python studies/scale.py growth FOLDER --rows 10000000                     # CPU per row of a pass
python studies/scale.py workers FOLDER --rows 1000000                     # one worker and two
python studies/scale.py memory --features FILE.npz                        # an array, and k-means
python studies/scale.py categories                                        # K from 100 to 2,000

Rows are drawn around the class means and covariances of the features: 80 known classes, half of
whose rows are labelled, and 20 novel ones.
"""

import argparse
import os
import threading
import time
import warnings
from pathlib import Path

from measure import load_features, print_table  # imported first: it sets the number of threads

import numpy as np

PART_ROWS, GROUP_ROWS = 250_000, 62_500


def class_drawer(features):
    """A function that draws rows around the means and covariances of the classes of a file."""
    X, classes = load_features(features)
    means = np.stack([X[classes == c].mean(axis=0) for c in range(100)])
    spread = 1e-6 * np.eye(X.shape[1])
    roots = [np.linalg.cholesky(np.cov(X[classes == c].T) + spread) for c in range(100)]
    roots = np.stack(roots).astype(np.float32)

    def draw(n_rows, seed):
        rng = np.random.default_rng(seed)
        truth = rng.integers(0, 100, n_rows)
        rows = rng.standard_normal((n_rows, X.shape[1]), dtype=np.float32)
        for c in range(100):
            chosen = np.flatnonzero(truth == c)
            rows[chosen] = means[c] + rows[chosen] @ roots[c].T
        y = np.where((truth < 80) & (rng.random(n_rows) < 0.5), truth, -1)
        return rows, truth, y

    return draw


def make(folder, n_rows, features):
    """Write Parquet parts with the columns embedding, label and truth."""
    import pyarrow as pa
    from pyarrow import parquet

    folder.mkdir(parents=True, exist_ok=True)
    draw = class_drawer(features)
    for index in range(-(-n_rows // PART_ROWS)):
        path = folder / f"part-{index:04d}.parquet"
        if path.exists():
            continue
        X, truth, y = draw(min(PART_ROWS, n_rows - index * PART_ROWS), seed=index)
        columns = {
            "embedding": pa.FixedSizeListArray.from_arrays(
                pa.array(X.astype(np.float16).ravel()), X.shape[1]
            ),
            "label": pa.array(y.astype(np.int16), mask=y < 0),
            "truth": truth.astype(np.int16),
        }
        options = {"row_group_size": GROUP_ROWS, "use_dictionary": ["label", "truth"]}
        temporary = path.with_suffix(".tmp")
        parquet.write_table(pa.table(columns), temporary, compression="none", **options)
        temporary.rename(path)
    print(f"{index + 1} parts in {folder}")


class Watch:
    """Seconds of each pass, and the peak memory of this process and its children."""

    def __init__(self):
        import psutil

        self.process, self.peak, self.passes, self.open = psutil.Process(), 0, {}, None
        self.stopped = threading.Event()
        threading.Thread(target=self.look, daemon=True).start()

    def look(self):
        while not self.stopped.wait(0.2):
            self.peak = max(self.peak, sum(self.memory(p) for p in self.family()))

    def family(self):
        return [self.process, *self.process.children(recursive=True)]

    @staticmethod
    def memory(process):
        try:
            return process.memory_info().rss
        except Exception:  # it has just ended
            return 0

    def cpu(self):
        total = 0.0
        for process in self.family():
            times = process.cpu_times()
            total += times.user + times.system
        return total

    def loopback(self):
        """Bytes that went through the loopback device, of all processes of the machine."""
        line = next(x for x in Path("/proc/net/dev").read_text().splitlines() if "lo:" in x)
        return int(line.split(":")[1].split()[0])

    def __call__(self, step, done, total):
        now = time.perf_counter(), self.cpu(), self.loopback()
        if self.open is None or self.open[0] != step:
            self.open = step, done, now
        elif done == total:
            # a pass that was resumed: the part that this process has made stands for all of it
            share = (total - self.open[1]) / total
            spent = zip(self.open[2], now, strict=True)
            self.passes[step] = tuple((after - before) / share for before, after in spent)
            seconds, cpu, travelled = self.passes[step]
            print(
                f"  {step}: {seconds:.1f} s, CPU {cpu:.1f} s, loopback {travelled / 1e6:.1f} MB, "
                f"memory so far {self.peak / 2**30:.2f} GiB",
                flush=True,
            )


def known_count(rows, resume):
    """The count, kept beside the passes: it need not be made again when a fit is resumed."""
    import json

    from newfound import count_categories
    from newfound.mixture.counting.count import CategoryCount

    path = resume and resume / "count.json"
    if path and path.exists():
        return CategoryCount.from_plain(json.loads(path.read_text()))
    count = count_categories(rows, None, random_state=0)
    if path:
        path.write_text(json.dumps(count.as_plain()))
    return count


def searched(rows, resume, n_init):
    """The mixture of the sample, kept beside the passes; `fit` makes the same steps in one call."""
    from sklearn.utils import check_random_state

    from newfound import SplitMergeMixture
    from newfound.mixture.sampling import rows_and_sample
    from newfound.result.model_file import load_mixture, save_mixture

    folder = resume and resume / "searched"
    if folder and folder.exists():
        return load_mixture(folder)[0]
    count = known_count(rows, resume)
    _, sample = rows_and_sample(rows, None, check_random_state(0), np.asarray)
    y = sample.partial.codes
    mixture = SplitMergeMixture(count=count, n_init=n_init, random_state=0).fit(sample.X, y)
    if folder:
        save_mixture(mixture, folder, encoder={})
    return mixture


def fit(folder, n_rows, workers, resume, n_init):
    """Fit to the first parts of a folder; print time per pass, memory and how good it is."""
    from sklearn.metrics import adjusted_rand_score

    from newfound import scale
    from newfound.mixture.settling import label_rows, settle

    paths = sorted(folder.glob("*.parquet"))[: -(-n_rows // PART_ROWS)]
    client = scale.connect(workers=workers) if workers else None
    watch = Watch()
    print(
        f"load {os.getloadavg()[0]:.1f}, {workers or 'no'} workers, {len(paths)} parts", flush=True
    )
    rows = scale.from_parquet(paths, label_column="label", columns=["embedding"], resume=resume)
    rows = rows.with_progress(watch)
    mixture = searched(rows, resume, n_init)
    space, offsets = mixture.projection_.space, mixture.offsets_
    prototypes, _ = settle(rows, space, mixture.prototypes_, offsets, pinned=True)
    arguments = (*space, prototypes, offsets, True)
    labels = np.asarray(rows.vector(label_rows, *arguments, step="Labelling rows"))
    watch.stopped.set()
    truth = np.concatenate([_column(path, "truth") for path in paths])
    unlabelled = np.concatenate([_column(path, "label") for path in paths]) < 0
    settling = [times for step, times in watch.passes.items() if step.startswith("Settling")]
    score = adjusted_rand_score(truth[unlabelled], labels[unlabelled])
    low, high = mixture.count_.interval
    counted = f"{mixture.count_.n_novel:.1f} ({low:.1f} to {high:.1f})"
    print_table(
        f"{len(rows):,} rows, {workers or 'no'} workers, load {os.getloadavg()[0]:.1f}",
        [
            ("CPU s per pass", f"{np.mean([x[1] for x in settling]):.1f}" if settling else "-", ""),
            ("s per pass", f"{np.mean([x[0] for x in settling]):.1f}" if settling else "-", ""),
            ("peak memory of all processes", f"{watch.peak / 2**30:.2f} GiB", "under 6 GiB"),
            ("K^n counted", counted, ""),
            ("K^n", mixture.n_novel_, "18 to 22"),
            ("adjusted Rand index of unlabelled rows", f"{score:.3f}", ""),
        ],
    )
    if client is not None:
        client.close()


def _column(path, name):
    from pyarrow import parquet

    return parquet.read_table(path, columns=[name]).column(0).fill_null(-1).to_numpy()


def pass_arguments(k=100, q=128):
    """Arguments of a pass with 80 known and 20 other prototypes."""
    rng = np.random.default_rng(0)
    directions = np.linalg.qr(rng.standard_normal((q, q)))[0]
    return np.zeros(q), directions, np.eye(q), rng.standard_normal((k, q)), np.zeros(k), 80, False


def growth(folder, n_rows):
    """CPU per row of a pass over all rows and over a tenth, group by group in turn.

    The machine may be busy with other things, which slow both down alike.
    """
    from newfound import scale
    from newfound.mixture.settling import sum_rows
    from newfound.scale.blocks import BLOCK_ROWS, group_bounds
    from newfound.scale.passes import Call, run_group

    paths = sorted(folder.glob("*.parquet"))[: -(-n_rows // PART_ROWS)]
    sizes, spent = [], []
    for some in (paths[: len(paths) // 10], paths):
        rows = scale.from_parquet(some, label_column="label", columns=["embedding"])
        call = Call(sum_rows, pass_arguments(), rows.classes, BLOCK_ROWS)
        sizes.append((rows, call, group_bounds(len(rows))))
        spent.append([0.0, 0])
    for turn in range(4):
        for which, (rows, call, bounds) in enumerate(sizes):
            per_turn = 10 if which == 0 else 1
            for group in bounds[turn * per_turn : (turn + 1) * per_turn]:
                start = time.process_time()
                run_group(call, rows.features, rows.labels, group)
                if turn:  # the first turn reads files and warms up
                    spent[which][0] += time.process_time() - start
                    spent[which][1] += group[1] - group[0]
    few, many = (1e6 * seconds / n for seconds, n in spent)
    print_table(
        f"a pass over {n_rows // 10:,} and {n_rows:,} rows, load {os.getloadavg()[0]:.1f}",
        [
            ("CPU s per million rows", f"{few:.2f}, {many:.2f}", ""),
            ("relative to linear growth", f"{many / few:.2f}", "at most 1.3"),
        ],
    )


def workers_study(folder, n_rows):
    """One worker against two, and what travels."""
    from newfound import scale
    from newfound.mixture.settling import sum_rows

    paths = sorted(folder.glob("*.parquet"))[: -(-n_rows // PART_ROWS)]
    spent, results = {}, {}
    with scale.connect(workers=2) as client:
        few = scale.from_parquet(paths[:1], columns=["embedding"])
        few.run(sum_rows, *pass_arguments(), step="imports", classes=np.arange(80))
        rows = scale.from_parquet(paths, label_column="label", columns=["embedding"])
        for workers in (2, 1):
            watch = Watch()
            options = {"step": f"a pass with {workers}", "classes": np.arange(80)}
            results[workers] = rows.with_progress(watch).run(sum_rows, *pass_arguments(), **options)
            watch.stopped.set()
            spent[workers] = watch.passes[options["step"]]
            if workers == 2:
                client.retire_workers(list(client.scheduler_info()["workers"])[:1])
    pairs = zip(results[1], results[2], strict=True)
    pairs = [pair for groups in pairs for pair in zip(*groups, strict=True)]
    same = all(np.array_equal(first, second) for first, second in pairs)
    statistics = sum(array.nbytes for group in results[2] for array in group)
    one, two = spent[1][0], spent[2][0]
    print_table(
        f"one pass over {n_rows:,} rows, load {os.getloadavg()[0]:.1f}",
        [
            ("one worker against two", f"{one / two:.2f} × ({one:.1f} / {two:.1f} s)", "1.6 ×"),
            ("the same sums, bit for bit", same, True),
            ("bytes of statistics", f"{statistics / 1e6:.1f} MB", ""),
            # from workers to the scheduler, and from there to the client
            (
                "through loopback, with all else on it",
                f"{spent[2][2] / 1e6:.1f} MB",
                f"{2 * statistics / 1e6:.1f} MB",
            ),
        ],
    )


def memory(features, n_rows=300_000):
    """An array in memory: CPU seconds against k-means, and memory beyond the array."""
    from sklearn.cluster import KMeans

    from newfound import SplitMergeMixture

    X, _, y = class_drawer(features)(n_rows, 0)
    watch = Watch()
    time.sleep(0.5)
    before, watch.peak = watch.peak, 0
    start = time.process_time()
    mixture = SplitMergeMixture(random_state=0).fit(X, y)
    ours = time.process_time() - start
    peak = watch.peak - before
    watch.stopped.set()
    start = time.process_time()
    KMeans(100, n_init=1, random_state=0).fit(X)
    theirs = time.process_time() - start
    print_table(
        f"{n_rows:,} x {X.shape[1]} in memory, load {os.getloadavg()[0]:.1f}",
        [
            ("CPU s, SplitMergeMixture", f"{ours:.0f}", ""),
            ("CPU s, KMeans(100)", f"{theirs:.0f}", ""),
            ("ratio", f"{ours / theirs:.2f}", "at most 3"),
            ("memory beyond the array", f"{peak / 2**30:.2f} GiB", "at most 1 GiB"),
            ("K^n", mixture.n_novel_, "18 to 22"),
        ],
    )


def categories(n_rows=100_000, d=32):
    """Time and memory of k-means and the mixture as K grows, with K given."""
    from newfound import SplitMergeMixture

    lines = []
    for k in (100, 500, 2000):
        rng = np.random.default_rng(0)
        truth = rng.integers(0, k, n_rows)
        X = rng.standard_normal((k, d), dtype=np.float32)[truth]
        X += rng.standard_normal((n_rows, d), dtype=np.float32)
        y = np.where((truth < 0.8 * k) & (rng.random(n_rows) < 0.5), truth, -1)
        watch = Watch()
        time.sleep(0.5)
        before, watch.peak = watch.peak, 0
        start = time.process_time()
        mixture = SplitMergeMixture(
            n_components=k, n_directions=d, sizes="alike", n_init=1, random_state=0
        ).fit(X, y)
        seconds = time.process_time() - start
        watch.stopped.set()
        right = f"{(mixture.labels_[y < 0] == truth[y < 0]).mean():.2f} of unlabelled rows known"
        lines.append(
            (f"K = {k}", f"{seconds:.0f} CPU s, {(watch.peak - before) / 2**30:.2f} GiB", right)
        )
    print_table(f"{n_rows:,} x {d}, K given, load {os.getloadavg()[0]:.1f}", lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "what", choices=["make", "fit", "growth", "workers", "memory", "categories"]
    )
    parser.add_argument("folder", nargs="?", type=Path)
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--workers", type=int, default=0)
    parser.add_argument("--starts", type=int, default=3)
    parser.add_argument("--passes", type=int, default=10, help="at most so many settling passes")
    parser.add_argument("--resume", type=Path)
    parser.add_argument("--features", type=Path)
    asked = parser.parse_args()
    warnings.simplefilter("ignore")
    from newfound.mixture import settling

    if asked.what == "make":
        make(asked.folder, asked.rows, asked.features)
    elif asked.what == "fit":
        settling.MAX_PASSES = asked.passes
        fit(asked.folder, asked.rows, asked.workers, asked.resume, asked.starts)
    elif asked.what == "growth":
        growth(asked.folder, asked.rows)
    elif asked.what == "workers":
        workers_study(asked.folder, asked.rows)
    elif asked.what == "memory":
        memory(asked.features)
    else:
        categories()


if __name__ == "__main__":
    main()
