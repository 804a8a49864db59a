"""The server of the page: on this machine only, until Ctrl-C."""

from __future__ import annotations

import socket
import threading
import webbrowser
from pathlib import Path

from newfound.errors import InputError, require
from newfound.review.applying import Apply
from newfound.review.desk import Desk
from newfound.review.security import Guard


def review(run: Path | str, *, port: int = 0, open_browser: bool = True) -> None:
    """Serve the review page of a run, and return when it is stopped.

    Parameters
    ----------
    run : path
        The run folder.
    port : int, default=0
        Port on the loopback interface; 0 takes a free one.
    open_browser : bool, default=True
        Open the address in a browser; it is printed in any case.

    Raises
    ------
    InputError
        If there is no run, or the port is taken.
    """
    require("fastapi", "review")
    uvicorn = require("uvicorn", "review")
    # FastAPI is not needed anywhere else, and may not be installed.
    from newfound.review.routes import make_app

    desk, apply = Desk(Path(run)), Apply(Path(run))
    with _listen(port) as listener:
        guard = Guard(listener.getsockname()[1])
        app = make_app(desk, guard, apply)
        config = uvicorn.Config(
            app, log_level="warning", access_log=False, server_header=False, ws="none"
        )
        print(f"Review of {run}: {guard.address}", flush=True)
        print("Every decision is saved at once. Stop with Ctrl-C.", flush=True)
        if open_browser:
            threading.Timer(0.5, webbrowser.open, [guard.address]).start()
        uvicorn.Server(config).run(sockets=[listener])
        apply.wait()


def _listen(port: int) -> socket.socket:
    listener = socket.socket()
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind(("127.0.0.1", port))
    except (OSError, OverflowError) as error:
        listener.close()
        raise InputError(
            f"Port {port} cannot be used ({error}). Leave --port out to take a free one."
        ) from error
    return listener
