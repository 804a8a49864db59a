"""The addresses of the page. Each is thin: it asks the desk, and answers in JSON."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from importlib import resources
from pathlib import Path
from typing import Any

from fastapi import FastAPI, Request
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import FileResponse, JSONResponse, RedirectResponse, Response

from newfound.errors import InputError
from newfound.result.edits.log import ACTIONS, Edit
from newfound.review.applying import Apply
from newfound.review.desk import Desk
from newfound.review.security import HEADERS, MAX_BODY, Guard
from newfound.review.thumbnails import Thumbnails

#: Files of the page, by address: the package that holds them, the file, and its type.
_FILES = {
    "/": ("newfound.review", "page.html", "text/html"),
    "/report.css": ("newfound.report", "style.css", "text/css"),
    "/review.css": ("newfound.review", "review.css", "text/css"),
    **{
        f"/{name}.js": ("newfound.review", f"{name}.js", "text/javascript")
        for name in ("base", "levels", "cards", "queues", "category", "review")
    },
}
#: Files of the run that the page links to. They have a policy of their own.
_PAGES = ("report.html", "changes.html", "edits.csv", "audit.csv")
_CELLS = ("action", "subject", "object", "value", "probability", "note")


def make_app(desk: Desk, guard: Guard, apply: Apply) -> FastAPI:
    """The web application of a run.

    Parameters
    ----------
    desk : Desk
        The run.
    guard : Guard
        Who may ask.
    apply : Apply
        Obeys the edits.
    """
    app = FastAPI(docs_url=None, redoc_url=None, openapi_url=None)
    _add_guard(app, guard)
    _add_files(app, desk.folder)
    _add_reading(app, desk, apply)
    _add_writing(app, desk, apply)
    return app


def _add_guard(app: FastAPI, guard: Guard) -> None:
    @app.middleware("http")
    async def check(request: Request, answer: Callable[[Request], Awaitable[Response]]) -> Response:
        in_address = request.url.path == "/" and guard.knows(request.query_params.get("token"))
        why = guard.refusal(request.method, request.headers, request.cookies, in_address)
        response: Response
        if why is not None:
            response = Response(why, 403, media_type="text/plain")
        elif in_address:
            # The token leaves the address bar, the history and every screenshot at once.
            response = RedirectResponse("/", 303)
            response.set_cookie(guard.cookie, guard.token, httponly=True, samesite="strict")
        else:
            response = await answer(request)
        for name, value in HEADERS.items():
            response.headers.setdefault(name, value)
        return response

    @app.exception_handler(InputError)
    async def refuse(_: Request, error: InputError) -> Response:
        return JSONResponse({"error": str(error)}, 409)


def _add_files(app: FastAPI, folder: Path) -> None:
    def serve(address: str) -> Callable[[], Response]:
        package, name, kind = _FILES[address]
        content = resources.files(package).joinpath(name).read_bytes()
        return lambda: Response(content, media_type=kind)

    for address in _FILES:
        app.get(address)(serve(address))

    @app.get("/favicon.ico")
    def icon() -> Response:
        return Response(status_code=204)

    @app.get("/run/{name}")
    def page(name: str) -> Response:
        # Only these names: nothing that a request says becomes a path.
        if name not in _PAGES or not (folder / name).is_file():
            return Response("There is no such page.", 404, media_type="text/plain")
        policy = "default-src 'none'; img-src data:; style-src 'unsafe-inline'; base-uri 'none'"
        script = "; script-src 'unsafe-inline'" if name == "report.html" else ""
        return FileResponse(folder / name, headers={"Content-Security-Policy": policy + script})


def _add_reading(app: FastAPI, desk: Desk, apply: Apply) -> None:
    thumbnails = Thumbnails()

    @app.get("/api/state")
    def state() -> Response:
        return JSONResponse(desk.view())

    @app.get("/api/version")
    def version() -> Response:
        return JSONResponse({"version": desk.refresh(), "apply": apply.status()})

    @app.get("/api/members")
    def members(name: str, offset: int = 0) -> Response:
        return JSONResponse(desk.members(name, max(0, offset)))

    @app.get("/picture/{size}/{row}")
    def picture(size: str, row: int) -> Response:
        path = desk.path_of(row)
        content = None if path is None else thumbnails.draw(path, size)
        if content is None:
            return Response("There is no such picture.", 404, media_type="text/plain")
        keep = {"Cache-Control": "private, max-age=3600"}
        return Response(content, media_type="image/jpeg", headers=keep)


def _add_writing(app: FastAPI, desk: Desk, apply: Apply) -> None:
    @app.post("/api/edit")
    async def edit(request: Request) -> Response:
        values = await _read_json(request)
        cells = {name: values.get(name, "") for name in _CELLS}
        if not all(isinstance(text, str) for text in cells.values()):
            raise InputError("Every cell of an edit is a text.")
        if cells["action"] not in ACTIONS:
            raise InputError(f"There is no action {cells['action']!r}.")
        written = await run_in_threadpool(desk.add, Edit(**cells))
        return JSONResponse({"id": written.id, "version": desk.version})

    @app.post("/api/undo")
    def undo() -> Response:
        return JSONResponse({"undone": _described(desk.undo()), "version": desk.version})

    @app.post("/api/redo")
    def redo() -> Response:
        return JSONResponse({"redone": _described(desk.redo()), "version": desk.version})

    @app.post("/api/apply")
    def start() -> Response:
        desk.refresh()
        if desk.trouble:
            raise InputError(desk.trouble)
        desk.decisions.check()
        return JSONResponse({"started": apply.start()})


def _described(edit: Edit) -> dict[str, str]:
    return {"action": edit.action, "subject": edit.subject, "object": edit.object}


async def _read_json(request: Request) -> dict[str, Any]:
    """The body of a request, if it is a JSON object of a reasonable size."""
    body = b""
    async for part in request.stream():
        body += part
        if len(body) > MAX_BODY:
            raise InputError(f"The request has more than {MAX_BODY:,} bytes. Do it in parts.")
    try:
        values = json.loads(body)
    except ValueError as error:
        raise InputError(f"The request is no JSON ({error}).") from error
    if not isinstance(values, dict):
        raise InputError("The request must be a JSON object.")
    return values
