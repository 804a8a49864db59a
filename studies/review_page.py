"""How long the first page of `newfound review` and a decision take, at the server and in a browser.

    python studies/review_page.py FOLDER --pictures 10000

Makes an artificial run of so many pictures in FOLDER, unless it is there, and opens it in Chromium.
"""

import argparse
import json
import shutil
import threading
import time
import urllib.request
from pathlib import Path

import numpy as np
from PIL import Image
from playwright.sync_api import sync_playwright

from newfound import SplitMergeMixture
from newfound.data.collection import Collection
from newfound.data.tables import as_objects
from newfound.result.build import result_from
from newfound.result.record import Request, RunFacts
from newfound.result.store import write_result
from newfound.review.server import ReviewServer

K, DIMENSIONS = 100, 128
SEEN = """() => {
  const seen = [...document.querySelectorAll(".card img")]
    .filter((image) => image.getBoundingClientRect().top < innerHeight);
  return seen.length > 5 && seen.every((image) => image.naturalWidth > 0);
}"""
CARDS = """() => {
  const start = performance.now();
  showCards();
  return performance.now() - start;
}"""


def make_run(folder, n):
    """A run of artificial photos with 100 categories, half of them known."""
    rng = np.random.default_rng(0)
    truth = rng.integers(0, K, n)
    X = rng.normal(size=(K, DIMENSIONS))[truth] + 1.6 * rng.normal(size=(n, DIMENSIONS))
    pictures = folder / "pictures"
    pictures.mkdir(parents=True)
    paths = [(pictures / f"{i:06}.jpg").absolute() for i in range(n)]
    for path in paths:
        small = Image.fromarray(rng.integers(0, 255, (16, 16, 3), dtype=np.uint8))
        small.resize((400, 300), Image.Resampling.BILINEAR).save(path)
    is_labelled = (truth < K // 2) & (rng.random(n) < 0.5)
    names = [f"class {t:02}" if some else None for t, some in zip(truth, is_labelled, strict=True)]
    collection = Collection([path.name for path in paths], as_objects(names), paths=paths)
    X = X.astype(np.float32)
    mixture = SplitMergeMixture(random_state=0, n_init=1).fit(X, collection.y)
    facts = RunFacts(seed=0, settings=Request())
    write_result(result_from(collection, X, mixture, facts), folder / "run")


def ask(server, path, body=None):
    """Milliseconds, and the answer."""
    address, _, token = server.address.partition("/?token=")
    headers = {"X-Newfound-Token": token, "Content-Type": "application/json"}
    data = None if body is None else json.dumps(body).encode()
    started = time.perf_counter()
    with urllib.request.urlopen(urllib.request.Request(address + path, data, headers)) as response:
        content = response.read()
    return 1000 * (time.perf_counter() - started), content


def measure_server(server):
    for what in ("state", "state again"):
        took, content = ask(server, "/api/state")
        print(f"{what}: {took:.0f} ms, {len(content) / 1000:.0f} kB")
    card = json.loads(content)["cards"][0]
    for what in ("a picture", "the same again"):
        print(f"{what}: {ask(server, '/picture/small/' + str(card['rows'][0]))[0]:.0f} ms")
    edit = {"action": "confirm", "subject": card["name"]}
    print(f"a decision: {ask(server, '/api/edit', edit)[0]:.0f} ms")
    print(f"the state after it: {ask(server, '/api/state')[0]:.0f} ms")
    print(f"undo: {ask(server, '/api/undo', {})[0]:.0f} ms")


def measure_page(server):
    with sync_playwright() as playwright:
        program = shutil.which("chromium") or shutil.which("chromium-browser")
        browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
        for _ in range(3):
            page = browser.new_context(viewport={"width": 1280, "height": 900}).new_page()
            started = time.perf_counter()
            page.goto(server.address, wait_until="commit")
            page.wait_for_selector(".card")
            cards = time.perf_counter() - started
            page.wait_for_function(SEEN)
            pictures = time.perf_counter() - started
            drawing = page.evaluate(CARDS)
            print(f"cards {cards:.2f} s, pictures {pictures:.2f} s, all cards {drawing:.0f} ms")
        browser.close()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--pictures", type=int, default=10_000)
    options = parser.parse_args()
    if not (options.folder / "run" / "run.json").is_file():
        make_run(options.folder, options.pictures)
    started = time.perf_counter()
    server = ReviewServer(options.folder / "run")
    print(f"the server is ready after {time.perf_counter() - started:.1f} s")
    thread = threading.Thread(target=server.serve)
    thread.start()
    try:
        measure_server(server)
        measure_page(server)
    finally:
        server.stop()
        thread.join()


if __name__ == "__main__":
    main()
