"""The HTTP judge: each kind of failure has a reason and a number of requests, and never produces a value."""

from __future__ import annotations

import asyncio
import base64
import gc
import json
import logging
import socket
import tempfile
import tracemalloc
from collections.abc import Awaitable, Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import httpx2
import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from tests.cases import each

from germane.errors import ScoringError, SettingsError
from germane.exchange import Message
from germane.score import UnscoredReason
from germane.scorers import Reply, Vectors
from germane.scorers.judge import http_client
from germane.scorers.judge.client import ModelServer, NoModelReply, _parse_reply
from germane.scorers.judge.embedders import OpenAIEmbedder, decode_vector
from germane.scorers.judge.openai_judge import OpenAIJudge
from germane.scorers.judge.openai_protocol import parse_reply
from germane.settings import load_settings
from germane.testing import FakeJudge, Fault

TURNS = [Message("system", "You write questions."), Message("user", "The ferry leaves from pier four.")]
KEY = "sk-very-secret-1234567890"


def with_judge(fake: FakeJudge, use: Callable[[OpenAIJudge], Awaitable[Any]], **server: Any) -> Any:
    """Return the result of using a judge, which is closed afterwards."""

    async def use_and_close() -> Any:
        judge = OpenAIJudge("fake-judge", ModelServer(**{"api_key": "test", "base_url": fake.base_url} | server))
        try:
            return await use(judge)
        finally:
            await judge.aclose()

    return asyncio.run(use_and_close())


def failure(fake: FakeJudge, **server: Any) -> ScoringError:
    """Return the error raised by a request."""
    with pytest.raises(ScoringError) as caught:
        with_judge(fake, lambda judge: judge.ask(TURNS), **server)
    return caught.value


FAILURES = {
    "server error, twice": (Fault("status", status=503), UnscoredReason.JUDGE_UNREACHABLE, 2),
    "bad gateway": (Fault("status", status=502), UnscoredReason.JUDGE_UNREACHABLE, 2),
    "busy": (Fault("status", status=429), UnscoredReason.JUDGE_RATE_LIMITED, 2),
    "busy for long": (Fault("status", status=429, retry_after=30), UnscoredReason.JUDGE_RATE_LIMITED, 1),
    "quota used up": (
        Fault("status", status=429, code="insufficient_quota", retry_after=9),
        UnscoredReason.JUDGE_REJECTED,
        1,
    ),
    "wrong key": (Fault("status", status=401, code="invalid_api_key"), UnscoredReason.JUDGE_REJECTED, 1),
    "forbidden": (Fault("status", status=403), UnscoredReason.JUDGE_REJECTED, 1),
    "no such model": (Fault("status", status=404, code="model_not_found"), UnscoredReason.JUDGE_REJECTED, 1),
    "bad request": (Fault("status", status=400), UnscoredReason.JUDGE_REJECTED, 1),
    "an invalid code": (Fault("status", status=400, code={"a": [1]}), UnscoredReason.JUDGE_REJECTED, 1),  # type: ignore[arg-type]  # on purpose
    "too large": (Fault("status", status=413), UnscoredReason.JUDGE_REFUSED, 1),
    "too long": (Fault("status", status=400, code="context_length_exceeded"), UnscoredReason.JUDGE_REFUSED, 1),
    "no room for its thoughts": (
        Fault("status", status=400, message="Could not finish: max_tokens or model output limit was reached."),
        UnscoredReason.UNPARSABLE,
        1,
    ),
    "filtered": (Fault("status", status=400, code="content_filter"), UnscoredReason.JUDGE_REFUSED, 1),
    "slow, by its own account": (Fault("status", status=408), UnscoredReason.JUDGE_TIMEOUT, 2),
    "reset": (Fault("reset"), UnscoredReason.JUDGE_UNREACHABLE, 2),
    "half a body": (Fault("truncated"), UnscoredReason.JUDGE_UNREACHABLE, 2),
    "a web page": (Fault("garbage"), UnscoredReason.JUDGE_UNREACHABLE, 2),
    "no JSON": (Fault("not_json"), UnscoredReason.JUDGE_UNREACHABLE, 2),
    "an empty body": (Fault("empty_body"), UnscoredReason.JUDGE_UNREACHABLE, 2),
    "an error with HTTP 200": (Fault("error_body"), UnscoredReason.JUDGE_UNREACHABLE, 2),
    "busy with HTTP 200": (Fault("error_body", code="429"), UnscoredReason.JUDGE_RATE_LIMITED, 2),
    "a wrong key with HTTP 200": (Fault("error_body", code="401"), UnscoredReason.JUDGE_REJECTED, 1),
    "filtered with HTTP 200": (Fault("error_body", code="content_filter"), UnscoredReason.JUDGE_REFUSED, 1),
    "a redirect loop": (Fault("redirect"), UnscoredReason.JUDGE_UNREACHABLE, 3),
    "an endless body": (Fault("endless"), UnscoredReason.UNPARSABLE, 1),
    "a small body of 100 MB": (Fault("compressed"), UnscoredReason.UNPARSABLE, 1),
    "no choices": (Fault("no_choices"), UnscoredReason.UNPARSABLE, 1),
    "empty contents": (Fault("empty"), UnscoredReason.UNPARSABLE, 1),
    "thoughts only": (Fault("thinking"), UnscoredReason.UNPARSABLE, 1),
    "refusal": (Fault("refusal"), UnscoredReason.JUDGE_REFUSED, 1),
    "filtered reply": (Fault("content_filter"), UnscoredReason.JUDGE_REFUSED, 1),
}


@pytest.mark.slow
@pytest.mark.parametrize(("fault", "reason", "requests"), FAILURES.values(), ids=FAILURES.keys())
def test_each_kind_of_judge_failure_has_its_own_reason(
    fake: FakeJudge, fault: Fault, reason: UnscoredReason, requests: int
) -> None:
    """A request is not repeated if that cannot help."""
    fake.outage = fault

    assert failure(fake).reason is reason
    assert len(fake.chat_requests) == requests


def test_reply_text_is_joined_from_its_text_parts() -> None:
    """Some servers send a list. Only its parts with the type `text` belong to the reply."""
    parts = [SimpleNamespace(type="thinking", text="2"), *(SimpleNamespace(type="text", text=text) for text in "4.")]

    reply = parse_reply(SimpleNamespace(choices=[SimpleNamespace(message=SimpleNamespace(content=parts))]))

    assert reply.texts == ("4.",)


@each(
    ("reason", "expected"),
    [
        *((reason, "4") for reason in (None, "", "stop", "STOP", "eos", "end_turn", "stop_sequence")),
        *((reason, "cut off") for reason in ("length", "LENGTH", "max_tokens", "MAX_TOKENS", "model_length")),
        *((reason, "cut off") for reason in ("max_output_tokens", "token_max")),
        *((reason, "judge_refused") for reason in ("content_filter", "SAFETY", "RECITATION", "refusal", "BLOCKLIST")),
        *((reason, "judge_unreachable") for reason in ("error", "ERROR", "abort", "cancelled", "OTHER", 7)),
    ],
)
def test_the_finish_reason_determines_whether_text_counts_as_a_reply(reason: Any, expected: str) -> None:
    """Servers spell finish reasons differently. A text that the server did not finish is not a judgment."""
    choice = SimpleNamespace(message=SimpleNamespace(content="4"), finish_reason=reason)
    completion = SimpleNamespace(choices=[choice])
    if expected.startswith("judge_"):
        with pytest.raises(ScoringError) as caught:
            parse_reply(completion)
        assert caught.value.reason.value == expected
    else:
        reply = parse_reply(completion)
        assert ("cut off" if reply.cut_off else reply.texts[0]) == expected


@each(
    ("error", "reason"),
    [
        ({"code": 502, "message": "upstream failed"}, UnscoredReason.JUDGE_UNREACHABLE),
        ({"code": 429, "message": "slow down"}, UnscoredReason.JUDGE_RATE_LIMITED),
        ({"code": "content_filter"}, UnscoredReason.JUDGE_REFUSED),
        ("overloaded", UnscoredReason.JUDGE_UNREACHABLE),
    ],
)
@each("part", ["choices", "data"])
@each("place", ["body", "part"])
def test_a_reply_with_an_error_field_is_an_error(error: Any, reason: UnscoredReason, part: str, place: str) -> None:
    """Gateways add an error to the choices or vectors that they received before the failure."""
    item = {"message": {"content": "4"}, **({"error": error} if place == "part" else {})}
    body = {part: [item], **({"error": error} if place == "body" else {"error": None})}

    with pytest.raises(NoModelReply) as caught:
        _parse_reply(json.dumps(body).encode())

    assert caught.value.reason is reason


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["hang", "drip"])
def test_requests_end_at_a_deadline_if_the_response_is_missing_or_slow(fake: FakeJudge, kind: Any) -> None:
    """Occasional bytes do not extend a request, and a timed-out request is not repeated."""
    fake.outage = Fault(kind)

    error = failure(fake, timeout=2.0)

    assert error.reason is UnscoredReason.JUDGE_TIMEOUT
    assert len(fake.chat_requests) == 1


@pytest.mark.parametrize("reason", [UnscoredReason.JUDGE_RATE_LIMITED, UnscoredReason.JUDGE_UNREACHABLE])
def test_the_retry_delay_that_the_server_requests_is_part_of_the_error(fake: FakeJudge, reason: UnscoredReason) -> None:
    """The request fails immediately, and the caller waits."""
    fake.outage = Fault("status", status=429 if reason is UnscoredReason.JUDGE_RATE_LIMITED else 503, retry_after=600)

    error = failure(fake)  # a request that waits would exceed pytest's time limit

    assert (error.reason, error.retry_after) == (reason, 600)
    assert len(fake.chat_requests) == 1


ENVIRONMENT = {
    "a SOCKS proxy": ("ALL_PROXY", "socks5://127.0.0.1:1", "the SOCKS proxy in ALL_PROXY needs"),
    "an unclosed address": ("http_proxy", "http://[::1", "http_proxy is not the URL of a proxy"),
    "an unknown scheme": ("HTTPS_PROXY", "foo://x:secret@y", "HTTPS_PROXY is not the URL of a proxy"),
    "no URL": ("https_proxy", "::::", "https_proxy is not the URL of a proxy"),
    "a port that is no number": ("HTTP_PROXY", "http://user:secret@host:port", "HTTP_PROXY is not the URL of a proxy"),
    "a port out of range": ("http_proxy", "127.0.0.1:99999", "http_proxy is not the URL of a proxy"),
    "a negative port": ("ALL_PROXY", "http://user:secret@127.0.0.1:-1", "ALL_PROXY is not the URL of a proxy"),
    "a missing file": ("SSL_CERT_FILE", "/missing", "the file in SSL_CERT_FILE cannot be used"),
    "a directory as a file": ("SSL_CERT_FILE", tempfile.gettempdir(), "the file in SSL_CERT_FILE cannot be used"),
    "a log that cannot be written": ("SSLKEYLOGFILE", "/missing/log", "the file in SSLKEYLOGFILE cannot be used"),
}


@pytest.mark.parametrize(("name", "value", "message"), ENVIRONMENT.values(), ids=ENVIRONMENT.keys())
def test_an_invalid_environment_variable_fails_requests_but_not_startup(
    fake: FakeJudge, monkeypatch: pytest.MonkeyPatch, name: str, value: str, message: str
) -> None:
    """The judge can be created. Its error names the variable without the value, and it works after a correction."""
    if name == "SSL_CERT_FILE" and http_client.http_library().__name__ == "httpx":
        pytest.skip("httpx ignores missing certificate files")
    http_client._certificates.cache_clear()

    async def ask_before_and_after() -> tuple[ScoringError, Reply]:
        with monkeypatch.context() as environment:
            environment.setenv(name, value)
            judge = OpenAIJudge("fake-judge", ModelServer(api_key="test", base_url=fake.base_url))
            with pytest.raises(ScoringError, match=message) as caught:
                await judge.ask(TURNS)
        try:
            return caught.value, await judge.ask(TURNS)
        finally:
            await judge.aclose()

    error, reply = asyncio.run(ask_before_and_after())

    assert error.reason is UnscoredReason.JUDGE_UNREACHABLE
    assert "secret" not in str(error)
    assert reply.texts


@pytest.mark.parametrize("proxy", ["HTTP_PROXY", "all_proxy", None])
def test_a_connection_error_names_the_address_and_the_proxy(monkeypatch: pytest.MonkeyPatch, proxy: str | None) -> None:
    """The error omits the user, password and path of the URL."""
    address, nowhere = "http://judge.invalid", "127.0.0.1:1"  # nothing listens on port 1
    if proxy is None:
        address = f"http://{nowhere}"
    else:
        monkeypatch.setenv(proxy, f"http://user:secret@{nowhere}")

    async def ask() -> ScoringError:
        url = address.replace("//", "//user:secret@") + "/secret/v1"
        judge = OpenAIJudge("fake-judge", ModelServer(api_key="test", base_url=url))
        with pytest.raises(ScoringError, match="no connection") as caught:
            await judge.ask(TURNS)
        await judge.aclose()
        return caught.value

    error = asyncio.run(ask())

    assert address in str(error)
    assert "secret" not in str(error)
    assert (proxy in str(error) and proxy in error.fix) if proxy else error.fix is None


@pytest.mark.slow
def test_an_endless_reply_is_read_with_little_memory(fake: FakeJudge) -> None:
    """The client stops reading at the limit."""
    fake.outage = Fault("endless")
    failure(fake)
    tracemalloc.start()
    try:
        failure(fake)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()

    assert peak < 10 * http_client.MAX_REPLY_BYTES


def test_the_retry_after_header_can_be_a_date(fake: FakeJudge) -> None:
    """The date is compared with the server's own clock."""
    fake.outage = Fault("status", status=429, retry_after="Sun, 06 Nov 2094 08:49:37 GMT")

    assert failure(fake).retry_after == 86_400


@pytest.mark.parametrize(
    ("header", "pause"), [("soon", None), ("-3", 0), ("nan", 0), ("1e400", 86_400), ("99999999", 86_400)]
)
def test_an_invalid_retry_delay_is_ignored(fake: FakeJudge, header: str, pause: float | None) -> None:
    """Valid delays are limited to one day."""
    fake.outage = Fault("status", status=429, retry_after=header)

    assert failure(fake, retries=0).retry_after == pause


def test_a_temporary_failure_is_retried_once(fake: FakeJudge) -> None:
    """The judge returns the reply to the second request."""
    fake.faults.append(Fault("reset"))

    reply = with_judge(fake, lambda judge: judge.ask(TURNS))

    assert reply.texts
    assert len(fake.chat_requests) == 2


def test_a_refused_connection_is_reported_as_unreachable() -> None:
    """Nothing listens on the port."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]

    async def ask() -> None:
        judge = OpenAIJudge("m", ModelServer(base_url=f"http://127.0.0.1:{port}/v1", retries=0))
        try:
            await judge.ask(TURNS)
        finally:
            await judge.aclose()

    with pytest.raises(ScoringError) as caught:
        asyncio.run(ask())
    assert caught.value.reason is UnscoredReason.JUDGE_UNREACHABLE


@each("address", ["http://host:secret/v1", "http://[secret/v1"])
def test_an_invalid_judge_url_is_a_settings_error(address: str) -> None:
    """The error is raised at startup. The message does not repeat the URL, which can contain a secret."""
    with pytest.raises(SettingsError, match=r"^setting base_url: invalid URL$"):
        OpenAIJudge("m", ModelServer(base_url=address))


def test_the_judge_key_is_sent_but_never_shown(fake: FakeJudge) -> None:
    """No message or repr contains the key, even if the server echoes it."""
    fake.outage = Fault("status", status=401, message=f"Incorrect API key provided: {KEY}. Or sk-ab***************xyz.")

    error = failure(fake, api_key=KEY)

    assert fake.chat_requests[0].headers["authorization"] == f"Bearer {KEY}"
    assert "secret" not in str(error)
    assert "sk-" not in str(error)
    server = ModelServer(api_key=KEY, base_url=f"https://user:{KEY}@host/v1")
    assert "secret" not in repr(server) + repr(OpenAIJudge("m", server)) + repr(OpenAIEmbedder("m", server))


def test_a_judge_url_that_contains_a_secret_is_never_shown(fake: FakeJudge) -> None:
    """Proxies tend to echo unknown paths."""
    fake.outage = Fault("status", status=404, message="Cannot POST /token-12345/v1/chat/completions as joe:hunter22")
    address = fake.base_url.replace("http://", "http://joe:hunter22@").replace("/v1", "/token-12345/v1")

    error = failure(fake, base_url=address)

    assert fake.chat_requests[0].path.startswith("/token-12345/")
    root = fake.base_url.removesuffix("/v1")
    asked = f"{root}/[hidden]/v1/chat/completions"
    assert str(error) == f"HTTP 404: Cannot POST /[hidden]/v1/chat/completions as joe:[hidden] ({asked})"


def test_a_judge_url_can_have_a_query_string(fake: FakeJudge) -> None:
    """Gateways expect a version or a key in the query, which is sent after the path of each request and never shown."""
    address = f"{fake.base_url}?version=2024-06-01&key=abc-{KEY}"

    reply = with_judge(fake, lambda judge: judge.ask(TURNS), base_url=address)
    fake.outage = Fault("status", status=401, message=f"abc-{KEY} is no key")
    error = failure(fake, base_url=address)

    assert reply.texts[0]
    assert [request.query for request in fake.chat_requests] == [f"version=2024-06-01&key=abc-{KEY}"] * 2
    assert str(error) == f"HTTP 401: [hidden] is no key ({fake.base_url}/chat/completions)"


def test_a_placeholder_key_is_sent_if_no_key_is_configured(fake: FakeJudge) -> None:
    """The client requires a key, but self-hosted servers do not."""
    reply = with_judge(fake, lambda judge: judge.ask(TURNS), api_key=None)

    assert reply.texts
    assert fake.chat_requests[0].headers["authorization"] == "Bearer none"


def test_no_request_is_marked_as_a_repetition(fake: FakeJudge) -> None:
    """Requests have the headers of the first one, except for a key by which a server would repeat its reply."""
    client = ModelServer(api_key="test", base_url=fake.base_url).connect()
    client._idempotency_header = "Idempotency-Key"

    async def post_twice() -> None:
        for text in ("one", "two"):
            await client.post("/chat/completions", body={"messages": [{"content": text}]}, cast_to=object)
        await client.close()

    asyncio.run(post_twice())

    first, second = ({**request.headers, "content-length": ""} for request in fake.chat_requests)
    assert first == second
    assert first["accept-encoding"] == "identity"
    assert not [name for name in first if "idempotency" in name or "stainless" in name]
    assert [request.body["messages"][0]["content"] for request in fake.chat_requests] == ["one", "two"]


def test_judge_requests_are_not_logged_by_the_http_client(fake: FakeJudge, caplog: pytest.LogCaptureFixture) -> None:
    """Log lines would reveal the URL, which can be secret. The application's own requests are still logged."""
    fake.faults.append(Fault("status", status=503))
    with caplog.at_level(logging.INFO):
        with_judge(fake, lambda judge: judge.ask(TURNS))
        ours = list(caplog.records)
        httpx2.get(f"{fake.base_url}/models")

    assert ours == []
    assert [record.name for record in caplog.records] == ["httpx2"]


def test_a_long_error_page_is_truncated(fake: FakeJudge) -> None:
    """The message contains the beginning of the server's response."""
    fake.outage = Fault("status", status=403, message="no " * 5_000)

    assert len(str(failure(fake))) < 400


def test_only_the_beginning_of_an_endless_reply_is_read(fake: FakeJudge) -> None:
    """No request needs such a long reply."""
    fake.replies = lambda request: "What is it? " * 50_000

    reply = with_judge(fake, lambda judge: judge.ask(TURNS))

    assert len(reply.texts[0]) == 100_000
    assert reply.texts[0].startswith("What is it? What is it?")


@pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning")  # connections of a closed loop cannot be closed
def test_judge_and_embedder_work_on_successive_event_loops(fake: FakeJudge) -> None:
    """Notebooks do this. Connections of a closed loop are not reused, and closing them raises no error."""
    server = ModelServer(api_key="test", base_url=fake.base_url, retries=0)
    judge, embedder = OpenAIJudge("fake-judge", server), OpenAIEmbedder("fake-embedder", server)

    async def use() -> tuple[int, int]:
        replies = await asyncio.gather(*(judge.ask(TURNS) for _ in range(8)))
        return len(replies), len(await embedder.embed(["one", "two"]))

    async def close() -> None:
        await judge.aclose()
        await embedder.aclose()

    assert [asyncio.run(use()) for _ in range(3)] == [(8, 2)] * 3
    asyncio.run(close())
    gc.collect()


def test_a_reply_contains_its_choices_token_counts_and_model(fake: FakeJudge) -> None:
    """All of them come from a single request."""
    reply = with_judge(fake, lambda judge: judge.ask(TURNS, n=3))

    assert len(reply.texts) == 3
    assert reply.input_tokens == 9
    assert reply.output_tokens == sum(len(text.split()) for text in reply.texts)
    assert reply.model == "fake-judge"


REFUSALS = {
    "max_tokens": "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens'.",
    "temperature": "Unsupported value: 'temperature' does not support 0.7 with this model.",
    "stop": "'stop' is not supported with this model.",
    "n": "n must be 1",
}


@pytest.mark.parametrize(("option", "message"), REFUSALS.items())
def test_an_option_rejected_by_the_server_is_not_sent_again(fake: FakeJudge, option: str, message: str) -> None:
    """Models differ in the options that they support."""
    fake.faults.append(Fault("status", status=400, message=message))

    async def ask_twice(judge: OpenAIJudge) -> None:
        for _ in range(2):
            await judge.ask(TURNS, n=2, temperature=0.7, stop=["\n"])

    with_judge(fake, ask_twice)

    assert [option in request.body for request in fake.chat_requests] == [True, False, False]
    assert all("max_completion_tokens" in chat.body for chat in fake.chat_requests[1:]) is (option == "max_tokens")


def test_an_option_that_did_not_cause_a_rejection_is_still_sent(fake: FakeJudge) -> None:
    """A request rejected for a different reason is repeated once without each option, with no lasting effect."""
    schema: dict[str, Any] = {"type": "object"}
    fake.faults.extend([Fault("status", status=400)] * 3)

    async def fail_then_ask(judge: OpenAIJudge) -> None:
        with pytest.raises(ScoringError):
            await judge.ask(TURNS, n=2, schema=schema)
        await judge.ask(TURNS, n=2, schema=schema)
        fake.faults.append(Fault("status", status=400))
        with pytest.raises(ScoringError):
            await judge.ask(TURNS, n=2, schema=schema)

    with_judge(fake, fail_then_ask)

    sent = [("response_format" in chat.body, "n" in chat.body) for chat in fake.chat_requests]
    assert sent == [(True, True), (False, True), (False, False), (True, True), (True, True)]


# The embedder


def embed(fake: FakeJudge, *texts: str, **server: Any) -> Vectors:
    """Return the vectors of texts."""

    async def use_and_close() -> Vectors:
        embedder = OpenAIEmbedder("fake-embedder", ModelServer(api_key="test", base_url=fake.base_url, **server))
        try:
            return await embedder.embed(texts)
        finally:
            await embedder.aclose()

    return asyncio.run(use_and_close())


def test_vectors_are_normalized_and_returned_in_the_order_of_the_texts(fake: FakeJudge) -> None:
    """One request returns the vectors of all texts."""
    fake.vectors = {"a": [3.0, 4.0], "b": [0.0, 0.5]}

    rows = embed(fake, "a", "b")

    assert rows.tolist() == [[0.6, 0.8], [0.0, 1.0]]
    assert len(fake.embedding_requests) == 1


def embed_twice(fake: FakeJudge) -> tuple[Vectors, list[str]]:
    """Return the result of the second of two requests, and the requested encodings."""

    async def use_and_close() -> Vectors:
        embedder = OpenAIEmbedder("fake-embedder", ModelServer(api_key="test", base_url=fake.base_url))
        try:
            await embedder.embed(["a"])
            return await embedder.embed(["b"])
        finally:
            await embedder.aclose()

    rows = asyncio.run(use_and_close())
    return rows, [request.body["encoding_format"] for request in fake.embedding_requests]


def test_base64_vectors_are_decoded(fake: FakeJudge) -> None:
    """Base64 vectors contain 32-bit floats."""
    fake.encoding_format = "supported"
    fake.vectors = {"a": [1.0, 0.0], "b": [3.0, -4.0]}

    rows, asked = embed_twice(fake)

    assert rows == pytest.approx(np.array([[0.6, -0.8]]), abs=1e-6)
    assert asked == ["base64", "base64"]


def test_vectors_are_requested_as_numbers_if_the_server_lacks_base64_support(fake: FakeJudge) -> None:
    """All later requests ask for numbers."""
    fake.encoding_format = "rejected"
    fake.vectors = {"a": [1.0, 0.0], "b": [3.0, -4.0]}

    rows, asked = embed_twice(fake)

    assert rows.tolist() == [[0.6, -0.8]]
    assert asked == ["base64", "float", "float"]


@each("broken", ["!", "AAA=", "AAAA"])
def test_an_invalid_base64_vector_is_rejected(broken: str) -> None:
    """The vector is not base64, or not a sequence of 32-bit floats."""
    with pytest.raises(ScoringError) as caught:
        decode_vector(broken)

    assert caught.value.reason is UnscoredReason.EMBEDDER_ERROR


@given(st.lists(st.floats(-10, 10).filter(lambda number: number == 0 or abs(number) > 1e-6), min_size=8, max_size=500))
def test_vectors_of_64_bit_floats_are_rejected(numbers: list[float]) -> None:
    """Otherwise, they would be read as vectors of twice the dimension, with every second number random."""
    numbers = [number / 3 for number in numbers]  # uses all bits of the numbers
    assume(sum(number != 0 for number in numbers) >= 8)
    encoded = base64.b64encode(np.array(numbers, "<f8").tobytes()).decode()
    halves = np.abs(np.array(numbers, "<f8").view("<f4"))[::2]
    assume(((halves > 0) & (halves < 1e-17)).any() or (halves > 1e19).any())

    with pytest.raises(ScoringError, match="not 32-bit floats"):
        decode_vector(encoded)


@given(st.lists(st.floats(-10, 10, width=32).filter(lambda number: number == 0 or abs(number) > 1e-12), min_size=1))
def test_vectors_of_32_bit_floats_are_decoded(numbers: list[float]) -> None:
    """This holds however small some numbers are."""
    assert decode_vector(base64.b64encode(np.array(numbers, "<f4").tobytes()).decode()).tolist() == numbers


@pytest.mark.parametrize(
    "kind", ["nan", "zeros", "wrong_dimension", "uneven_dimension", "wrong_count", "constant", "no_index"]
)
def test_invalid_vectors_are_reported_as_a_permanent_embedder_error(fake: FakeJudge, kind: Any) -> None:
    """A retry cannot help."""
    fake.outage = Fault(kind)

    with pytest.raises(ScoringError) as caught:
        embed(fake, "a", "b c")

    assert (caught.value.reason, caught.value.retry_after) == (UnscoredReason.EMBEDDER_ERROR, None)
    assert len(fake.embedding_requests) == 1


@pytest.mark.slow
@pytest.mark.parametrize(
    ("fault", "pause"),
    [
        (Fault("status", status=503), 0),
        (Fault("status", status=429, retry_after=12), 12),
        (Fault("hang"), 0),
        (Fault("reset"), 0),
        (Fault("status", status=401), 0),
        (Fault("status", status=404, code="model_not_found"), 0),
        (Fault("status", status=429, code="insufficient_quota"), 0),
        (Fault("status", status=400), 0),
        (Fault("status", status=413), None),
    ],
    ids=["down", "busy", "no reply", "broken off", "wrong key", "no model", "no quota", "bad request", "too long"],
)
def test_an_unreachable_embedder_is_a_temporary_error(
    fake: FakeJudge, fault: Fault, pause: float | None, request: pytest.FixtureRequest
) -> None:
    """An error has a retry delay if a retry can help, either immediately or after the cause is fixed."""
    fake.outage = fault

    with pytest.raises(ScoringError) as caught:
        embed(fake, "a", timeout=2 if fault.kind == "hang" else 30)

    assert (caught.value.reason, caught.value.retry_after) == (UnscoredReason.EMBEDDER_ERROR, pause)
    rejected = request.node.callspec.id in ("wrong key", "no model", "no quota", "bad request")
    assert caught.value.rejected == rejected
    assert ("OPENAI_API_KEY" in (caught.value.fix or "")) == rejected
    if fault.kind == "hang":
        assert fake.base_url.removesuffix("/v1") in str(caught.value)


@pytest.mark.parametrize("value", ["", " ", None])
def test_an_empty_base_url_counts_as_unset(bare: Path, monkeypatch: pytest.MonkeyPatch, value: str | None) -> None:
    """A deployment may set the variable to an empty value, which the client would use as the address."""
    if value is not None:
        monkeypatch.setenv("OPENAI_BASE_URL", value)

    assert load_settings().base_url is None
    assert str(ModelServer(api_key="test").connect().base_url) == "https://api.openai.com/v1/"


@each(
    "body",
    [
        {"type": "message", "role": "assistant", "content": [{"type": "text", "text": "5"}]},
        {"candidates": [{"content": {"parts": [{"text": "5"}], "role": "model"}}]},
        {"model": "m", "message": {"role": "assistant", "content": "5"}, "done": True},
        {"model": "m", "response": "5", "done": True},
        {"text": "5", "generation_id": "x"},
        {"object": "response", "output": [{"type": "message", "content": [{"type": "output_text", "text": "5"}]}]},
        {"generated_text": "5"},
        {"predictions": ["5"]},
        {"outputs": [{"text": "5"}]},
        {"id": "x", "message": {"role": "assistant", "content": [{"type": "text", "text": "5"}]}, "usage": {}},
        {"promptFeedback": {"blockReason": "SAFETY"}},
        {"output": {"message": {"role": "assistant", "content": [{"text": "5"}]}}, "stopReason": "end_turn"},
        {"output": {"text": "5"}, "request_id": "x"},
        {"results": [{"outputText": "5"}]},
        {"id": "x", "status": "succeeded", "output": ["5"]},
        {"content": "5", "stop": True},
        {"answer": "5"},
        {"data": {"text": "5"}},
        {"generations": [{"text": "5"}]},
        [{"generated_text": "5"}],
        {"object": "text_completion", "choices": [{"text": "5", "finish_reason": "stop"}]},
        {"object": "chat.completion.chunk", "choices": [{"delta": {"content": "5"}}]},
    ],
)
def test_a_reply_of_another_api_is_named_as_such(body: Any) -> None:
    """The server can be reached, but speaks a different protocol, so that a retry does not help."""
    with pytest.raises(NoModelReply, match=r"reply of another API .*base_url") as caught:
        _parse_reply(json.dumps(body).encode())

    assert caught.value.reason == "unparsable"


@each(
    "body",
    [
        b'data: {"choices":[{"delta":{"content":"5"}}]}\n\ndata: [DONE]\n', b"event: message_start\ndata: {}\n",
        b": ping\n\ndata: {}\n", b'{"response":"5"}\n{"response":"","done":true}\n',
    ],
)  # fmt: skip
def test_a_stream_in_place_of_a_reply_is_named_as_such(body: bytes) -> None:
    """germane never asks for a stream, so the server does not follow the protocol."""
    with pytest.raises(NoModelReply, match=r"another API \(a stream\)") as caught:
        _parse_reply(body)

    assert caught.value.reason == "unparsable"


@each(
    "body",
    [
        b"<html><title>Sign in</title></html>", b"Ollama is running", b"", b'{"error": {"message": "overloaded"}}',
        b'{"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}', b'{"status": "ok"}',
        b'{"detail": "no", "request_id": "x"}', b'{"message": "no", "output": null}', b'{"choices": null, "id": ""}',
    ],
)  # fmt: skip
def test_a_page_or_an_error_is_not_a_reply_of_another_api(body: bytes) -> None:
    """It is often temporary, so the request is retried."""
    with pytest.raises(NoModelReply, match=r"the body is (?!a reply)") as caught:
        _parse_reply(body)

    assert caught.value.reason == "judge_unreachable"
