"""Requests that a judge's or embedder's server refuses: without an option, in smaller batches, and only then failed."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.cases import each

from germane.errors import ScoringError
from germane.exchange import Message
from germane.score import UnscoredReason
from germane.scorers import Reply
from germane.scorers.judge.client import ModelServer
from germane.scorers.judge.embedders import EmbeddingBatcher, OpenAIEmbedder
from germane.scorers.judge.openai_judge import OpenAIJudge
from germane.scorers.judge.openai_protocol import parse_reply
from germane.testing import FakeJudge, Fault
from germane.testing.judge_request import JudgeRequest
from germane.testing.judge_server import JudgeReply

TURNS = [Message("user", "Rate the answer from 1 to 5.")]
STATUSES = (400, 401, 403, 404, 409, 422, 424, 499, 500, 503)
Refuse = Callable[[Mapping[str, Any]], Fault | None]


class RefusingServer(FakeJudge):
    """A server that answers each request with the fault that ``refuse`` returns for the request's body, if any."""

    refuse: Refuse = staticmethod(lambda _: None)

    def reply(self, request: JudgeRequest, fault: Fault | None) -> JudgeReply:
        return super().reply(request, fault or self.refuse(request.body))

    @property
    def batches(self) -> list[list[str]]:
        """The texts of all embedding requests."""
        return [request.body["input"] for request in self.embedding_requests]


def refused(status: int, message: str = "this is not allowed") -> Fault:
    return Fault("status", status=status, message=message)


def ask(server: RefusingServer, count: int = 1, **options: Any) -> list[Reply]:
    """Return the replies to successive requests with the same options."""

    async def ask_all() -> list[Reply]:
        judge = OpenAIJudge("fake-judge", ModelServer(api_key="test", base_url=server.base_url, retries=0))
        try:
            return [await judge.ask(TURNS, **options) for _ in range(count)]
        finally:
            await judge.aclose()

    return asyncio.run(ask_all())


def embed(server: RefusingServer, *calls: Sequence[str]) -> list[Any]:
    """Return the rows or the error of each concurrent call."""

    async def embed_all() -> list[Any]:
        connection = ModelServer(api_key="test", base_url=server.base_url, retries=0)
        embedder = OpenAIEmbedder("fake-embedder", connection)
        batcher = EmbeddingBatcher(embedder)
        try:
            return await asyncio.gather(*(batcher.embed(call) for call in calls), return_exceptions=True)
        finally:
            await batcher.aclose()
            await embedder.aclose()

    return asyncio.run(embed_all())


@pytest.fixture(scope="module")
def shared() -> Any:
    """Return one server for all cases."""
    with RefusingServer(first_token={"4": 0.9, "5": 0.1}) as server:
        yield server


@pytest.fixture
def server(shared: RefusingServer) -> RefusingServer:
    """Return the server without faults and requests of other tests."""
    shared.requests.clear()
    shared.outage, shared.refuse = None, lambda _: None
    return shared


OPTIONS: Mapping[str, dict[str, Any]] = {
    "logprobs": {"top_tokens": 5},
    "response_format": {"schema": {"type": "object"}},
    "n": {"n": 3},
}


@each(("option", "status"), [(option, status) for option in OPTIONS for status in STATUSES])
def test_an_option_is_left_out_once_whatever_the_status_of_its_refusal(
    server: RefusingServer, option: str, status: int
) -> None:
    """Servers do not agree on a status, and often do not name the option."""
    server.requests.clear()
    server.refuse = lambda body: refused(status) if option in body else None

    replies = ask(server, 2, **OPTIONS[option])

    assert all(reply.texts for reply in replies)
    sent = [option in request.body for request in server.chat_requests]
    assert sent[:2] == [True, False]
    assert sent.count(True) == 2  # the option is tried once more, because it may have been an outage
    assert sent[-1] is False


@each("message", ["'n' must be 1", "unknown field `n`", "unsupported: n.", '{"n": 3} is too many', "429: n=1 only, n"])
def test_an_option_that_the_error_names_is_left_out_even_if_the_server_is_busy(
    server: RefusingServer, message: str
) -> None:
    """Only errors that name nothing are taken for a rate limit."""
    server.requests.clear()
    server.refuse = lambda body: refused(429, message) if "n" in body else None

    assert ask(server, n=3)[0].texts


@each("reply", [{"error": {"message": "no n", "code": 400}}, {"detail": "n"}, {"message": "bad", "status": 422}])
def test_an_option_can_be_refused_with_status_200(server: RefusingServer, reply: dict[str, Any]) -> None:
    """Gateways report the errors of other servers like this."""

    class Gateway(RefusingServer):
        def reply(self, request: JudgeRequest, fault: Fault | None) -> JudgeReply:
            return JudgeReply(reply) if "n" in request.body else super().reply(request, fault)

    with Gateway() as gateway:
        assert ask(gateway, n=3)[0].texts


@each("status", [400, 403, 404, 424, 499, 500, 503])
def test_an_outage_does_not_cost_an_option(server: RefusingServer, status: int) -> None:
    """The option is tried again once the server answers without it."""
    server.requests.clear()
    faults = [refused(status)]
    server.refuse = lambda _: faults.pop() if faults else None

    first, second = ask(server, 2, top_tokens=5)

    assert first.first_token
    assert second.first_token
    assert ["logprobs" in request.body for request in server.chat_requests] == [True, False, True, True]


@each("message", ["logprobs are not supported", "'top_logprobs' is too large", 'unknown: {"logprobs": true}'])
def test_an_option_that_a_permanent_error_names_is_not_tried_again(server: RefusingServer, message: str) -> None:
    """The error is proof enough."""
    server.requests.clear()
    server.refuse = lambda body: refused(400, message) if "logprobs" in body else None

    ask(server, 2, top_tokens=5)

    assert ["logprobs" in request.body for request in server.chat_requests] == [True, False, False]
    assert not any("top_logprobs" in request.body for request in server.chat_requests[1:])


@each(
    "fault",
    [
        Fault("status", status=503, retry_after=9), Fault("status", status=429), Fault("status", status=408),
        Fault("status", status=400, code="content_filter"), Fault("status", status=401, code="invalid_api_key"),
        Fault("status", status=404, code="model_not_found"), Fault("status", status=429, code="insufficient_quota"),
        Fault("garbage"), Fault("not_json"), Fault("empty_body"),
    ],
)  # fmt: skip
def test_a_request_is_not_repeated_if_the_server_states_another_cause(server: RefusingServer, fault: Fault) -> None:
    """More requests would only add load."""
    server.requests.clear()
    server.outage = fault

    with pytest.raises(ScoringError):
        ask(server, n=3, top_tokens=5)

    assert len(server.chat_requests) == 1


@each(("status", "temporary"), [(status, status > 422 or status == 409) for status in STATUSES])
def test_statuses_of_other_servers_and_of_outages_are_temporary(
    server: RefusingServer, status: int, temporary: bool
) -> None:
    """A gateway's 424 or 499 says nothing about the key or the model."""
    server.outage = refused(status)

    with pytest.raises(ScoringError) as caught:
        ask(server)

    assert caught.value.reason.is_transient is temporary
    assert caught.value.http_status == status


@each("status", STATUSES)
def test_the_encoding_of_vectors_is_left_out_if_every_value_is_refused(server: RefusingServer, status: int) -> None:
    """Numbers are requested before that. Later requests omit the option."""
    server.requests.clear()
    server.refuse = lambda body: refused(status) if "encoding_format" in body else None

    (rows,) = embed(server, ["one", "two words"])
    sent = [request.body.get("encoding_format") for request in server.embedding_requests]

    assert rows.shape == (2, 256)
    assert sent[:3] == ["base64", "float", None]


@each(("limit", "status"), [(limit, status) for limit in (1, 3, 10) for status in (400, 413, 424, 500)])
def test_a_refused_batch_is_halved_within_one_exchange(server: RefusingServer, limit: int, status: int) -> None:
    """Servers limit the number of texts, and report it with any status. The vectors are those of one request."""
    texts = [f"context {number}" for number in range(12)]
    server.refuse = lambda _: None
    (expected,) = embed(server, texts)
    server.refuse = lambda body: refused(status) if len(body["input"]) > limit else None

    (rows,) = embed(server, texts)

    assert np.allclose(rows, expected)


def test_a_batch_can_be_refused_with_status_200() -> None:
    """Gateways report the errors of other servers like this."""

    class Gateway(RefusingServer):
        def reply(self, request: JudgeRequest, fault: Fault | None) -> JudgeReply:
            is_refused = len(request.body["input"]) > 2
            return JudgeReply({"error": {"code": 400}}) if is_refused else super().reply(request, fault)

    with Gateway() as gateway:
        (rows,) = embed(gateway, ["a", "b", "c", "d", "e"])

    assert rows.shape == (5, 256)


def test_an_outage_that_begins_within_a_batch_is_not_blamed_on_a_text(server: RefusingServer) -> None:
    """The embedder is asked for another text again before a text is blamed."""
    accepted: list[str] = []

    def accept_one_text(body: Mapping[str, Any]) -> Fault | None:
        if len(body["input"]) > 1 or accepted:
            return refused(400)
        accepted.extend(body["input"])
        return None

    server.refuse = accept_one_text

    (error,) = embed(server, ["b", "c"])

    assert error.rejected


def test_an_encoding_and_a_batch_can_be_refused_by_the_same_server(server: RefusingServer) -> None:
    """Some servers embed a single text, and know no options."""
    server.refuse = lambda body: refused(500) if "encoding_format" in body or len(body["input"]) > 1 else None

    one, two = embed(server, ["a", "b"], ["c"])

    assert (one.shape, two.shape) == ((2, 256), (1, 256))


@each("status", [400, 403, 413, 415, 422, 424, 500])
def test_a_text_that_is_refused_alone_fails_only_for_its_callers(server: RefusingServer, status: int) -> None:
    """Other texts are embedded, so the error is the text's own, and does not stop the scorer."""
    server.refuse = lambda body: refused(status) if "bad" in body["input"] else None

    before, error, after, alone = [*embed(server, ["a"], ["b", "bad"], ["c"]), *embed(server, ["bad"])]

    assert (before.shape, after.shape) == ((1, 256), (1, 256))
    for each_error in (error, alone):
        assert (each_error.reason, each_error.rejected) == (UnscoredReason.EMBEDDER_ERROR, False)
        assert each_error.retry_after == (0 if status in (424, 500) else None)


@each("status", [400, 401, 403, 404, 422])
def test_a_server_that_refuses_all_texts_is_named_as_the_cause(server: RefusingServer, status: int) -> None:
    """It takes the batch and one more text to find out, however many texts there are."""
    server.requests.clear()
    server.outage = refused(status)

    (error,) = embed(server, [f"text {number}" for number in range(100)])
    server.outage = None

    assert error.rejected
    assert "embedder" in (error.fix or "")
    assert {len(batch) for batch in server.batches} == {100, 1}
    assert len(server.batches) == 6  # each is also sent with numbers, and without an encoding


def test_a_pause_that_the_server_requests_is_not_used_for_more_requests(server: RefusingServer) -> None:
    """The error tells the caller how long to wait."""
    server.outage = Fault("status", status=429, retry_after=30)

    (error,) = embed(server, ["a", "b"])

    assert error.retry_after == 30
    assert len(server.batches) == 1


def test_one_vector_for_all_texts_is_found_in_batches_of_one(server: RefusingServer) -> None:
    """A single vector looks valid. Scores from such vectors would be wrong."""
    server.vectors = {text: [3.0, 4.0] for text in ("a", "b", "c", "ok")}
    server.refuse = lambda body: refused(413) if len(body["input"]) > 1 else None
    try:
        (error,) = embed(server, ["a", "b", "c"])
    finally:
        server.vectors = {}

    assert "the same vector for 3 different texts" in str(error)


@settings(max_examples=10)
@given(
    limit=st.integers(1, 9),
    bad=st.sets(st.integers(0, 23), max_size=4),
    sizes=st.lists(st.integers(1, 8), min_size=1, max_size=3),
    status=st.sampled_from((400, 413, 422, 424, 499, 503)),
)
def test_every_text_that_the_server_embeds_alone_gets_its_vector(
    shared: RefusingServer, limit: int, bad: set[int], sizes: list[int], status: int
) -> None:
    """A call fails exactly if it contains a text that fails alone, for any limit, batch and status."""
    shared.outage, shared.refuse = None, lambda _: None
    rejected = {f"text {number}" for number in bad}
    shared.refuse = lambda body: (
        refused(status) if len(body["input"]) > limit or not rejected.isdisjoint(body["input"]) else None
    )
    numbers = iter(range(24))
    calls = [[f"text {next(numbers)}" for _ in range(size)] for size in sizes]

    for call, result in zip(calls, embed(shared, *calls), strict=True):
        assert isinstance(result, ScoringError) is not rejected.isdisjoint(call)


REASONING = {"reasoning_content": "First, ...", "reasoning": "Hmm.", "thinking": "I see."}


@each("member", [*REASONING, "parts", "nothing"])
def test_an_empty_reply_says_whether_the_judge_only_reasoned(member: str) -> None:
    """The operator then knows that a model that reasons less would help."""
    message = SimpleNamespace(content=None, **{name: text for name, text in REASONING.items() if name == member})
    if member == "parts":
        message.content = [SimpleNamespace(type="thinking", text="Let me see.")]
    choice = SimpleNamespace(message=message, finish_reason="stop")

    with pytest.raises(ScoringError) as caught:
        parse_reply(SimpleNamespace(choices=[choice]))

    assert caught.value.reason is UnscoredReason.UNPARSABLE
    assert ("reasoning only" in str(caught.value)) == (member != "nothing")
