"""Replies of the fake judge: scripted texts, default replies, log probabilities and faults."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from http.client import HTTPConnection
from typing import Any
from urllib.parse import urlsplit

import pytest

from germane.testing import FakeJudge, Fault, JudgeRequest

RATING = {
    "type": "object",
    "properties": {
        "rating": {"type": "integer", "minimum": 1, "maximum": 5},
        "verdicts": {"type": "array", "items": {"enum": ["yes", "no"]}, "minItems": 2},
        "why": {"type": "string"},
        "sure": {"type": "boolean"},
        "share": {"type": "number"},
        "maybe": {"anyOf": [{"$ref": "#/$defs/part"}, {"type": "null"}]},
    },
    "$defs": {"part": {"type": ["object", "null"], "properties": {"kind": {"const": "part"}}}},
}
INSTANCE = {
    "rating": 1,
    "verdicts": ["yes", "yes"],
    "why": "text",
    "sure": False,
    "share": 0,
    "maybe": {"kind": "part"},
}


@pytest.fixture
def judge() -> Iterator[FakeJudge]:
    """A judge with default options."""
    with FakeJudge() as judge:
        yield judge


def chat(judge: FakeJudge, text: str = "Rate it.", **more: Any) -> tuple[int, Any]:
    """Send a chat request, and return the status and the body of the reply."""
    connection = HTTPConnection(urlsplit(judge.base_url).netloc, timeout=10)
    body = {"messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": text}], **more}
    connection.request("POST", "/v1/chat/completions", json.dumps(body), {"Content-Type": "application/json"})
    response = connection.getresponse()
    found = response.status, json.loads(response.read())
    connection.close()
    return found


def contents(judge: FakeJudge, text: str = "Rate it.", **more: Any) -> list[str]:
    """Return the contents of the choices."""
    return [choice["message"]["content"] for choice in chat(judge, text, **more)[1]["choices"]]


def response_format(schema: dict[str, Any]) -> dict[str, Any]:
    """Return the ``response_format`` for a schema."""
    return {"type": "json_schema", "json_schema": {"name": "reply", "strict": True, "schema": schema}}


def test_replies_of_the_fake_judge_can_come_from_a_function(judge: FakeJudge) -> None:
    """Texts are sent unchanged, mappings as JSON, and lists with one text per choice. None means the default reply."""
    scripted: dict[str, Any] = {"a": "four", "b": {"rating": 4}, "c": ["x", "y"], "d": None}
    judge.replies = lambda request: scripted[request.body["messages"][-1]["content"]]

    assert contents(judge, "a", n=2) == ["four", "four"]
    assert json.loads(*contents(judge, "b")) == {"rating": 4}
    assert contents(judge, "c", n=2) == ["x", "y"]
    assert contents(judge, "d")[0].endswith("?")


def test_scripted_replies_are_each_used_once_in_order() -> None:
    """Afterwards, the judge sends default replies."""
    with FakeJudge(replies=["one", {"two": 2}]) as judge:
        assert contents(judge) == ["one"]
        assert contents(judge) == ['{"two": 2}']
        assert contents(judge)[0].endswith("?")


def test_the_default_reply_to_a_schema_is_a_valid_instance(judge: FakeJudge) -> None:
    """Custom scorers get valid JSON without a script."""
    (content,) = contents(judge, response_format=response_format(RATING))

    assert json.loads(content) == INSTANCE


@pytest.mark.parametrize(
    ("schema", "instance"),
    [
        ({"type": "array", "items": {"type": "number", "exclusiveMinimum": 2}}, [3]),
        ({"type": "array", "maxItems": 0}, []),
        ({"type": "integer", "maximum": -4}, -4),
        (
            {"type": "array", "minItems": 2, "items": {"properties": {"item": {"type": "integer"}}}},
            [{"item": 1}, {"item": 2}],
        ),
        ({}, None),
    ],
)
def test_the_default_reply_to_a_schema_respects_its_limits(
    judge: FakeJudge, schema: dict[str, Any], instance: Any
) -> None:
    """The limits for numbers and lists apply."""
    assert json.loads(*contents(judge, response_format=response_format(schema))) == instance


def test_a_fake_judge_that_ignores_the_response_format_adds_text_around_the_json(judge: FakeJudge) -> None:
    """Models that only receive the prompt reply in this way."""
    judge.response_format = "ignored"
    (content,) = contents(judge, response_format=response_format(RATING))

    assert json.dumps(INSTANCE) in content
    assert not content.startswith("{")


def test_a_schema_with_questions_gets_generated_questions(judge: FakeJudge) -> None:
    """Each choice contains one question or all of them, as the schema requires."""
    question = {"type": "object", "properties": {"question": {"type": "string"}}}
    questions = {"type": "object", "properties": {"questions": {"type": "array", "items": question}}}
    judge.questions = lambda answer: [f"Is it {answer}?"]

    (one,) = contents(judge, "<answer-0f>\nblue\n</answer-0f>", response_format=response_format(question))
    (many,) = contents(judge, "<answer-0f>\nblue\n</answer-0f>", response_format=response_format(questions))

    assert json.loads(one) == {"question": "Is it blue?"}
    assert json.loads(many) == {"questions": [{"question": "Is it blue?"}]}


def test_a_recorded_request_has_its_delimited_sections() -> None:
    """The answer section comes first. Messages without sections are ignored."""
    turns = ["<question-1f>\nWhy?\n</question-1f>\n<answer-1f>\nSo.\n</answer-1f>\nRate.", "Again."]
    request = JudgeRequest(
        "/v1/chat/completions", {"messages": [{"role": "user", "content": turn} for turn in turns]}, {}
    )

    assert request.answer == "So."
    assert request.section("question") == "Why?"
    assert request.section("context") is None
    assert "Again." in request.text


def test_the_fake_judge_sends_log_probabilities_on_request() -> None:
    """The most likely tokens come first, up to ``top_logprobs``. A one-token reply is the most likely token."""
    with FakeJudge(first_token={"4": 0.3, "5": 0.7, "x": 0.0}) as judge:
        _, body = chat(judge, max_tokens=1, logprobs=True, top_logprobs=2)
        assert chat(judge, max_tokens=1)[1]["choices"][0]["logprobs"] is None

    (choice,) = body["choices"]
    assert choice["message"]["content"] == "5"
    (token,) = choice["logprobs"]["content"]
    assert {each["token"]: math.exp(each["logprob"]) for each in token["top_logprobs"]} == pytest.approx(
        {"5": 0.7, "4": 0.3}
    )


def test_the_default_reply_of_one_token_is_a_rating(judge: FakeJudge) -> None:
    """Scorers that request a single token get a value."""
    assert contents(judge, max_tokens=1) == ["3"]


def test_log_probabilities_can_depend_on_the_request() -> None:
    """If the function returns None, the reply has no log probabilities."""
    with FakeJudge(first_token=lambda request: {"2": 1.0} if "bad" in request.text else None) as judge:
        bad, good = (chat(judge, text, max_tokens=1, logprobs=True)[1]["choices"][0] for text in ("bad", "good"))

    assert bad["message"]["content"] == "2"
    assert good["logprobs"] is None


def test_the_fake_judge_can_ignore_or_reject_log_probabilities() -> None:
    """The reply contains null for them, or has HTTP status 400 and names the option."""
    with FakeJudge(first_token={"5": 1.0}, logprobs="ignored") as judge:
        assert chat(judge, logprobs=True)[1]["choices"][0]["logprobs"] is None
        judge.logprobs = "rejected"
        status, body = chat(judge, logprobs=True)
        assert (status, "logprobs" in body["error"]["message"]) == (400, True)
        assert chat(judge)[0] == 200


@pytest.mark.parametrize(
    ("kind", "content"),
    [
        ("number_words", '{"rating": "four", "shares": ["zero point five", "one"], "why": "so"}'),
        ("out_of_range", '{"rating": 1000000, "shares": [1000000, 1000000], "why": "so"}'),
        ("nan", '{"rating": NaN, "shares": [NaN, NaN], "why": "so"}'),
        ("wrong_count", '{"rating": 4, "shares": [0.5], "why": "so"}'),
        ("cut_off", '{"rating": 4, "shares":'),
        ("malformed", '{"question": {"a": [1, '),
    ],
)
def test_a_json_fault_corrupts_the_json_of_the_reply(judge: FakeJudge, kind: Any, content: str) -> None:
    """The fault also applies to scripted replies."""
    judge.replies = [{"rating": 4, "shares": [0.5, 1], "why": "so"}]
    judge.faults.append(Fault(kind))

    assert contents(judge) == [content]


def test_a_prose_fault_adds_text_and_a_code_fence(judge: FakeJudge) -> None:
    """The JSON itself is unchanged."""
    judge.replies = [{"rating": 4}]
    judge.faults.append(Fault("prose"))
    (content,) = contents(judge)

    assert "\n```json\n" + '{"rating": 4}' + "\n```\n" in content


def test_latency_of_embeddings_is_configured_separately() -> None:
    """Chat and embedding requests are counted separately."""
    with FakeJudge(latency=60.0, embedding_latency=0.0) as judge:
        connection = HTTPConnection(urlsplit(judge.base_url).netloc, timeout=10)
        connection.request("POST", "/v1/embeddings", json.dumps({"input": "a"}))
        assert connection.getresponse().status == 200
        connection.close()

        assert (judge.max_in_flight, judge.max_embeddings_in_flight) == (0, 1)
