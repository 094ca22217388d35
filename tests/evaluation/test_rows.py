"""Conversion of rows in many formats to exchanges."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pandas as pd
import pytest
from opentelemetry.trace import INVALID_SPAN_ID, INVALID_TRACE_ID, format_span_id, format_trace_id

import germane
from germane.errors import UsageError
from germane.exchange import Context, Exchange, Message

pytestmark = pytest.mark.usefixtures("bare")
ROW = {"question": "How do I pay?", "answer": "0.5"}
TALK = [
    {"role": "user", "content": "Do you sell shoes?"},
    {"role": "assistant", "content": "Yes."},
    {"role": "user", "content": "How much?"},
]
HISTORY = (Message("user", "Do you sell shoes?"), Message("assistant", "Yes."))


def read(row: Any, numeric: Any, **options: Any) -> Exchange:
    """Return the exchange converted from a row."""
    return germane.evaluate([row], [numeric], **options).rows[0].exchange


def test_additional_columns_of_a_row_become_attributes(numeric: Any) -> None:
    """Only scalar values, such as labels, become attributes."""
    given = {"label": 1.0, "kind": "gold", "group": 7, "ok": True, "none": None, "nan": float("nan"), "meta": {"a": 1}}

    exchange = read({**ROW, **given, "count": np.int64(3), "share": np.float32(0.5)}, numeric)

    assert exchange.attributes == {"label": 1.0, "kind": "gold", "group": 7, "ok": True, "count": 3, "share": 0.5}
    assert [type(exchange.attributes[name]) for name in ("count", "share")] == [int, float]


def test_id_route_and_model_of_a_row_are_used(numeric: Any) -> None:
    """Rows without them get a new id and the route `evaluate`."""
    named = read({**ROW, "id": 7, "route": "support", "model": "m"}, numeric)
    other = read(ROW, numeric)

    assert (named.id, named.route, named.model) == ("7", "support", "m")
    assert (len(other.id), other.route, other.model) == (32, "evaluate", None)


def test_a_row_belongs_to_no_trace(numeric: Any) -> None:
    """Its trace and span have the ids that OpenTelemetry reserves for none."""
    exchange = read(ROW, numeric)

    assert exchange.trace_id == format_trace_id(INVALID_TRACE_ID)
    assert exchange.span_id == format_span_id(INVALID_SPAN_ID)


@pytest.mark.parametrize(
    "history",
    [
        TALK[:2],
        json.dumps(TALK[:2]),
        [{"role": "human", "text": "Do you sell shoes?"}, {"type": "ai", "content": "Yes."}],
        ["user: Do you sell shoes?", "agent: Yes."],
        ["Do you sell shoes?", "Yes.", None],
    ],
)
def test_the_history_of_a_row_can_consist_of_objects_strings_or_json(numeric: Any, history: Any) -> None:
    """A string may start with its role."""
    assert read({**ROW, "history": history}, numeric).history == HISTORY


@pytest.mark.parametrize("talk", [TALK, json.dumps(TALK)])
def test_the_last_user_message_of_a_conversation_is_the_question(numeric: Any, talk: Any) -> None:
    """Ragas stores the conversation in the question column. The earlier messages become the history."""
    exchange = read({"user_input": talk, "response": "0.5"}, numeric)

    assert (exchange.question, exchange.answer, exchange.history) == ("How much?", "0.5", HISTORY)


def test_the_reply_to_the_last_question_of_a_conversation_is_the_answer(numeric: Any) -> None:
    """This applies if no column contains an answer. The reply is never part of the history."""
    reply = {"role": "assistant", "content": "1.0"}

    assert read({"user_input": [*TALK, reply]}, numeric).answer == "1.0"
    assert read({"user_input": [*TALK, reply], "response": "0.5"}, numeric).answer == "0.5"
    assert read({"user_input": [*TALK, reply]}, numeric).history == HISTORY


def test_ragas_samples_are_accepted_as_rows(numeric: Any) -> None:
    """Ragas samples are pydantic models. Unset fields are omitted."""

    class Sample:
        def model_dump(self, *, exclude_none: bool) -> dict[str, Any]:
            assert exclude_none
            return {"user_input": "How?", "response": "0.5", "retrieved_contexts": ["one"]}

    assert read(Sample(), numeric).contexts == (Context("one"),)


def test_dotted_columns_refer_to_nested_objects(numeric: Any) -> None:
    """For example, `meta` can contain the earlier messages."""
    row = {"meta": {"q": {"text": "How?"}, "history": ["user: Do you sell shoes?", "agent: Yes."]}, "answer": "0.5"}

    exchange = read(row, numeric, columns={"question": "meta.q.text"})

    assert (exchange.question, exchange.history) == ("How?", HISTORY)


@pytest.mark.parametrize(
    ("cell", "contexts"),
    [
        ([{"text": "one", "id": 7, "score": 0.5}, {"page_content": "two"}], (Context("one", "7", 0.5), Context("two"))),
        (np.array(["one", "two"], dtype=object), (Context("one"), Context("two"))),
        ("['one', \"it's two\"]", (Context("one"), Context("it's two"))),
        ("[" * 1_000, (Context("[" * 1_000),)),
        ("\ud800", (Context("\ufffd"),)),
        ("[1, 2.5, null, NaN]", (Context("1"), Context("2.5"))),
        ([np.int64(1), None, float("nan"), pd.NA, pd.NaT], (Context("1"),)),
        (7, (Context("7"),)),
        ('{"text": "one", "id": 7, "score": 0.5}', (Context("one", "7", 0.5),)),
        ("{'page_content': 'two'}", (Context("two"),)),
        ('{"price": 3}', (Context('{"price": 3}'),)),
        (['{"price": 3, "note": null}', "one"], (Context('{"price": 3, "note": null}'), Context("one"))),
        (float("nan"), ()),
        (" ", ()),
    ],
)
def test_contexts_of_a_row_can_be_texts_numbers_or_objects(
    numeric: Any, cell: Any, contexts: tuple[Context, ...]
) -> None:
    """Only missing values are omitted. Lists and objects in Python syntax, as data frames write them, are accepted."""
    assert read({**ROW, "contexts": cell}, numeric).contexts == contexts


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ({**ROW, "answer": ["a", "b"]}, "row 0 has a list as its answer, not text: name the column"),
        ({**ROW, "contexts": "{'price': 3}"}, "row 0 has a context that is an object without text, content or"),
        ({**ROW, "answer": '{"price": 3}'}, "row 0 has an answer that is an object without text, content or"),
        ({**ROW, "contexts": [{"title": "x"}]}, "row 0 has a context that is an object without text, content or"),
        ({**ROW, "contexts": ["one", True]}, "row 0 has a bool as its context, not text"),
        ({**ROW, "contexts": "[[]]"}, "row 0 has a list as its context, not text"),
        ({**ROW, "contexts": [["a", "b"]]}, "row 0 has a list as its context, not text"),
        ({**ROW, "contexts": ["one", b"\xff"]}, "row 0 has bytes that are not UTF-8 as its context, not text"),
        ({**ROW, "history": 7}, "row 0 has a int in its history: messages must be strings or objects with role"),
        ({"user_input": TALK}, "row 0 has no column answer or response"),
    ],
)
def test_errors_about_a_row_name_the_row_and_the_cause(numeric: Any, row: Any, message: str) -> None:
    """An invalid row is an error and is never interpreted differently."""
    with pytest.raises(UsageError, match=message):
        read(row, numeric)


def test_pandas_data_frames_are_read(numeric: Any) -> None:
    """Numbers become texts, and missing values stay missing."""
    frame = pd.DataFrame({"question": ["How?", None], "answer": [0.5, float("nan")], "label": [1, 0]})

    first, second = (row.exchange for row in germane.evaluate(frame, [numeric]).rows)

    assert (first.question, first.answer, first.attributes) == ("How?", "0.5", {"label": 1})
    assert (second.question, second.answer) == (None, None)


class Dataset:
    """Minimal stand-in for a Hugging Face data set."""

    column_names = ("question", "answer")

    def __iter__(self) -> Any:
        return iter([ROW, ROW])


def test_hugging_face_data_sets_are_read(numeric: Any) -> None:
    """Hugging Face data sets are iterables of rows."""
    assert len(germane.evaluate(Dataset(), [numeric]).rows) == 2


def test_the_error_for_a_data_set_with_splits_names_the_splits(numeric: Any) -> None:
    """A data set loaded without selecting a split is a mapping of data sets."""
    with pytest.raises(UsageError, match=r"rows must be one split, such as rows\['train'\], not .* train, test"):
        germane.evaluate({"train": Dataset(), "test": Dataset()}, [numeric])


def test_the_limit_option_reads_only_the_first_rows(numeric: Any) -> None:
    """Rows beyond the limit may be invalid."""
    assert len(germane.evaluate([ROW, ROW, "wrong"], [numeric], limit=2).rows) == 2
