"""Feedback, recorded scores and markers from an application."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import pytest

import germane
from germane.testing import FakeJudge

Query = Callable[[str], list[Any]]
Run = Callable[..., tuple[str, str]]

HANDLER = """
import os, sys, germane
ids = []
@germane.observe
def ask(question: str) -> str:
    ids.append(germane.current_exchange().id)
    germane.record_score(ids[-1], "length", 0.5)
    return "By card."
"""


@germane.observe
def ask(question: str) -> str:
    """Record a score of the current exchange, and return its id."""
    identity = germane.current_exchange().id or ""
    germane.record_score(identity, "length", 0.25, details={"words": 1})
    return identity


def test_stopping_germane_writes_queued_annotations(database: str, query: Query) -> None:
    """The annotations are a score recorded in a handler, and feedback from a later request."""
    germane.start(role="capture", database=database, redact=lambda text: text.replace("card", "****"))
    identity = ask("How do I pay?")
    germane.feedback(identity, score=0.0, comment="no card", user="ann")

    assert germane.stop(60)

    assert query("SELECT exchange_id, score, comment, user FROM feedback") == [(identity, 0.0, "no ****", "ann")]
    assert query("SELECT exchange_id, scorer, value FROM score") == [(identity, "length", 0.25)]
    store = germane.Store(database)
    assert [(one.scorer, one.seen, one.scored) for one in store.trends.coverage() if one.scorer] == [("length", 1, 1)]
    store.close()


@pytest.mark.slow
def test_feedback_can_come_from_another_process(run: Run, query: Query) -> None:
    """The other process refers to the exchange by its id."""
    start = "germane.start(role='capture')\n"
    printed, _ = run(HANDLER + start + "ask('How?'); print(ids[0])")
    identity = printed.strip()
    later = f"import germane\n{start}germane.feedback('{identity}', 1.0)\ngermane.record_score('{identity}', 'x', 1)"

    assert run(later) == ("", "")

    assert query("SELECT exchange_id FROM feedback") == [identity]
    assert sorted(query("SELECT scorer FROM score")) == ["length", "x"]


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")
def test_a_forked_worker_writes_its_own_annotations(run: Run, query: Query) -> None:
    """Annotations from before and after the fork are written exactly once."""
    code = """
germane.start(role='capture')
ask('before')
child = os.fork()
ask('child' if child == 0 else 'parent')
germane.feedback(ids[-1], 1.0)
if child:
    os.waitpid(child, 0)
germane.stop()
"""
    assert run(HANDLER + code) == ("", "")

    assert query("SELECT count(*) FROM exchange") == [3]
    assert query("SELECT count(*) FROM score") == [3]
    assert query("SELECT count(DISTINCT exchange_id) FROM feedback") == [2]


def test_recorded_scores_named_like_a_built_in_scorer_have_their_own_fingerprint(
    judge: FakeJudge, database: str, query: Query
) -> None:
    """Recorded scores are never averaged with germane's own scores, and germane does not judge these answers again."""
    germane.start(**judge.settings(), database=database, poll_interval=0.05)
    identity = germane.record_exchange(
        "How do I pay?", "By card.", contexts=["We accept cards."], scores={"answer_relevancy": 0.8, "mine": -0.5}
    )
    other = germane.record_exchange("How do I pay by card?", "At the desk.", route="import")
    germane.record_score(identity, "faithfulness", 1.0, label="relevant")
    assert germane.stop(60, drain_timeout=60)

    scores = query("SELECT exchange_id || ' ' || scorer || ' ' || fingerprint || ' ' || value FROM score")
    overall, *recorded = sorted(score for score in scores if score.startswith(str(identity)))
    assert overall.startswith(f"{identity} answer_quality external 0.91")
    assert recorded == [
        f"{identity} answer_relevancy external 0.8",
        f"{identity} faithfulness external 1.0",
        f"{identity} mine external -0.5",
    ]
    (judged,) = (score for score in scores if score.startswith(str(other)))
    assert "answer_relevancy" in judged
    assert "external" not in judged
    coverage = germane.Store(database).trends.coverage()
    counts = {(each.route, each.scorer): (each.seen, each.scored) for each in coverage if each.seen}
    assert counts["recorded", "answer_relevancy"] == counts["import", "answer_relevancy"] == (1, 1)


def test_no_part_of_an_invalid_recorded_exchange_is_stored(
    judge: FakeJudge, database: str, query: Query, warnings: Callable[[], list[str]]
) -> None:
    """Nothing is stored, and the reason is logged. The caller gets None."""
    germane.start(**judge.settings(), database=database, poll_interval=0.05)
    assert germane.record_exchange("How?", "So.", scores={"mine": 7}) is None
    assert germane.record_exchange("How?", None) is None  # type: ignore[arg-type]
    assert germane.record_exchange("How?", "So.", scores={"": 0.5}) is None
    assert germane.stop(60)

    assert query("SELECT count(*) FROM exchange") == [0]
    assert "the score mine must be between -1 and 1" in warnings()[0]


def test_a_marker_has_the_configured_service(database: str) -> None:
    """This works immediately after the start, before the first exchange. A comparison finds the marker by name."""
    germane.start(role="capture", database=database, service="shop")
    germane.mark("index v42", attributes={"commit": "4f2a9c1"})
    ask("How?")
    assert germane.stop(60)

    store = germane.Store(database)
    (mark,) = store.trends.list_markers(name="index v42")
    assert (mark.service, mark.attributes) == ("shop", {"commit": "4f2a9c1"})
    assert [line.finding for line in store.trends.compare(since=mark).routes] == ["not_enough_data"]
    store.close()
