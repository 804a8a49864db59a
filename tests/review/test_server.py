"""Who is answered by the server, and who is not."""

import json
import urllib.parse

import pytest
from review_client import Client
from review_server import serving

from newfound.errors import InputError
from newfound.result.edits.log import read_edits
from newfound.review.security import MAX_BODY, Guard
from newfound.review.server import ReviewServer

CONFIRM = json.dumps({"action": "confirm", "subject": "new-001"})


@pytest.fixture
def client(features_run):
    with serving(features_run) as server:
        yield Client(server)


def test_requests_without_the_token_or_from_elsewhere_are_refused(client, features_run):
    good = {"X_Newfound_Token": client.token}
    bad = [
        {},
        {"X_Newfound_Token": "guess"},
        {"Cookie": f"newfound_{client.port}=guess"},
        {"Cookie": f"newfound_1={client.token}"},
        {**good, "Host": f"evil.example:{client.port}"},
        {**good, "Host": "127.0.0.1:1"},
        {**good, "Origin": "https://evil.example"},
        {**good, "Origin": "null"},
        {**good, "Origin": f"https://127.0.0.1:{client.port}"},
        {**good, "Sec_Fetch_Site": "cross-site"},
        {**good, "Content_Type": "text/plain"},
    ]
    for headers in bad:
        response, _ = client.ask("/api/edit", "POST", CONFIRM, **headers)
        assert response.status == 403, headers
    assert read_edits(features_run) == []
    for path in ("/", "/review.js", "/api/state", "/api/version", "/picture/small/0", "/nothing"):
        assert client.ask(path)[0].status == 403, path
    origin = f"http://localhost:{client.port}"
    response, _ = client.ask("/api/edit", "POST", CONFIRM, **good, Origin=origin)
    assert response.status == 200
    assert [edit.action for edit in read_edits(features_run)] == ["confirm"]


def test_the_printed_address_gives_a_cookie_and_hides_the_token(client):
    response, _ = client.ask(f"/?{client.query}")
    assert (response.status, response.headers["Location"]) == (303, "/")
    cookie = response.headers["Set-Cookie"]
    assert "HttpOnly" in cookie
    assert "samesite=strict" in cookie.lower()
    response, content = client.ask("/", Cookie=cookie.split(";")[0])
    assert response.status == 200
    assert "script-src 'self'" in response.headers["Content-Security-Policy"]
    assert "unsafe" not in response.headers["Content-Security-Policy"]
    assert client.token.encode() not in content
    assert client.ask("/api/state?token=" + client.token)[0].status == 403


@pytest.mark.parametrize(
    "path",
    [
        *["/run/run.json", "/run/..%2fsecret", "/run/%2e%2e/edits.csv", "/run/model/features.npy"],
        *["/picture/small/0", "/picture/huge/0", "/picture/small/..", "/picture/small/-1"],
    ],
)
def test_no_other_file_is_served(client, features_run, path):
    (features_run.parent / "secret").write_text("secret")
    response, content = client.ask(path, **{"X_Newfound_Token": client.token})
    assert response.status in (404, 422)
    assert b"secret" not in content


def test_a_large_body_is_refused_before_it_is_read(client):
    body = json.dumps({"action": "confirm", "subject": "x" * MAX_BODY})
    response, content = client.ask("/api/edit", "POST", body, X_Newfound_Token=client.token)
    assert response.status == 409
    assert b"bytes" in content
    for bad in ("no json", "[1]"):
        response, _ = client.ask("/api/edit", "POST", bad, X_Newfound_Token=client.token)
        assert response.status == 409


def test_the_token_is_random_and_not_shown_by_accident():
    one, other = Guard(1), Guard(1)
    assert one.token != other.token
    assert one.token not in repr(one)
    assert len(one.token) >= 32


def test_what_cannot_be_served_is_told(features_run, tmp_path):
    with pytest.raises(InputError, match="no run folder"):
        ReviewServer(tmp_path / "nothing")
    with serving(features_run) as server:
        port = urllib.parse.urlsplit(server.address).port
        with pytest.raises(InputError, match=f"Port {port} cannot be used"):
            ReviewServer(features_run, port)
