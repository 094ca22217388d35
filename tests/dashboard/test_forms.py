"""Forms: CSRF protection and size limits."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import anyio
import httpx2
import pytest
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.types import Message
from tests.cases import each
from tests.conftest import migrated_file
from tests.dashboard.form_helpers import csrf_token_of, submit_form
from tests.dashboard.http_server import PAGE, TOKEN, client_for, create_dashboard

from germane.dashboard.auth.limits import MAX_CONCURRENT, ConcurrencyLimit
from germane.dashboard.web.forms import LoginSession
from germane.insights.context import InsightContext
from germane.storage import TrackingStore
from germane.web_server import WebServer


@pytest.fixture
def store(tmp_path_factory: pytest.TempPathFactory, bare: Path) -> Iterator[TrackingStore]:
    """A migrated, empty SQLite database; these tests do not depend on the type of database."""
    with closing(TrackingStore(f"sqlite:///{migrated_file(tmp_path_factory.getbasetemp())}")) as opened:
        yield opened


def test_a_form_without_a_csrf_token_is_rejected(store: TrackingStore) -> None:
    """Another site can post a form, but cannot read the token in the dashboard's forms."""
    app = create_dashboard(store)
    page = client_for(app)
    seal = csrf_token_of(page, "/written")
    refused = [page.post("/written", data={"a": "1", **given}) for given in ({}, {"csrf": ""}, {"csrf": seal[:-1]})]

    assert [one.status_code for one in refused] == [403, 403, 403]
    assert page.post("/written", data={"csrf": seal}).status_code == 200
    assert len(app.state.written) == 1


def test_a_csrf_token_is_valid_for_one_session(store: TrackingStore) -> None:
    """The token is invalid in another visitor's session and in another process."""
    app = create_dashboard(store)
    mine, other = client_for(app), client_for(app)
    csrf_token_of(other, "/written")

    assert other.post("/written", data={"csrf": csrf_token_of(mine, "/written")}).status_code == 403
    assert mine.post("/written", data={"csrf": csrf_token_of(mine, "/written")}).status_code == 200
    again = client_for(create_dashboard(store))
    again.cookies = mine.cookies
    assert again.post("/written", data={"csrf": csrf_token_of(mine, "/written")}).status_code == 403


def test_a_session_cookie_set_by_another_application_is_rejected(store: TrackingStore) -> None:
    """Another application on this host can set the cookie but cannot compute its CSRF token."""
    page = client_for(create_dashboard(store))
    page.cookies.set("germane_visit", "a" * 32)

    assert page.post("/written", data={"csrf": "a" * 32}).status_code == 403


@each(
    ("headers", "status"),
    [
        ({"Sec-Fetch-Site": "cross-site"}, 403),
        ({"Sec-Fetch-Site": "same-site"}, 403),
        ({"Sec-Fetch-Site": "same-origin", "Origin": "null"}, 200),
        ({"Origin": "https://evil.example"}, 403),
        ({"Origin": "http://127.0.0.1:9999"}, 403),
        ({"Origin": "http://127.0.0.1"}, 200),
        ({"Origin": "null"}, 200),
        ({}, 200),
    ],
)
def test_a_form_from_a_foreign_origin_is_rejected(store: TrackingStore, headers: dict[str, str], status: int) -> None:
    """This applies even with a valid CSRF token. The dashboard's pages send no referrer, so their origin is null."""
    page = client_for(create_dashboard(store))
    seal = csrf_token_of(page, "/written")

    assert page.post("/written", data={"csrf": seal}, headers=headers).status_code == status


def test_a_form_with_a_bearer_token_needs_no_csrf_token(store: TrackingStore) -> None:
    """Other sites cannot make a browser send the header, so requests from programs are accepted."""
    app = create_dashboard(store, token=TOKEN)
    headers = {"Authorization": f"Bearer {TOKEN}"}

    assert client_for(app).post("/written", data={"a": "1"}, headers=headers).status_code == 200
    assert app.state.written == [{"a": "1"}]


@each("length", [True, False])
def test_an_oversized_request_body_is_rejected(store: TrackingStore, length: bool) -> None:
    """The limit is 64 kB, with or without a declared length."""
    app = create_dashboard(store)
    page = client_for(app)
    content = f"csrf={csrf_token_of(page, '/written')}&a={'b' * 70_000}".encode()
    headers = {"Content-Type": "application/x-www-form-urlencoded"}
    sent = page.post(
        "/written", content=content if length else iter([content[:40_000], content[40_000:]]), headers=headers
    )

    assert sent.status_code == 413
    assert app.state.written == []


@each("kind", ["application/json", "multipart/form-data; boundary=x", "text/plain"])
def test_forms_with_an_unsupported_content_type_are_rejected(store: TrackingStore, kind: str) -> None:
    """These are content types that scripts on other sites can send without a preflight request."""
    app = create_dashboard(store)
    sent = client_for(app).post("/written", content=b'{"csrf": "x"}', headers={"Content-Type": kind})

    assert (sent.status_code, app.state.written) == (415, [])


def test_a_form_with_too_many_fields_is_rejected(store: TrackingStore) -> None:
    """The limit of 200 fields is more than any page needs."""
    page = client_for(create_dashboard(store))
    fields = {f"f{number}": "1" for number in range(300)}

    assert page.post("/written", data=fields).status_code == 400


def test_form_input_cannot_inject_headers(store: TrackingStore) -> None:
    """Line breaks in URLs and session cookies cannot end or start a header."""
    page = client_for(create_dashboard(store, token=TOKEN))
    answers = [
        page.get("/a%0d%0aSet-Cookie:%20x=1?b=%0d%0aX-Evil:%201", headers=PAGE),
        page.get("/login?next=/%0d%0aSet-Cookie:%20x=1", headers=PAGE),
        page.get(
            "/written", headers={"Cookie": 'germane_visit="a%0d%0aX-Evil: 1"', "Authorization": f"Bearer {TOKEN}"}
        ),
    ]

    for answer in answers:
        assert "x-evil" not in answer.headers
        assert "x=1" not in answer.headers.get("set-cookie", "")
        assert "\n" not in answer.headers.get("location", "")


def test_only_pages_with_forms_set_a_cookie(store: TrackingStore) -> None:
    """The cookie is hidden from scripts and from other sites."""
    page = client_for(create_dashboard(store))

    assert "set-cookie" not in page.get("/nowhere", headers=PAGE).headers
    given = page.get("/written").headers["set-cookie"]
    assert given.startswith("germane_visit=")
    assert given.endswith("; HttpOnly; Max-Age=604800; Path=/; SameSite=Strict")
    assert "set-cookie" not in page.get("/written").headers


def test_an_internal_error_page_contains_no_details(store: TrackingStore) -> None:
    """The page contains neither the traceback nor the text of the exception."""

    def fails(request: Request, context: InsightContext) -> Response:
        raise ValueError("How do I hide this?")

    page = client_for(create_dashboard(store, fails))
    page._transport.raise_server_exceptions = False  # type: ignore[attr-defined]  # an attribute of the test client
    answer = page.get("/written", headers=PAGE)

    assert answer.status_code == 500
    assert "hide" not in answer.text
    assert "Traceback" not in answer.text
    assert 'href="/"' in answer.text


def test_an_internal_error_is_logged_without_its_message(
    store: TrackingStore, caplog: pytest.LogCaptureFixture
) -> None:
    """The log contains the exception type and the line; the message may contain a user's question."""

    def fails(request: Request, context: InsightContext) -> Response:
        raise ValueError("How do I hide this?")

    server = WebServer(create_dashboard(store, fails), host="127.0.0.1", port=0)
    with server.running():
        answer = httpx2.get(f"{server.address}/written", headers=PAGE)

    assert answer.status_code == 500
    assert re.search(r"request failed: ValueError at test_forms\.py:\d+", caplog.text)
    assert "hide" not in caplog.text
    assert "Traceback" not in caplog.text


def test_form_values_arrive_unchanged(store: TrackingStore) -> None:
    """The helper function submits forms as a browser does."""
    app = create_dashboard(store)

    assert submit_form(client_for(app), "/written", "/written", a="1", b="").status_code == 200
    assert app.state.written == [{"a": "1", "b": ""}]


def test_the_number_of_concurrent_requests_is_limited(store: TrackingStore) -> None:
    """Excess requests wait briefly and are then rejected; later requests succeed."""

    async def crowd() -> list[Any]:
        turns, responses = ConcurrencyLimit(limit=2, max_wait=0.01), list[Any]()
        async with turns.slot(_discard), turns.slot(_discard):
            with pytest.raises(HTTPException) as refused:
                async with turns.slot(_discard):
                    pass
            responses.append((refused.value.status_code, refused.value.headers))
        async with turns.slot(_discard):
            responses.append("room")
        return responses

    assert anyio.run(crowd) == [(503, {"Retry-After": "5"}), "room"]


async def _discard(_: Message) -> None:
    """Send nothing."""


def test_slow_clients_do_not_block_other_clients() -> None:
    """A slot is released while a response is sent, and reacquired before more is rendered."""

    async def crowd() -> list[str]:
        turns, responses, taken = ConcurrencyLimit(limit=1, max_wait=0.01), list[str](), anyio.Event()

        async def slowly(message: Message) -> None:
            await taken.wait()
            responses.append(message["type"])

        async def stream() -> None:
            async with turns.slot(slowly) as submit_form:
                await submit_form({"type": "http.response.start", "status": 200})
                await submit_form({"type": "http.response.body", "body": b"a", "more_body": True})
                responses.append("more is made")
                with pytest.raises(HTTPException):
                    async with turns.slot(_discard):
                        pass
                await submit_form({"type": "http.response.body", "body": b"b"})

        async with anyio.create_task_group() as group:
            group.start_soon(stream)
            await anyio.wait_all_tasks_blocked()
            async with turns.slot(_discard):
                responses.append("another")
            taken.set()
        async with turns.slot(_discard):
            responses.append("room")
        return responses

    body = "http.response.body"
    assert anyio.run(crowd) == ["another", "http.response.start", body, "more is made", body, "room"]


def test_the_repr_of_a_session_contains_no_secrets() -> None:
    """A session contains its cookie and the submitted form fields."""
    assert "secret" not in repr(LoginSession("secret", "secret", {"token": "secret"}))


@pytest.mark.slow
def test_requests_during_an_overload_get_status_503(store: TrackingStore) -> None:
    """While all slots are taken, other pages return 503, and static files are still served."""
    going, inside = threading.Event(), threading.Semaphore(0)

    def slow(request: Request, context: InsightContext) -> Response:
        inside.release()
        going.wait(60)
        return PlainTextResponse("made")

    app = create_dashboard(store, slow)
    with client_for(app) as page:
        threads = [threading.Thread(target=page.get, args=["/written"]) for _ in range(MAX_CONCURRENT)]
        try:
            for thread in threads:
                thread.start()
            assert all(inside.acquire(timeout=60) for _ in threads)
            answer = page.get("/written")
            file, pulse = page.get("/static/style.css"), page.get("/healthz")
        finally:
            going.set()
            for thread in threads:
                thread.join(60)

    assert (answer.status_code, answer.headers["retry-after"]) == (503, "5")
    assert (file.status_code, pulse.status_code) == (200, 200)
