"""A server of the review page in a thread, and a label that would like to run."""

import threading
from contextlib import contextmanager

from newfound.review.server import ReviewServer

HOSTILE = """<img src=x onerror="document.title='owned'">"""


@contextmanager
def serving(folder):
    server = ReviewServer(folder)
    thread = threading.Thread(target=server.serve)
    thread.start()
    try:
        yield server
    finally:
        server.stop()
        thread.join()
