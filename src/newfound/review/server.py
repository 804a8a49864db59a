"""The server of the page: on this machine only, until Ctrl-C."""

from __future__ import annotations

import contextlib
import socket
import threading
import webbrowser
from pathlib import Path

from newfound.errors import InputError, require
from newfound.review.applying import Apply
from newfound.review.desk import Desk
from newfound.review.security import Guard


class ReviewServer:
    """The review page of one run.

    Parameters
    ----------
    run : path
        The run folder.
    port : int, default=0
        Port on the loopback interface; 0 takes a free one.

    Raises
    ------
    InputError
        If there is no run, or the port is taken.
    """

    def __init__(self, run: Path | str, port: int = 0) -> None:
        require("fastapi", "review")
        uvicorn = require("uvicorn", "review")
        # FastAPI is not needed anywhere else, and may not be installed.
        from newfound.review.routes import make_app

        self.apply = Apply(Path(run))
        self.desk = Desk(Path(run))
        self._listener = _listen(port)
        guard = Guard(self._listener.getsockname()[1])
        #: The address to open, with the token.
        self.address = guard.address
        config = uvicorn.Config(
            make_app(self.desk, guard, self.apply),
            log_level="warning",
            access_log=False,
            server_header=False,
            ws="none",
            timeout_graceful_shutdown=1,  # an open tab does not keep the server from stopping
        )
        self._server = uvicorn.Server(config)

    def serve(self) -> None:
        """Answer requests until the process is interrupted or `stop` is called."""
        with self._listener:
            self._server.run(sockets=[self._listener])
        self.apply.wait()

    def stop(self) -> None:
        """Let `serve` return."""
        self._server.should_exit = True


def review(run: Path | str, *, port: int = 0, open_browser: bool = True) -> None:
    """Serve the review page of a run, and return when it is stopped.

    Parameters
    ----------
    run : path
        The run folder.
    port : int, default=0
        As for `ReviewServer`.
    open_browser : bool, default=True
        Open the address in a browser; it is printed in any case.
    """
    server = ReviewServer(run, port)
    # The usual way to stop it, before which uvicorn may or may not have stopped by itself.
    with contextlib.suppress(KeyboardInterrupt):
        print(f"Review of {run}: {server.address}", flush=True)
        print("Every decision is saved at once. Stop with Ctrl-C.", flush=True)
        if open_browser:
            threading.Timer(0.5, webbrowser.open, [server.address]).start()
        server.serve()
    n_open = server.desk.view()["n_pending"]
    todo = (
        f"To obey what you decided: newfound update {run}" if n_open else "Nothing is left to do."
    )
    print(f"Stopped. {todo}", flush=True)


def _listen(port: int) -> socket.socket:
    listener = socket.socket()
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind(("127.0.0.1", port))
        listener.listen(128)  # a browser that is quicker than the server waits
    except (OSError, OverflowError) as error:
        listener.close()
        raise InputError(
            f"Port {port} cannot be used ({error}). Leave --port out to take a free one."
        ) from error
    return listener
