"""Watched traces on the worker page, the overview and the first steps, and the page of an unreadable trace."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import timedelta

from starlette.testclient import TestClient
from tests.dashboard.conftest import BOTH, Week
from tests.dashboard.hostile import TEXTS
from tests.dashboard.page_client import open_dashboard
from tests.dashboard.seeding import NOW, SERVICE
from tests.dashboard.seeding_traces import LANGCHAIN, OPENAI, add_watched_traces, sample_trace

from germane.insights import load_watched_traces
from germane.storage import TrackingStore
from germane.trace_outline import AttributeOutline, SpanOutline, UnreadableTrace

TEXT = re.compile(r"<[^>]+>")


def words(html: str) -> str:
    """Return the visible text of a page."""
    return " ".join(TEXT.sub(" ", html.partition("<main")[2]).split())


def test_watched_traces_are_counted_by_scope_with_the_fix_for_each_reason(own_week: Week, own_page: TestClient) -> None:
    """The numbers add up, each reason says what to do, and links lead to the newest unreadable traces."""
    add_watched_traces(own_week.store, "desk", NOW, {(OPENAI, "content_capture_off"): 7})
    text = own_page.get("/worker").text
    shown = words(text.partition('id="traces"')[2].partition("</section>")[0].join(("<main", "")))

    assert f"{LANGCHAIN} handbook 1,189 1,180 4 5" in shown
    assert f"{OPENAI} desk 7 0 0 7" in shown
    assert "7 The instrumentation does not record questions and answers" in shown
    assert "Set OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT=SPAN_ONLY" in shown
    links = re.findall(r'href="(/traces/\w+[^"]*)"', text)
    assert len(links) == 6
    assert all(own_page.get(link).status_code == 200 for link in links)


def test_pages_without_watched_traces_do_not_mention_them(store: TrackingStore) -> None:
    """Most applications decorate their handlers."""
    with open_dashboard(store) as client:
        assert "Watched traces" not in client.get("/worker").text
        assert "could not be read" not in client.get("/").text


def test_overview_mentions_a_notable_share_of_unreadable_traces(own_week: Week, own_page: TestClient) -> None:
    """The share covers all services, because an application without content capture has no answers."""
    assert "could not be read" not in own_page.get("/").text
    add_watched_traces(own_week.store, "desk", NOW, {(OPENAI, "content_capture_off"): 300})
    text = own_page.get("/").text

    summary = load_watched_traces(own_week.store, since=NOW - timedelta(days=7))
    assert (summary.unreadable, summary.seen) == (305, 1489)
    assert summary.headline in words(text)
    link = re.search(r'href="(/worker[^"]*)#traces">305', text)
    assert link is not None
    assert "window=7d" in link[1]
    assert 'id="traces"' in own_page.get(link[1]).text
    assert "could not be read" not in own_page.get(f"/?service={SERVICE}").text


def test_the_first_steps_show_the_number_of_watched_traces(store: TrackingStore) -> None:
    """The page says what to do if none of them can be read."""
    add_watched_traces(store, "desk", NOW, {(OPENAI, "content_capture_off"): 7})
    with open_dashboard(store) as client:
        shown = words(client.get("/").text)

    assert load_watched_traces(store, since=NOW - timedelta(days=1)).headline in shown
    assert f"7 of {OPENAI} in desk: set OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT=SPAN_ONLY" in shown


def test_the_page_of_an_unreadable_trace_shows_what_is_missing(store: TrackingStore) -> None:
    """The spans as a tree, the attributes with types and lengths, and those that germane looks for."""
    traces = [
        sample_trace(1, "desk", NOW, OPENAI, "content_capture_off"),
        sample_trace(2, "desk", NOW, LANGCHAIN, "no_answer"),
    ]
    store.unreadable.add(traces)
    with open_dashboard(store) as client:
        first, second = (words(client.get(f"/traces/{trace.trace_id}").text) for trace in traces)

    assert "no attribute for the question and no attribute for the answer" in first
    assert "germane reads it from gen_ai.output.messages" in first
    assert "gen_ai.response.finish_reasons list, 1 item" in first
    assert "The trace has no attribute for the answer." in second
    assert "input.value string, 24 characters question" in second
    assert "invoice" not in second


def test_the_tree_of_a_deep_trace_fits_on_the_page(store: TrackingStore) -> None:
    """Spans below the sixth level are shown at that level."""
    span = SpanOutline(name="s", scope="s", kind="INTERNAL", status="ERROR", depth=0, duration=0.1)
    spans = tuple(replace(span, name=f"span {depth}", depth=depth) for depth in range(100))
    trace = UnreadableTrace(
        trace_id="1", service="s", scope="s", reason="new_reason", started_at=NOW, spans=spans, spans_omitted=3
    )
    store.unreadable.add([trace])
    with open_dashboard(store) as client:
        text = client.get("/traces/1").text

    assert text.count('<ul class="chunks">') == 6
    assert len(re.findall(r"span \d+<", text)) == 100
    assert "and 3 more spans" in text
    assert "New reason." in text


@BOTH
def test_hostile_names_of_scopes_and_spans_are_escaped(store: TrackingStore) -> None:
    """The application, or whoever sends spans, chooses all names."""
    for number, hostile in enumerate(text[:300] for text in TEXTS.values()):
        attributes = (AttributeOutline(name=hostile, type=hostile, length=1, record=hostile),)
        span = SpanOutline(
            name=hostile, scope=hostile, kind=hostile, status="OK", depth=0, duration=1.0, attributes=attributes
        )
        trace = UnreadableTrace(
            trace_id=str(number), service=hostile, scope=hostile, reason=hostile, started_at=NOW, spans=(span,)
        )
        hour = int(NOW.timestamp()) // 3600
        store.exchanges.count_watched({(hour, hostile, hostile, hostile): 1})
        store.unreadable.add([trace])
    with open_dashboard(store) as client:
        pages = [client.get(path) for path in ("/", "/worker", *(f"/traces/{number}" for number in range(len(TEXTS))))]

    assert [page.status_code for page in pages] == [200] * len(pages)
    for page in pages:
        assert not re.search(r"<script>|<img|<svg onload|<b>Jack", page.text)


def test_an_unknown_trace_gets_status_404(store: TrackingStore) -> None:
    """The page says that traces are kept for a week."""
    with open_dashboard(store) as client:
        answer = client.get("/traces/unknown")

    assert answer.status_code == 404
    assert "for a week" in answer.text
