"""Failures over HTTP: a failure results in a reason, never in a value."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from germane.exchange import Exchange, Message
from germane.score import Score, UnscoredReason
from germane.scorers import QuestionAnswerSimilarity, run_scorer
from germane.scorers.base.reply_parser import parse_list, parse_number
from germane.scorers.judge.client import ModelServer
from germane.scorers.judge.embedders import EmbeddingBatcher, OpenAIEmbedder
from germane.scorers.judge.openai_judge import OpenAIJudge
from germane.scorers.prompting.judge_scorer import JudgeScorer, JudgeSession
from germane.scorers.prompting.prompt import Prompt
from germane.testing import FakeJudge, Fault

PROMPT = Prompt("1", (Message("user", 'Rate <answer-{fence}>\n{answer}\n</answer-{fence}> {"rating": 4}'),), "rate")
GOOD = {"rating": 4, "parts": [0.5, 1]}


class Rated(JudgeScorer):
    """Scorer that parses a number and a list of two numbers from JSON."""

    name = "rated"
    version = "1"

    def prompts(self) -> Sequence[Prompt]:
        return (PROMPT,)

    async def score(self, exchange: Exchange) -> Score:
        inquiry = JudgeSession(self.judge)
        values = {"answer": exchange.answer or "", "fence": "0f"}
        value = await inquiry.ask_json(PROMPT, values, {"type": "object"}, _read)
        return self.build_score(value, inquiry)


def _read(found: Mapping[str, Any]) -> float:
    parts = [parse_number(part, 0, 1) for part in parse_list(found.get("parts"), count=2)]
    return parse_number(found.get("rating"), 1, 5) / 5 + 0 * sum(parts)


def rate(fake: FakeJudge, exchange: Exchange, **server: Any) -> Score:
    """Return the rating of an exchange."""

    async def use_and_close() -> Score:
        judge = OpenAIJudge("fake-judge", ModelServer(api_key="test", base_url=fake.base_url, **server))
        try:
            return await run_scorer(Rated(judge), exchange)
        finally:
            await judge.aclose()

    return asyncio.run(use_and_close())


def compare(fake: FakeJudge, *exchanges: Exchange, **server: Any) -> list[Score]:
    """Return the similarities of question and answer for exchanges in sequence."""

    async def use_and_close() -> list[Score]:
        embedder = OpenAIEmbedder("fake-embedder", ModelServer(api_key="test", base_url=fake.base_url, **server))
        batcher = EmbeddingBatcher(embedder)
        try:
            return [await run_scorer(QuestionAnswerSimilarity(batcher), exchange) for exchange in exchanges]
        finally:
            await batcher.aclose()
            await embedder.aclose()

    return asyncio.run(use_and_close())


def status(code: int, name: str | None = None, retry_after: float | None = None) -> Fault:
    """Return an HTTP error."""
    return Fault("status", status=code, code=name, retry_after=retry_after)


AT_THE_DOOR = {
    "busy": (status(429), UnscoredReason.JUDGE_RATE_LIMITED),
    "busy, come back later": (status(429, retry_after=21), UnscoredReason.JUDGE_RATE_LIMITED),
    "broken": (status(500), UnscoredReason.JUDGE_UNREACHABLE),
    "overloaded": (status(503), UnscoredReason.JUDGE_UNREACHABLE),
    "request timed out": (status(408), UnscoredReason.JUDGE_TIMEOUT),
    "bad key": (status(401, "invalid_api_key"), UnscoredReason.JUDGE_REJECTED),
    "no such model": (status(404, "model_not_found"), UnscoredReason.JUDGE_REJECTED),
    "quota spent": (status(429, "insufficient_quota"), UnscoredReason.JUDGE_REJECTED),
    "too long": (status(400, "context_length_exceeded"), UnscoredReason.JUDGE_REFUSED),
    "filtered": (status(400, "content_filter"), UnscoredReason.JUDGE_REFUSED),
    "silent": (Fault("hang"), UnscoredReason.JUDGE_TIMEOUT),
    "slow drip": (Fault("drip"), UnscoredReason.JUDGE_TIMEOUT),
    "reset": (Fault("reset"), UnscoredReason.JUDGE_UNREACHABLE),
    "half a reply": (Fault("truncated"), UnscoredReason.JUDGE_UNREACHABLE),
    "a web page": (Fault("garbage"), UnscoredReason.JUDGE_UNREACHABLE),
    "no JSON": (Fault("not_json"), UnscoredReason.JUDGE_UNREACHABLE),
    "an empty body": (Fault("empty_body"), UnscoredReason.JUDGE_UNREACHABLE),
    "an error with HTTP 200": (Fault("error_body"), UnscoredReason.JUDGE_UNREACHABLE),
    "an endless body": (Fault("endless"), UnscoredReason.UNPARSABLE),
    "no choices": (Fault("no_choices"), UnscoredReason.UNPARSABLE),
    "nothing said": (Fault("empty"), UnscoredReason.UNPARSABLE),
    "only thought": (Fault("thinking"), UnscoredReason.UNPARSABLE),
    "refusal": (Fault("refusal"), UnscoredReason.JUDGE_REFUSED),
    "filtered reply": (Fault("content_filter"), UnscoredReason.JUDGE_REFUSED),
}
"""Faults in every reply, each with the reason of the score."""
REFUSALS = ("broken", "overloaded", "an error with HTTP 200")
"""Faults that an option of the request may have caused. The request is repeated without each option."""
IN_THE_JSON = {
    "cut off": (Fault("cut_off"), UnscoredReason.UNPARSABLE),
    "malformed": (Fault("malformed"), UnscoredReason.UNPARSABLE),
    "numbers in many words": (Fault("number_words"), UnscoredReason.UNPARSABLE),
    "an item too few": (Fault("wrong_count"), UnscoredReason.UNPARSABLE),
    "out of range": (Fault("out_of_range"), UnscoredReason.OUT_OF_RANGE),
    "no number": (Fault("nan"), UnscoredReason.OUT_OF_RANGE),
}
"""Faults in the JSON of every reply, each with the reason of the score after one retry."""
EMBEDDER = {
    "busy": (status(429), 0, 2),
    "busy, come back later": (status(429, retry_after=21), 21, 1),
    "overloaded": (status(503), 0, 6),
    "silent": (Fault("hang"), 0, 1),
    "slow drip": (Fault("drip"), 0, 1),
    "reset": (Fault("reset"), 0, 1),
    "half a reply": (Fault("truncated"), 0, 1),
    "bad key": (status(401), 0, 6),
    "no such model": (status(404, "model_not_found"), 0, 2),
    "quota spent": (status(429, "insufficient_quota"), 0, 2),
    "bad request": (status(400), 0, 6),
    "too long": (status(413), None, 6),
    "a web page": (Fault("garbage"), 0, 1),
    "no JSON": (Fault("not_json"), 0, 1),
    "no number": (Fault("nan"), None, 1),
    "zeros": (Fault("zeros"), None, 1),
    "no dimension": (Fault("wrong_dimension"), None, 1),
    "uneven dimension": (Fault("uneven_dimension"), None, 1),
    "a vector too few": (Fault("wrong_count"), None, 1),
}
"""Faults in every reply, each with the expected retry delay (None if a retry cannot help) and number of requests.

A rejected request is repeated with numbers and without an encoding, and then with another text, to find the cause.
"""


def server_options(fault: Fault) -> dict[str, float]:
    """Return the timeout: two seconds if no reply is expected, otherwise enough time for a busy machine."""
    return {"timeout": 2.0 if fault.kind in {"hang", "drip"} else 30.0, "retries": 0}


def assert_failed(score: Score, reason: UnscoredReason) -> None:
    """Assert that a score has no value and states the reason."""
    assert (score.state, score.value, score.reason) == ("failed", None, reason)
    assert score.explanation


@pytest.mark.slow
@pytest.mark.parametrize("kind", AT_THE_DOOR)
def test_a_failing_judge_yields_no_relevancy(bench: Any, kind: str) -> None:
    """The score has the judge's reason, and nothing is embedded."""
    bench.fake.outage, reason = AT_THE_DOOR[kind]
    bench.server = server_options(bench.fake.outage)

    (score,) = bench.score()

    assert_failed(score, reason)
    requests = 3 if kind in REFUSALS else 1
    assert (len(bench.fake.chat_requests), len(bench.fake.embedding_requests)) == (requests, 0)


@pytest.mark.slow
@pytest.mark.parametrize("kind", AT_THE_DOOR)
def test_a_failing_judge_yields_no_rating(fake: FakeJudge, exchange: Any, kind: str) -> None:
    """Requests for JSON are only repeated without JSON's schema, which may have been the cause."""
    fake.replies = lambda _: GOOD
    fake.outage, reason = AT_THE_DOOR[kind]

    score = rate(fake, exchange(), **server_options(fake.outage))

    assert_failed(score, reason)
    assert len(fake.chat_requests) == (2 if kind in REFUSALS else 1)
    assert score.details.get("retry_after") == (21 if "later" in kind else None)


@pytest.mark.parametrize("kind", IN_THE_JSON)
def test_two_invalid_json_replies_yield_no_rating(fake: FakeJudge, exchange: Any, kind: str) -> None:
    """The reply is requested only once more."""
    fake.replies = lambda _: GOOD
    fake.outage, reason = IN_THE_JSON[kind]

    score = rate(fake, exchange(), retries=0)

    assert_failed(score, reason)
    assert len(fake.chat_requests) == 2


@pytest.mark.parametrize("kind", IN_THE_JSON)
def test_a_valid_second_reply_is_used_after_an_invalid_first_one(fake: FakeJudge, exchange: Any, kind: str) -> None:
    """The value comes from the valid reply; the usage covers both replies."""
    fake.replies = lambda _: GOOD
    fake.faults.append(IN_THE_JSON[kind][0])

    score = rate(fake, exchange(), retries=0)

    assert (score.value, score.details["requests"]) == (0.8, 2)


@pytest.mark.parametrize(
    "reply",
    [
        {"rating": "four", "parts": [0, 1]},
        {"rating": "4/5", "parts": ["0.5", "100%"]},
        'Let me see. My verdict:\n```json\n{"rating": 4, "parts": [0.5, 1]}\n```\nThank you.',
        '<think>{"rating": 1, "parts": [0, 0]}</think>{"rating": 4, "parts": [0.5, 1]}',
    ],
)
def test_equivalent_forms_of_a_json_reply_are_accepted(fake: FakeJudge, exchange: Any, reply: Any) -> None:
    """Numbers can be words or strings. Prose can surround the JSON, and reasoning can precede it."""
    fake.replies = lambda _: reply

    score = rate(fake, exchange())

    assert (score.value, len(fake.chat_requests)) == (0.8, 1)


def test_a_rating_with_hundreds_of_digits_is_out_of_range(fake: FakeJudge, exchange: Any) -> None:
    """The number is rejected even though Python can represent it."""
    fake.replies = lambda _: {**GOOD, "rating": 10**400}

    assert_failed(rate(fake, exchange()), UnscoredReason.OUT_OF_RANGE)


def test_prose_around_the_json_in_a_reply_is_accepted(fake: FakeJudge, exchange: Any) -> None:
    """One request is enough."""
    fake.replies = lambda _: GOOD
    fake.outage = Fault("prose")

    assert rate(fake, exchange()).value == 0.8
    assert len(fake.chat_requests) == 1


@pytest.mark.parametrize("reply", ["Certainly.", "The ferry leaves from pier four.", '{"verdict": 7}', "?!"])
def test_replies_without_a_question_yield_no_score(bench: Any, reply: str) -> None:
    """This holds for all other content, and nothing is embedded."""
    bench.fake.replies = lambda _: reply

    (score,) = bench.score()

    assert_failed(score, UnscoredReason.NO_USABLE_QUESTION)
    assert bench.fake.embedding_requests == []


@pytest.mark.slow
@pytest.mark.parametrize("kind", EMBEDDER)
def test_a_failing_embedder_yields_no_similarity(fake: FakeJudge, exchange: Any, kind: str) -> None:
    """The score states whether a retry can help, and when."""
    fake.outage, pause, requests = EMBEDDER[kind]

    (score,) = compare(fake, exchange(), **server_options(fake.outage))

    assert_failed(score, UnscoredReason.EMBEDDER_ERROR)
    assert score.details.get("retry_after") == pause
    assert len(fake.embedding_requests) == requests


@pytest.mark.slow
@pytest.mark.parametrize("kind", EMBEDDER)
def test_a_failing_embedder_yields_no_relevancy(bench: Any, kind: str) -> None:
    """The embedder fails after the judge has generated its questions."""
    fault, _, requests = EMBEDDER[kind]
    bench.fake.embedding_faults.extend([fault] * requests)
    bench.server = server_options(fault)

    (score,) = bench.score()

    assert_failed(score, UnscoredReason.EMBEDDER_ERROR)
    assert (len(bench.fake.chat_requests), len(bench.fake.embedding_requests)) == (1, requests)


def test_vectors_from_a_new_model_are_not_mixed_with_old_ones(fake: FakeJudge, exchange: Any) -> None:
    """If the question's cached vector and the answer's vector differ in dimension, both texts are embedded again."""
    fake.embedding_faults.extend([None, Fault("other_dimension"), Fault("other_dimension")])

    first, second = compare(fake, exchange(), exchange(answer="Quite another answer."))

    assert first.value is not None
    assert second.value == pytest.approx(1.0, abs=0.01)
    assert [len(request.body["input"]) for request in fake.embedding_requests] == [2, 1, 2]


@pytest.mark.parametrize("fault", [status(503), status(429), Fault("reset")], ids=["503", "429", "reset"])
def test_the_judge_client_retries_one_temporary_error(fake: FakeJudge, exchange: Any, fault: Fault) -> None:
    """After the client's retry, the score has a value."""
    fake.replies = lambda _: GOOD
    fake.faults.append(fault)

    assert rate(fake, exchange()).value == 0.8
    assert len(fake.chat_requests) == 2


def test_the_judge_client_does_not_wait_for_a_long_retry_delay(fake: FakeJudge, exchange: Any) -> None:
    """The delay is passed on to the code that schedules retries."""
    fake.outage = status(429, retry_after=21)

    score = rate(fake, exchange())

    assert (score.details, len(fake.chat_requests)) == ({"retry_after": 21}, 1)
