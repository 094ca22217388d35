"""Streaming handlers behind Flask."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from typing import Any

import flask
import pytest

import germane

EVENTS = ['data: {"delta": "Hel"}\n\n', 'data: {"delta": "lo!"}\n\n', "data: [DONE]\n\n"]


def client_of(respond: Callable[[], Any], **options: Any) -> Any:
    """Return a client for an application whose only handler returns this value."""
    app = flask.Flask(__name__)

    @app.get("/")
    @germane.observe(route="ask", question=lambda: flask.request.args["q"], **options)
    def ask() -> Any:
        return respond()

    return app.test_client()


def pieces() -> Iterator[str]:
    yield from ("Hel", "lo", "!")


@pytest.mark.parametrize("body", [pieces, lambda: iter(["Hel", "lo!"]), lambda: flask.stream_with_context(pieces())])
def test_the_body_of_a_streaming_flask_response_is_captured(traced: Any, body: Callable[[], Any]) -> None:
    """The client and the exchange both get the complete body."""
    assert client_of(lambda: flask.Response(body())).get("/?q=Why").text == "Hello!"
    assert (traced.exchange.question, traced.exchange.answer, traced.exchange.status) == ("Why", "Hello!", "ok")


def test_server_sent_events_of_a_flask_response_are_parsed(traced: Any) -> None:
    """As with Starlette, the answer is the text of the events."""
    respond = client_of(lambda: flask.Response(iter(EVENTS), mimetype="text/event-stream"), chunk="delta")

    assert respond.get("/?q=Why").text == "".join(EVENTS)
    assert traced.exchange.answer == "Hello!"


def test_a_client_disconnect_gives_the_exchange_the_status_abandoned(traced: Any) -> None:
    """The server closes the response and the handler's generator."""
    closed = []

    def endless() -> Iterator[str]:
        try:
            while True:
                yield "Hel"
        finally:
            closed.append(True)

    response = client_of(lambda: flask.Response(endless())).get("/?q=Why", buffered=False)
    next(response.iter_encoded())
    response.close()

    assert closed == [True]
    assert (traced.exchange.answer, traced.exchange.status) == ("Hel", "abandoned")


def test_a_selector_reads_a_flask_response_that_is_not_streamed(traced: Any) -> None:
    """``answer=`` finds the text in the response object."""
    assert client_of(lambda: flask.jsonify(text="Hello!"), answer="json.text").get("/?q=Why").json == {"text": "Hello!"}
    assert traced.exchange.answer == "Hello!"


def test_a_file_response_is_not_changed(traced: Any) -> None:
    """Servers send files without reading them in Python."""
    with client_of(lambda: flask.send_file(io.BytesIO(b"Hello!"), mimetype="text/plain")).get("/?q=Why") as response:
        assert response.text == "Hello!"

    assert (traced.exchange.answer, traced.exchange.status) == (None, "ok")
