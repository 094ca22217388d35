"""Results with a status: the payload is the answer, and the message of an error or of a success is not."""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Callable
from http import HTTPStatus
from itertools import cycle, product
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from tests.cases import each

import germane
from germane.testing import collect

ANSWER = "Shoes can be returned within thirty days."


def answer_to(result: Any) -> str | None:
    """Return the answer captured from a handler that returns this value."""
    with collect() as exchanges:
        germane.observe(route="ask")(lambda question: result)("Why?")
    assert exchanges[0].status == "ok"
    return exchanges[0].answer


PHRASES = st.sampled_from([status.phrase for status in HTTPStatus] + ["success", "Done.", "in_progress", "FAILED"])
GOOD: list[dict[str, Any]] = [
    *({"success": True}, {"ok": True}, {"is_success": 1}, {"code": 0}, {"code": 200}, {"statusCode": 201}),
    *({"status": "success"}, {"status": "OK"}, {"state": "COMPLETED"}, {"code": "00000"}, {"error": None}),
    *({"errcode": 0, "errmsg": "ok"}, {"code": 20000}, {"status": {"code": 0}}, {"header": {"code": 0}}),
]
FAILED: list[dict[str, Any]] = [
    *({"success": False}, {"ok": False}, {"success": "false"}, {"code": 500}, {"statusCode": 404}, {"code": -1}),
    *({"status": "error"}, {"status": "FAILED"}, {"state": "Timed out"}, {"code": "rate_limit_exceeded"}),
    *({"error": "boom"}, {"error": {"code": 1}}, {"errors": ["boom"]}, {"isError": True}, {"type": "error"}),
    *({"status": {"code": 503}}, {"status": "500 Internal Server Error"}, {"errcode": 40001}, {"status": False}),
    *({"status": "queued"}, {"level": "ERROR"}, {"status": "in progress"}, {"status": "RequestTimeout"}),
    *({"errno": 7}, {"success": 0}),
]
PAYLOADS: list[Any] = [ANSWER, *({name: ANSWER} for name in ("answer", "reply", "text", "content", "output"))]


@each("status", GOOD)
def test_the_payload_takes_precedence_over_status_and_message(status: dict[str, Any]) -> None:
    """In whatever order and however often results are wrapped."""
    messages = cycle(("OK", "It was processed.", "OK"))
    for (name, payload), message in zip(
        product(("data", "result", "body", "output"), PAYLOADS), messages, strict=False
    ):
        as_text = payload if isinstance(payload, str) else json.dumps(payload)
        result = {"message": message} | status | {name: payload}

        assert answer_to(result) == answer_to({"response": result}) == ANSWER
        assert answer_to({name: as_text, "message": message} | status) == ANSWER


@each("status", FAILED)
def test_the_texts_of_a_result_that_failed_are_no_answer(status: dict[str, Any]) -> None:
    """Nor is the message of one that is pending."""
    for name in ("message", "answer", "text", "output", "data"):
        result = {name: "The model is overloaded."} | status

        assert answer_to(result) is None
        assert answer_to(json.dumps({"data": result})) is None


def test_a_number_that_is_not_of_http_is_an_error_without_a_result() -> None:
    """Companies number their errors and successes."""
    assert answer_to({"code": 1001, "message": "The user is unknown.", "data": None}) is None
    assert answer_to({"code": 20000, "message": "The user is known.", "data": ANSWER}) == ANSWER


@given(st.sampled_from([*GOOD, {}]), PHRASES)
def test_a_text_that_only_states_an_outcome_is_no_answer(status: dict[str, Any], phrase: str) -> None:
    """It is reported that there is none."""
    assert answer_to({"message": phrase} | status) is None
    assert answer_to({"result": phrase} | status) is None
    assert answer_to({"message": phrase, "data": None} | status) is None
    assert answer_to({"message": phrase, "data": {"id": 5}} | status) is None


@each(
    "result",
    [
        {"ok": True, "message": ANSWER},
        {"answer": ANSWER, "zip_code": 90210, "order_status": "cancelled", "type": "cancellation"},
        {"reply": ANSWER, "code": 20000, "state": "Ohio"},
        {"jsonrpc": "2.0", "id": 1, "result": {"content": [{"type": "text", "text": ANSWER}]}},
        {"generate": {"messages": [{"role": "assistant", "content": ANSWER}]}},
        {"answer": ANSWER, "status": "a status that nobody cancelled"},
    ],
)
def test_other_fields_do_not_make_a_result_a_failure(result: dict[str, Any]) -> None:
    """Domains have statuses, codes and types of their own."""
    assert answer_to(result) == ANSWER


def test_a_status_of_a_response_beside_its_body_is_read() -> None:
    """The body of an error is no answer. Any other number may be a score."""
    assert answer_to(({"message": "The model is down."}, 503)) is None
    assert answer_to(({"message": ANSWER}, 200)) == ANSWER
    assert answer_to((ANSWER, 512)) == ANSWER


NOTICES: list[dict[str, Any]] = [
    *({"blocked": True}, {"request_denied": True}, {"result": None}, {"answer": None}, {"data": None}),
    *({"code": "RATE_LIMITED"}, {"status": "fehler"}, {"state": "wstrzymane"}, {"finish_reason": "error"}),
]


@each("notice", NOTICES)
def test_a_message_beside_a_field_that_says_nothing_was_produced_is_no_answer(notice: dict[str, Any]) -> None:
    """It is about the call. A text with the name of an answer is one."""
    assert answer_to({"message": ANSWER} | notice) is None
    assert answer_to(json.dumps(notice | {"message": ANSWER})) is None
    if "finish_reason" not in notice and "answer" not in notice:
        assert answer_to({"answer": ANSWER, "message": "It was processed."} | notice) == ANSWER


@each("notice", [{"blocked": False}, {"code": "00000"}, {"finish_reason": "stop"}, {"id": None}, {"ok": True}])
def test_a_message_beside_other_fields_is_the_answer(notice: dict[str, Any]) -> None:
    """Nothing says that there is none."""
    assert answer_to({"message": ANSWER} | notice) == ANSWER


@each("nothing", ["none", "null", "None", "", [], {}, None, False])
def test_an_error_that_is_none_is_no_failure(nothing: Any) -> None:
    """In whatever way it is written."""
    assert answer_to({"error": nothing, "answer": ANSWER}) == ANSWER


def test_a_number_with_the_name_of_an_answer_is_the_answer() -> None:
    """It is stored as text, unlike a Boolean."""
    assert (answer_to({"answer": 30}), answer_to({"answer": 2.5, "score": 1})) == ("30", "2.5")
    assert answer_to({"answer": True}) is None
    assert answer_to({"answer": 30, "response": 31}) is None


def test_a_body_in_base64_is_decoded_if_it_is_declared() -> None:
    """As AWS Lambda functions return and receive it. A damaged one is no answer."""
    body = b64encode(json.dumps({"answer": ANSWER}).encode()).decode()

    assert answer_to({"statusCode": 200, "isBase64Encoded": True, "body": body}) == ANSWER
    assert (
        answer_to({"statusCode": 200, "isBase64Encoded": True, "body": b64encode(ANSWER.encode()).decode()}) == ANSWER
    )
    for damaged in ("?", "/w=="):
        assert answer_to({"statusCode": 200, "isBase64Encoded": True, "body": damaged}) is None


PARTS = [
    ["Shoes can ", "be returned within", " thirty days."],
    ["Shoes can be returned within thirty days", "."],
    ["Shoes can ", "be returned within thirty days."],
]
WRAPPERS: list[Callable[[list[str]], Any]] = [
    lambda texts: {"content": [{"type": "text", "text": text} for text in texts]},
    lambda texts: [{"type": "text", "text": text} for text in texts],
    lambda texts: {"role": "assistant", "content": [{"text": text} for text in texts]},
    lambda texts: {"candidates": [{"content": {"parts": [{"text": text} for text in texts]}}]},
]


@each("wrap", WRAPPERS)
def test_the_parts_of_one_text_are_joined_without_a_separator(wrap: Callable[[list[str]], Any]) -> None:
    """Parts that each begin a text of their own are separated."""
    for parts in PARTS:
        assert answer_to(wrap(parts)) == ANSWER
    assert (
        answer_to(wrap(["\u8bf7\u5728", "\u4e09\u5341\u5929", "\uff0c\u9000\u8d27"]))
        == "\u8bf7\u5728\u4e09\u5341\u5929\uff0c\u9000\u8d27"
    )
    for start in ("", "* ", "# ", '"', "("):
        assert answer_to(wrap(["One text", f"{start}Two texts"])) == f"One text\n{start}Two texts"
