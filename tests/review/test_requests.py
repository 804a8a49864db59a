"""Any request at all: the server answers, and the file of edits stays whole.

The schema of the addresses is not served, since only our own page uses them. So requests are made
from what the routes take, and from what they do not.
"""

import json
import shutil
import urllib.parse

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from review_client import Client
from review_server import serving

from newfound.result.edits.log import ACTIONS, EDITS, read_edits

NAMES = ["new-001", "new-002", "class 0", "item 000", "item 001", "item 000\nitem 008", "e1", "7"]
CELLS = ["action", "subject", "object", "value", "probability", "note"]
QUICK = settings(
    max_examples=60,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)

texts = st.one_of(st.sampled_from(NAMES), st.text(max_size=12), st.just("9" * 5000))
values = st.one_of(texts, st.none(), st.integers(), st.lists(texts, max_size=2))
edits = st.fixed_dictionaries(
    {"action": st.one_of(st.sampled_from(sorted(ACTIONS)), texts)},
    optional={name: st.one_of(texts, values) for name in CELLS[1:]},
)
bodies = st.one_of(edits, edits, edits, values, st.dictionaries(texts, values, max_size=2))


@pytest.fixture(scope="module")
def client(blobs_run, tmp_path_factory):
    """A server for all requests of this file."""
    folder = shutil.copytree(blobs_run, tmp_path_factory.mktemp("requests") / "run")
    with serving(folder) as server:
        client = Client(server)
        client.folder = folder
        yield client


@given(body=bodies)
@example(body={"action": "rename", "subject": "new-001", "value": "\ud800"})
@example(body={"action": "rename", "subject": "new-001", "value": "a\x00b"})
@example(body={"action": "rename", "subject": "new-001", "value": "=HYPERLINK(0)\r\n"})
@example(body={"action": "confirm", "subject": "new-001", "note": "\x85\u2028"})
@example(body={"action": "undo", "subject": "e1"})
@example(body={"action": "granularity", "subject": "9" * 5000})
@example(body={"action": "same", "subject": "item 000", "object": "item 001", "probability": "9e"})
@QUICK
def test_an_edit_is_in_the_file_or_nothing_has_changed(client, body):
    path = client.folder / EDITS
    before = path.read_bytes() if path.exists() else b""
    n_before = len(read_edits(client.folder))
    response, content = client.ask("/api/edit", "POST", json.dumps(body), **client.header)
    assert response.status in (200, 409), content
    answer = json.loads(content)
    if response.status == 409:
        assert answer["error"]
        assert (path.read_bytes() if path.exists() else b"") == before
    else:
        found = read_edits(client.folder)
        assert len(found) > n_before
        sent = [body.get(name, "") for name in CELLS[:4]]
        assert [text.strip() for text in found[-1].content] == [text.strip() for text in sent]
    for address in ("/api/state", "/api/version"):
        assert client.ask(address, **client.header)[0].status == 200


@given(body=st.binary(max_size=40), way=st.sampled_from(["edit", "undo", "redo"]))
@QUICK
def test_bytes_that_are_no_json_are_refused(client, body, way):
    response, content = client.ask(f"/api/{way}", "POST", body, **client.header)
    assert response.status in (200, 409), content
    assert read_edits(client.folder) is not None


@given(name=texts, offset=st.one_of(st.integers(), texts), size=texts, row=values)
@QUICK
def test_addresses_take_any_text(client, name, offset, size, row):
    name, offset, size, row = (
        urllib.parse.quote(str(part).encode("utf-8", "surrogatepass"), safe="")
        for part in (name, offset, size, row)
    )
    for address in (
        f"/api/members?name={name}&offset={offset}",
        f"/picture/{size}/{row}",
        f"/run/{name}",
        f"/{name}",
    ):
        status = client.ask(address, **client.header)[0].status
        assert status in (200, 204, 303, 404, 409, 422), address
