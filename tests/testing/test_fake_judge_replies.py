"""What the fake judge says is scripted: texts, probabilities of tokens, and the ways in which a reply is bad."""

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
    """A judge without options."""
    with FakeJudge() as judge:
        yield judge


def ask(judge: FakeJudge, text: str = "Rate it.", **more: Any) -> tuple[int, Any]:
    """Return status and body of the reply to a chat request."""
    connection = HTTPConnection(urlsplit(judge.base_url).netloc, timeout=10)
    body = {"messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": text}], **more}
    connection.request("POST", "/v1/chat/completions", json.dumps(body), {"Content-Type": "application/json"})
    response = connection.getresponse()
    found = response.status, json.loads(response.read())
    connection.close()
    return found


def contents(judge: FakeJudge, text: str = "Rate it.", **more: Any) -> list[str]:
    """Return what the choices say."""
    return [choice["message"]["content"] for choice in ask(judge, text, **more)[1]["choices"]]


def format_of(schema: dict[str, Any]) -> dict[str, Any]:
    """Return the option that asks for a schema."""
    return {"type": "json_schema", "json_schema": {"name": "reply", "strict": True, "schema": schema}}


def test_a_function_says_what_the_judge_says(judge: FakeJudge) -> None:
    """A text as it is, a mapping as JSON, a list choice by choice; None is what the judge would say by itself."""
    said: dict[str, Any] = {"a": "four", "b": {"rating": 4}, "c": ["x", "y"], "d": None}
    judge.replies = lambda request: said[request.body["messages"][-1]["content"]]

    assert contents(judge, "a", n=2) == ["four", "four"]
    assert json.loads(*contents(judge, "b")) == {"rating": 4}
    assert contents(judge, "c", n=2) == ["x", "y"]
    assert contents(judge, "d")[0].endswith("?")


def test_a_script_is_played_once_reply_by_reply() -> None:
    """Afterwards the judge speaks for itself."""
    with FakeJudge(replies=["one", {"two": 2}]) as judge:
        assert contents(judge) == ["one"]
        assert contents(judge) == ['{"two": 2}']
        assert contents(judge)[0].endswith("?")


def test_any_schema_gets_an_instance(judge: FakeJudge) -> None:
    """So that a scorer of anybody's works without a script."""
    (content,) = contents(judge, response_format=format_of(RATING))

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
def test_an_instance_keeps_the_schemas_limits(judge: FakeJudge, schema: dict[str, Any], instance: Any) -> None:
    """Of numbers and of lists."""
    assert json.loads(*contents(judge, response_format=format_of(schema))) == instance


def test_a_server_without_schemas_talks_around_the_json(judge: FakeJudge) -> None:
    """As models do that were only told by the prompt."""
    judge.response_format = "ignored"
    (content,) = contents(judge, response_format=format_of(RATING))

    assert json.dumps(INSTANCE) in content
    assert not content.startswith("{")


def test_questions_are_known_by_their_schema(judge: FakeJudge) -> None:
    """One in each choice, or all in one; the prompt need not show the form."""
    question = {"type": "object", "properties": {"question": {"type": "string"}}}
    questions = {"type": "object", "properties": {"questions": {"type": "array", "items": question}}}
    judge.questions = lambda answer: [f"Is it {answer}?"]

    (one,) = contents(judge, "<answer-0f>\nblue\n</answer-0f>", response_format=format_of(question))
    (many,) = contents(judge, "<answer-0f>\nblue\n</answer-0f>", response_format=format_of(questions))

    assert json.loads(one) == {"question": "Is it blue?", "noncommittal": False}
    assert json.loads(many) == {"questions": [{"question": "Is it blue?", "noncommittal": False}]}


def test_the_texts_between_marks_can_be_read() -> None:
    """The answer first, whatever stands around it; another turn without marks changes nothing."""
    turns = ["<question-1f>\nWhy?\n</question-1f>\n<answer-1f>\nSo.\n</answer-1f>\nRate.", "Again."]
    request = JudgeRequest("/v1/chat/completions", {"messages": [{"role": "user", "content": turn} for turn in turns]}, {})

    assert request.answer == "So."
    assert request.section("question") == "Why?"
    assert request.section("context") is None
    assert "Again." in request.text


def test_probabilities_of_the_first_token_are_told_when_asked_for() -> None:
    """Likeliest first, no more than asked for; a reply of one token is the likeliest."""
    with FakeJudge(first_token={"4": 0.3, "5": 0.7, "x": 0.0}) as judge:
        _, body = ask(judge, max_tokens=1, logprobs=True, top_logprobs=2)
        assert ask(judge, max_tokens=1)[1]["choices"][0]["logprobs"] is None

    (choice,) = body["choices"]
    assert choice["message"]["content"] == "5"
    (token,) = choice["logprobs"]["content"]
    assert {each["token"]: math.exp(each["logprob"]) for each in token["top_logprobs"]} == pytest.approx(
        {"5": 0.7, "4": 0.3}
    )


def test_a_rating_within_one_token_is_a_digit(judge: FakeJudge) -> None:
    """So that scorers that ask for one have a value, whatever nobody scripted."""
    assert contents(judge, max_tokens=1) == ["3"]


def test_probabilities_may_depend_on_the_request() -> None:
    """A function of it; None is a server that tells nothing."""
    with FakeJudge(first_token=lambda request: {"2": 1.0} if "bad" in request.text else None) as judge:
        bad, good = (ask(judge, text, max_tokens=1, logprobs=True)[1]["choices"][0] for text in ("bad", "good"))

    assert bad["message"]["content"] == "2"
    assert good["logprobs"] is None


def test_a_server_may_ignore_or_refuse_probabilities() -> None:
    """Null, or HTTP 400 with the option's name."""
    with FakeJudge(first_token={"5": 1.0}, logprobs="ignored") as judge:
        assert ask(judge, logprobs=True)[1]["choices"][0]["logprobs"] is None
        judge.logprobs = "rejected"
        status, body = ask(judge, logprobs=True)
        assert (status, "logprobs" in body["error"]["message"]) == (400, True)
        assert ask(judge)[0] == 200


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
def test_a_reply_can_be_bad_in_its_json(judge: FakeJudge, kind: Any, content: str) -> None:
    """Whatever it would have said."""
    judge.replies = [{"rating": 4, "shares": [0.5, 1], "why": "so"}]
    judge.faults.append(Fault(kind))

    assert contents(judge) == [content]


def test_prose_may_stand_around_the_json(judge: FakeJudge) -> None:
    """Before and after it, with a code fence."""
    judge.replies = [{"rating": 4}]
    judge.faults.append(Fault("prose"))
    (content,) = contents(judge)

    assert "\n```json\n" + '{"rating": 4}' + "\n```\n" in content


def test_embeddings_have_a_latency_of_their_own() -> None:
    """And are counted apart from chats."""
    with FakeJudge(latency=60.0, embedding_latency=0.0) as judge:
        connection = HTTPConnection(urlsplit(judge.base_url).netloc, timeout=10)
        connection.request("POST", "/v1/embeddings", json.dumps({"input": "a"}))
        assert connection.getresponse().status == 200
        connection.close()

        assert (judge.max_in_flight, judge.max_embeddings_in_flight) == (0, 1)
