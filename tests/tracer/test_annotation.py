"""Feedback and scores made elsewhere: taken as given, refused once and harmlessly where they cannot be kept."""

from __future__ import annotations

import logging
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pytest

import germane
from germane.annotation import Feedback, Marker, RecordedScore
from germane.errors import UsageError
from germane.testing import strict
from germane.tracer.connection import current_connection

SECRET = "4111-1111"


class Kept:
    """A connected tracer, and what it was told."""

    def __init__(self, connect: Callable[..., Any]) -> None:
        self._connect = connect
        self.annotations: list[Any] = []

    def connect(self, **settings: Any) -> Kept:
        """Connect with these settings."""
        self._connect(annotate=self.annotations.append, **settings)
        return self


@pytest.fixture
def unconnected_kept(unconnected: Any) -> Kept:
    """What is not connected yet."""
    return Kept(unconnected.connect)


@pytest.fixture
def kept(unconnected_kept: Kept) -> Kept:
    """What was told so far."""
    return unconnected_kept.connect(scorers=frozenset({"my_scorer"}))


@pytest.fixture
def warned(caplog: pytest.LogCaptureFixture) -> Callable[[], list[str]]:
    """Returns the warnings so far."""
    return lambda: [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING]


def test_feedback_is_kept_as_it_is_given(kept: Kept) -> None:
    """With an id and a time of its own."""
    before = datetime.now(UTC)
    germane.feedback("e1", score=0.0, comment="wrong product")
    germane.feedback("e1", True, user="ann")

    first, second = kept.annotations
    assert isinstance(first, Feedback)
    assert (first.exchange_id, first.score, first.comment, first.user) == ("e1", 0.0, "wrong product", None)
    assert (second.score, second.comment, second.user) == (1.0, None, "ann")
    assert first.id != second.id
    assert before <= first.created_at <= second.created_at <= datetime.now(UTC)


def test_a_score_is_kept_as_it_is_given(kept: Kept) -> None:
    """Numbers of numpy's are numbers; details are copied, so that changing them later changes nothing."""
    details = {"words": [1, np.float32(0.5)], "nested": {"why": "short"}, "none": None, "nan": float("nan")}
    germane.record_score("e1", "mine", np.float64(0.5), label="weak", explanation="short", details=details)
    details["words"] = []

    (found,) = kept.annotations
    assert isinstance(found, RecordedScore)
    assert (found.exchange_id, found.name, found.value, found.label, found.explanation) == (
        "e1", "mine", 0.5, "weak", "short",
    )  # fmt: skip
    assert found.details == {"words": [1, 0.5], "nested": {"why": "short"}, "none": None, "nan": None}


def test_a_mark_is_kept_as_it_is_given(kept: Kept) -> None:
    """At this moment in UTC, of the service of the settings; attributes are copied."""
    before, attributes = datetime.now(UTC), {"commit": "4f2a9c1", "chunks": [np.int64(512)]}
    germane.mark(" index v42\n", attributes=attributes)
    attributes["chunks"] = []
    germane.mark("n" * 10_000)

    first, second = kept.annotations
    assert isinstance(first, Marker)
    assert (first.name, first.service, first.attributes) == (
        "index v42", current_connection().service, {"commit": "4f2a9c1", "chunks": [512]},  # type: ignore[union-attr]
    )  # fmt: skip
    assert before <= first.at <= second.at <= datetime.now(UTC)
    assert first.at.tzinfo is UTC
    assert first.id != second.id
    assert len(second.name) < 1000


def test_it_can_be_said_from_inside_the_handler(kept: Kept) -> None:
    """By the id of the exchange under way."""

    @germane.observe
    def ask(question: str) -> str:
        germane.record_score(germane.current_exchange().id, "length", 0.25)
        return question

    ask("why?")

    assert kept.annotations[0].exchange_id


WRONG: list[Callable[[], None]] = [
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
    lambda: germane.record_score("e1", "faithfulness", 0.5),
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


@pytest.mark.parametrize("call", WRONG, ids=range(len(WRONG)))
def test_a_wrong_call_harms_nobody_but_a_strict_test(kept: Kept, call: Callable[[], None]) -> None:
    """It keeps nothing and raises nothing; in strict mode it raises."""
    call()
    assert kept.annotations == []
    with strict(), pytest.raises(UsageError):
        call()


def test_wrong_calls_are_said_once_and_counted(kept: Kept, warned: Callable[[], list[str]]) -> None:
    """Not a line for every request; the sum comes with the disconnection."""
    for _ in range(5):
        germane.feedback("e1", 93)
    connection = current_connection()

    assert len([line for line in warned() if "score must be from 0 to 1" in line]) <= 1
    assert connection is not None
    assert connection.rejected_calls == {"feedback": 5}
    germane.tracer.disconnect()
    assert "germane.feedback() was called 5 times with invalid arguments, which were dropped" in warned()


def test_what_is_not_kept_is_called_so(kept: Kept, warned: Callable[[], list[str]]) -> None:
    """Nothing was to be captured, and there may be no handler."""
    germane.record_score("e1", "mine", 0.5, details=type("Unheard", (), {})())

    assert kept.annotations == []
    assert warned() == [
        "not recorded, germane.record_score(): details must be a mapping, not Unheard (the caller is not affected)"
    ]


class Endless(dict[str, Any]):
    """Details without an end."""

    walked = 0

    def items(self) -> Any:
        """Return one after another."""
        while True:
            self.walked += 1
            yield "n", self.walked


@pytest.mark.parametrize("deep", [False, True])
def test_of_huge_details_no_more_is_looked_at_than_may_be_kept(kept: Kept, deep: bool) -> None:
    """The caller waits for it."""
    endless = Endless()

    germane.record_score("e1", "mine", 0.5, details={"a": [endless]} if deep else endless)

    assert kept.annotations == []
    assert 0 < endless.walked <= 10_000


def test_details_in_a_circle_are_refused(kept: Kept) -> None:
    """Rather than followed for ever."""
    circle: dict[str, Any] = {}
    circle["self"] = circle

    germane.record_score("e1", "mine", 0.5, details=circle)

    assert kept.annotations == []


def test_texts_are_redacted_and_cut(unconnected_kept: Kept) -> None:
    """Comments, explanations and the texts in details, as captured texts are; a redaction that fails drops the text."""
    kept = unconnected_kept.connect(redact=lambda text: text.replace(SECRET, "****"), max_text_length=100)
    germane.feedback("e1", 0.0, comment=f"card {SECRET} " + "x" * 200)
    germane.record_score("e1", "mine", 0.5, explanation=f"saw {SECRET}", details={"seen": [f"of {SECRET}"]})

    assert SECRET not in repr(kept.annotations)
    assert [len(kept.annotations[0].comment), kept.annotations[1].explanation] == [100, "saw ****"]


def test_a_redaction_that_fails_drops_the_text_alone(unconnected_kept: Kept) -> None:
    """The label itself is kept."""
    kept = unconnected_kept.connect(redact=lambda text: text.missing)  # type: ignore[attr-defined]
    germane.feedback("e1", 0.0, comment=SECRET)

    assert [(one.score, one.comment) for one in kept.annotations] == [(0.0, None)]


def test_capture_none_keeps_no_text(unconnected_kept: Kept) -> None:
    """Labels and values stay."""
    kept = unconnected_kept.connect(capture="none")
    germane.feedback("e1", 0.0, comment=SECRET)
    germane.record_score("e1", "mine", 0.5, explanation=SECRET, details={"a": SECRET, "n": 1})

    assert [kept.annotations[0].comment, kept.annotations[1].explanation, kept.annotations[1].details] == [
        None, None, {"a": None, "n": 1},
    ]  # fmt: skip


def test_a_sink_that_fails_harms_nobody(unconnected: Any) -> None:
    """Whatever goes wrong on our side stays there."""
    unconnected.connect(annotate=lambda _: [].pop())

    germane.feedback("e1", 1.0)


def test_the_id_of_what_is_not_recorded_keeps_nothing(kept: Kept) -> None:
    """A handler may record a score of every exchange, recorded or not; in a strict test too."""
    with strict():
        germane.record_score(germane.current_exchange().id, "length", 0.25)
        germane.feedback(None, 1.0)

    connection = current_connection()
    assert connection is not None
    assert (kept.annotations, connection.rejected_calls) == ([], {})


def test_where_germane_does_not_run_nothing_happens() -> None:
    """Not even an error: tests of an application call its handlers without it."""
    germane.feedback("e1", 1.0)
    germane.record_score("e1", "mine", 1.0)
    germane.mark("v1")
