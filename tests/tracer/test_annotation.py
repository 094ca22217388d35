"""Feedback, recorded scores and markers: valid calls are recorded, invalid ones are dropped and logged once."""

from __future__ import annotations

import logging
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pytest
from tests.cases import each

import germane
from germane.annotation import Feedback, Marker, RecordedScore
from germane.errors import UsageError
from germane.testing import strict
from germane.tracer.connection import current_connection

SECRET = "4111-1111"


class Annotated:
    """A connected tracer, and the annotations that it recorded."""

    def __init__(self, connect: Callable[..., Any]) -> None:
        self._connect = connect
        self.annotations: list[Any] = []

    def connect(self, **settings: Any) -> Annotated:
        """Connect the tracer with these settings."""
        self._connect(annotate=self.annotations.append, **settings)
        return self


@pytest.fixture
def unconnected_annotated(unconnected: Any) -> Annotated:
    """A tracer that the test connects."""
    return Annotated(unconnected.connect)


@pytest.fixture
def annotated(unconnected_annotated: Annotated) -> Annotated:
    """A connected tracer that knows the scorer ``my_scorer``."""
    return unconnected_annotated.connect(scorers=frozenset({"my_scorer"}))


@pytest.fixture
def warnings(caplog: pytest.LogCaptureFixture) -> Callable[[], list[str]]:
    """A function that returns the warnings logged so far."""
    return lambda: [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING]


def test_feedback_reaches_the_sink(annotated: Annotated) -> None:
    """A label keeps its score, comment and user, and gets an id and a time."""
    before = datetime.now(UTC)
    germane.feedback("e1", score=0.0, comment="wrong product")
    germane.feedback("e1", True, user="ann")

    first, second = annotated.annotations
    assert isinstance(first, Feedback)
    assert (first.exchange_id, first.score, first.comment, first.user) == ("e1", 0.0, "wrong product", None)
    assert (second.score, second.comment, second.user) == (1.0, None, "ann")
    assert first.id != second.id
    assert before <= first.created_at <= second.created_at <= datetime.now(UTC)


def test_a_recorded_score_reaches_the_sink(annotated: Annotated) -> None:
    """NumPy numbers are converted. Details are copied, so later changes have no effect."""
    details = {"words": [1, np.float32(0.5)], "nested": {"why": "short"}, "none": None, "nan": float("nan")}
    germane.record_score("e1", "mine", np.float64(0.5), label="weak", explanation="short", details=details)
    details["words"] = []

    (found,) = annotated.annotations
    assert isinstance(found, RecordedScore)
    assert (found.exchange_id, found.name, found.value, found.label, found.explanation) == (
        "e1", "mine", 0.5, "weak", "short",
    )  # fmt: skip
    assert found.details == {"words": [1, 0.5], "nested": {"why": "short"}, "none": None, "nan": None}


def test_a_marker_reaches_the_sink(annotated: Annotated) -> None:
    """A marker has the current time in UTC, the configured service, and a copy of its attributes."""
    before, attributes = datetime.now(UTC), {"commit": "4f2a9c1", "chunks": [np.int64(512)]}
    germane.mark(" index v42\n", attributes=attributes)
    attributes["chunks"] = []
    germane.mark("n" * 10_000)

    first, second = annotated.annotations
    assert isinstance(first, Marker)
    assert (first.name, first.service, first.attributes) == (
        "index v42", current_connection().service, {"commit": "4f2a9c1", "chunks": [512]},  # type: ignore[union-attr]
    )  # fmt: skip
    assert before <= first.at <= second.at <= datetime.now(UTC)
    assert first.at.tzinfo is UTC
    assert first.id != second.id
    assert len(second.name) < 1000


def test_a_score_can_be_recorded_inside_the_handler(annotated: Annotated) -> None:
    """A handler records a score with the id of its current exchange."""

    @germane.observe
    def ask(question: str) -> str:
        germane.record_score(germane.current_exchange().id, "length", 0.25)
        return question

    ask("why?")

    assert annotated.annotations[0].exchange_id


def test_a_recorded_exchange_is_redacted_and_truncated_like_a_captured_one(unconnected: Any) -> None:
    """Contexts are read from any framework's objects, and the scores are recorded after the exchange."""
    annotations: list[Any] = []
    traced = unconnected.connect(
        annotate=annotations.append, redact=lambda text: text.replace(SECRET, "****"), max_text_length=30
    )

    identity = germane.record_exchange(
        f"Is {SECRET} valid?",
        "It is valid. " * 10,
        contexts=[f"The card {SECRET} is valid.", {"page_content": "Cards are valid.", "id": "doc-7"}],
        scores={"answer_relevancy": 0.75, "tone": np.float32(-0.5)},
        route="desk",
    )

    (exchange,) = traced.exchanges
    assert (exchange.id, exchange.route, exchange.traced, exchange.span_holder) == (identity, "desk", False, None)
    assert (exchange.question, len(exchange.answer or "")) == ("Is **** valid?", 30)
    assert [(context.text, context.id) for context in exchange.contexts] == [
        ("The card **** is valid.", None),
        ("Cards are valid.", "doc-7"),
    ]
    assert [(score.exchange_id, score.name, score.value) for score in annotations] == [
        (identity, "answer_relevancy", 0.75),
        (identity, "tone", -0.5),
    ]


def test_a_recorded_exchange_has_no_text_if_capture_is_none(unconnected: Any) -> None:
    """Its scores are recorded."""
    annotations: list[Any] = []
    traced = unconnected.connect(annotate=annotations.append, capture="none")

    assert germane.record_exchange("How?", "So.", contexts=["a"], scores={"tone": 1.0})

    (exchange,) = traced.exchanges
    assert (exchange.question, exchange.answer, exchange.contexts) == (None, None, ())
    assert [score.name for score in annotations] == ["tone"]


def test_recording_an_exchange_before_start_has_no_effect(warnings: Callable[[], list[str]]) -> None:
    """The call returns None, and the reason is logged."""
    assert germane.record_exchange("How?", "So.") is None
    assert "germane is not running" in warnings()[0]


WRONG: list[Callable[[], object]] = [
    lambda: germane.feedback(7, 1.0),  # type: ignore[arg-type]
    lambda: germane.feedback("", 1.0),
    lambda: germane.feedback("e1", 1.5),
    lambda: germane.feedback("e1", -0.5),
    lambda: germane.feedback("e1", float("nan")),
    lambda: germane.feedback("e1", "good"),  # type: ignore[arg-type]
    lambda: germane.feedback("e1", 1.0, comment=object()),  # type: ignore[arg-type]
    lambda: germane.record_score("e1", "", 0.5),
    lambda: germane.record_score("e1", "mine", None),  # type: ignore[arg-type]
    lambda: germane.record_score("e1", "mine", 7),
    lambda: germane.record_exchange("How?", "So.", scores={"my_scorer": 0.5}),
    lambda: germane.record_exchange("How?", "So.", scores=["mine"]),  # type: ignore[arg-type]
    lambda: germane.record_exchange("How?", "So.", contexts=[object()]),
    lambda: germane.record_exchange("How?", "So.", route=""),
    lambda: germane.record_score("e1", "my_scorer", 0.5),
    lambda: germane.record_score("e1", "mine", 0.5, details=["a"]),  # type: ignore[arg-type]
    lambda: germane.record_score("e1", "mine", 0.5, details={"a": "b" * 20_000}),
    lambda: germane.record_score("e1", "mine", 0.5, details={"a": object()}),
    lambda: germane.mark(" "),
    lambda: germane.mark(42),  # type: ignore[arg-type]
    lambda: germane.mark("v1", attributes=["a"]),  # type: ignore[arg-type]
    lambda: germane.mark("v1", attributes={"a": "b" * 20_000}),
    lambda: germane.mark("v1", attributes={"a": object()}),
]


@each("call", WRONG)
def test_invalid_annotation_calls_raise_only_in_strict_mode(annotated: Annotated, call: Callable[[], object]) -> None:
    """An invalid annotation is dropped without an error. In strict mode, it raises."""
    call()
    assert annotated.annotations == []
    with strict(), pytest.raises(UsageError):
        call()


def test_invalid_annotation_calls_are_logged_once_and_counted(
    annotated: Annotated, warnings: Callable[[], list[str]]
) -> None:
    """The log contains one line per mistake, and the total number when the tracer disconnects."""
    for _ in range(5):
        germane.feedback("e1", 93)
    connection = current_connection()

    assert len([line for line in warnings() if "score must be from 0 to 1" in line]) <= 1
    assert connection is not None
    assert connection.rejected_calls == {"feedback": 5}
    germane.tracer.disconnect()
    assert "germane.feedback() was called 5 times with invalid arguments, which were dropped" in warnings()


def test_the_warning_states_that_the_annotation_was_not_recorded(
    annotated: Annotated, warnings: Callable[[], list[str]]
) -> None:
    """The message names the call and the mistake. It does not mention a handler, because there may be none."""
    germane.record_score("e1", "mine", 0.5, details=type("Unheard", (), {})())

    assert annotated.annotations == []
    assert warnings() == [
        "recording failed: germane.record_score(): details must be a mapping, not Unheard (the caller is not affected)"
    ]


class EndlessDetails(dict[str, Any]):
    """Details with an infinite number of items."""

    walked = 0

    def items(self) -> Any:
        """Yield items forever."""
        while True:
            self.walked += 1
            yield "n", self.walked


@each("deep", [False, True])
def test_huge_score_details_are_read_only_up_to_the_maximum_length(annotated: Annotated, deep: bool) -> None:
    """Details are not read beyond their maximum length, because the caller is waiting."""
    endless = EndlessDetails()

    germane.record_score("e1", "mine", 0.5, details={"a": [endless]} if deep else endless)

    assert annotated.annotations == []
    assert 0 < endless.walked <= 10_000


def test_circular_score_details_are_rejected(annotated: Annotated) -> None:
    """Details that contain themselves are dropped."""
    circle: dict[str, Any] = {}
    circle["self"] = circle

    germane.record_score("e1", "mine", 0.5, details=circle)

    assert annotated.annotations == []


def test_annotation_texts_are_redacted_and_truncated(unconnected_annotated: Annotated) -> None:
    """Comments, explanations and texts in details are treated like captured texts."""
    annotated = unconnected_annotated.connect(redact=lambda text: text.replace(SECRET, "****"), max_text_length=100)
    germane.feedback("e1", 0.0, comment=f"card {SECRET} " + "x" * 200)
    germane.record_score("e1", "mine", 0.5, explanation=f"saw {SECRET}", details={"seen": [f"of {SECRET}"]})

    assert SECRET not in repr(annotated.annotations)
    assert [len(annotated.annotations[0].comment), annotated.annotations[1].explanation] == [100, "saw ****"]


def test_failed_redaction_drops_only_the_comment_of_a_label(unconnected_annotated: Annotated) -> None:
    """The label is recorded without its comment."""
    annotated = unconnected_annotated.connect(redact=lambda text: text.missing)  # type: ignore[attr-defined]
    germane.feedback("e1", 0.0, comment=SECRET)

    assert [(one.score, one.comment) for one in annotated.annotations] == [(0.0, None)]


def test_annotations_have_no_text_if_capture_is_none(unconnected_annotated: Annotated) -> None:
    """Only numbers are recorded: scores, values and numbers in details."""
    annotated = unconnected_annotated.connect(capture="none")
    germane.feedback("e1", 0.0, comment=SECRET)
    germane.record_score("e1", "mine", 0.5, explanation=SECRET, details={"a": SECRET, "n": 1})

    label, score = annotated.annotations
    assert (label.comment, score.explanation, score.details) == (None, None, {"a": None, "n": 1})


def test_an_error_while_recording_an_annotation_does_not_reach_the_caller(unconnected: Any) -> None:
    """An error inside germane is not raised to the caller."""
    unconnected.connect(annotate=lambda _: [].pop())

    germane.feedback("e1", 1.0)


def test_an_annotation_with_the_exchange_id_none_is_not_recorded(annotated: Annotated) -> None:
    """A handler may annotate exchanges that are not recorded, even in strict mode."""
    with strict():
        germane.record_score(germane.current_exchange().id, "length", 0.25)
        germane.feedback(None, 1.0)

    connection = current_connection()
    assert connection is not None
    assert (annotated.annotations, connection.rejected_calls) == ([], {})


def test_annotations_before_start_have_no_effect() -> None:
    """An application's tests can call its handlers without starting germane."""
    germane.feedback("e1", 1.0)
    germane.record_score("e1", "mine", 1.0)
    germane.mark("v1")
