"""Watched traces: every trace counts once, and each reason says what to do."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from germane.insights import load_watched_traces
from germane.insights.watched_traces import NOTABLE_SHARE, _summarize
from germane.recognizers import UnreadableReason
from germane.storage import TrackingStore

NOON = datetime(2026, 2, 1, 12, tzinfo=UTC)
HOUR = int(NOON.timestamp()) // 3600
OPENAI = "opentelemetry.instrumentation.genai.openai"
OUTCOMES = ["recognized", *UnreadableReason, "a_reason_of_a_newer_version"]


@pytest.fixture
def store(tmp_path: Path) -> Iterator[TrackingStore]:
    """An empty database."""
    with closing(TrackingStore(f"sqlite:///{tmp_path}/germane.db", clock=lambda: NOON)) as opened:
        opened.migrate()
        yield opened


@given(st.dictionaries(st.sampled_from(OUTCOMES), st.integers(1, 10**9)))
def test_the_number_of_seen_traces_is_the_sum_of_all_outcomes(counts: dict[str, int]) -> None:
    """For any counts, seen = recognized + without an exchange + unreadable."""
    traces = _summarize("shop", OPENAI, counts, {})

    assert traces.seen == sum(counts.values())
    assert traces.seen == traces.recognized + traces.without_exchange + traces.unreadable
    assert traces.recognized == counts.get("recognized", 0)
    assert all(reason.meaning and reason.fix for reason in traces.reasons)


def test_watched_traces_are_counted_by_service_and_scope_within_the_window(store: TrackingStore) -> None:
    """The window has whole hours; one service can be selected."""
    store.exchanges.count_watched(
        {
            (HOUR, "shop", OPENAI, "content_capture_off"): 7,
            (HOUR, "desk", OPENAI, "recognized"): 3,
            (HOUR - 1, "shop", OPENAI, "recognized"): 100,
            (HOUR + 1, "shop", OPENAI, "recognized"): 1000,
        }
    )
    window = {"since": NOON + timedelta(minutes=20), "until": NOON + timedelta(hours=1)}

    found = load_watched_traces(store, **window)
    assert [(traces.service, traces.seen, traces.unreadable) for traces in found.scopes] == [
        ("desk", 3, 0),
        ("shop", 7, 7),
    ]
    assert found.reasons[0].fix.startswith("set OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT=SPAN_ONLY")
    assert load_watched_traces(store, **window, service="desk").seen == 3
    assert load_watched_traces(store, since=NOON - timedelta(hours=1)).seen == 1110


def test_the_headline_on_watched_traces_states_the_most_common_reason(store: TrackingStore) -> None:
    """It is worth mentioning if at least one trace in a hundred is unreadable."""
    assert not load_watched_traces(store, since=NOON).is_notable
    store.exchanges.count_watched({(HOUR, "shop", OPENAI, "recognized"): 1180, (HOUR, "shop", OPENAI, "no_answer"): 24})

    found = load_watched_traces(store, since=NOON)
    assert found.is_notable
    assert found.headline == "24 of 1,204 traces could not be read: the trace has a question, but no answer"

    store.exchanges.count_watched({(HOUR, "shop", OPENAI, "incomplete"): 1})
    assert ", mostly because " in load_watched_traces(store, since=NOON).headline

    store.exchanges.count_watched({(HOUR, "shop", OPENAI, "recognized"): round(25 / NOTABLE_SHARE)})
    assert not load_watched_traces(store, since=NOON).is_notable
