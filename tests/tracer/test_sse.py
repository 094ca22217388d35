"""Server-sent events: recognized by content type or by complete, valid events. Any other text is kept unchanged."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from starlette.responses import StreamingResponse
from tests.cases import each

import germane
from germane.tracer.sse import EventReader

STARTS = ["id:", "data:", "event:", "retry:", ":", "d", "\n", "\ufeff", ""]
LINES = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\r\n\x00\ufeff"), max_size=12)
PER_EXAMPLE = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])


def answer_to(traced: Any, chunks: list[Any]) -> str | None:
    """Return the answer captured from a generator of these chunks."""

    @germane.observe(route="ask")
    def ask(_question: str) -> Iterator[Any]:
        yield from chunks

    assert list(ask("Why?")) == chunks
    return traced.exchanges[-1].answer  # type: ignore[no-any-return]  # the fixture is untyped


def cut(text: str, positions: list[int]) -> list[str]:
    """Cut a text at these positions."""
    ends = sorted({0, len(text), *(position % (len(text) + 1) for position in positions)})
    return [text[start:end] for start, end in pairwise(ends)]


@each("encoded", [False, True])
@PER_EXAMPLE
@given(start=st.sampled_from(STARTS), lines=st.lists(LINES, min_size=1), cuts=st.lists(st.integers(0, 200)))
def test_a_stream_of_text_without_events_is_kept_in_full(
    traced: Any, start: str, lines: list[str], cuts: list[int], encoded: bool
) -> None:
    """A text that begins like an event but continues with other lines is the answer, however it is split."""
    traced.clear()
    text = start + "\n".join([*lines, "name: Paris", ""])
    chunks: list[Any] = [part.encode() if encoded else part for part in cut(text, cuts)]

    assert answer_to(traced, chunks) == text


@each("line_break", ["\n", "\r\n", "\r"])
@PER_EXAMPLE
@given(events=st.lists(st.lists(LINES, min_size=1, max_size=3), min_size=1), cuts=st.lists(st.integers(0, 200)))
def test_a_stream_of_valid_events_yields_the_data_of_the_events(
    traced: Any, events: list[list[str]], cuts: list[int], line_break: str
) -> None:
    """Without a content type, complete events are read, however they are split and whatever their line endings are."""
    traced.clear()
    blocks = ["".join(f"data: {line}{line_break}" for line in lines) + line_break for lines in events]

    answer = answer_to(traced, cut(f"id: 1{line_break}" + ": ping" + line_break + "".join(blocks), cuts))

    assert (answer or "") == "".join("\n".join(lines) for lines in events if lines != ["[DONE]"])


@each(
    "chunks",
    [
        ["id: 42\nname: Paris\n"],
        [":tada: Done!\n"],
        [":tada: Done!\n\n"],
        ["data: 1\n"],
        ["retry: later\n", "Then it works.\n"],
        ["event: party\n\n"],
        ["data: first\n\n", "and then plain text"],
        ["id: 4"],
        ["d", "ata"],
    ],
)
def test_text_that_only_begins_like_an_event_is_the_answer(traced: Any, chunks: list[str]) -> None:
    """A field without a complete event is text."""
    traced.clear()
    assert answer_to(traced, chunks) == "".join(chunks)


def streamed(traced: Any, chunks: list[Any], media_type: str | None, **options: Any) -> str | None:
    """Return the answer captured from a streaming response."""

    @germane.observe(route=f"{media_type}", **options)
    def ask(_question: str) -> StreamingResponse:
        return StreamingResponse(iter(chunks), media_type=media_type)

    async def read() -> list[Any]:
        return [chunk async for chunk in ask("Why?").body_iterator]

    assert asyncio.run(read()) == chunks
    return traced.exchanges[-1].answer  # type: ignore[no-any-return]  # the fixture is untyped


@PER_EXAMPLE
@given(
    st.lists(LINES, min_size=1, max_size=4),
    st.sampled_from(["text/plain", "text/markdown", "Text/HTML; charset=utf-8", "application/x-ndjson", "text/csv"]),
    st.lists(st.integers(0, 100), max_size=4),
)
def test_the_declared_content_type_determines_whether_a_stream_contains_events(
    traced: Any, lines: list[str], media_type: str, cuts: list[int]
) -> None:
    """A text that consists of valid events is plain text if its content type says so."""
    text = "".join(f"data: {line}\n\n" for line in lines)

    assert streamed(traced, cut(text, cuts), media_type) == text
    declared = streamed(traced, cut(text, cuts), "TEXT/Event-Stream; charset=utf-8")
    assert declared == streamed(traced, cut(text, cuts), None)
    assert (declared or "") == "".join(line for line in lines if line != "[DONE]")


@each("media_type", ["application/octet-stream", "application/pdf", "image/png", "audio/mpeg", "x"])
def test_a_stream_that_is_not_text_is_reported(traced: Any, media_type: str, caplog: pytest.LogCaptureFixture) -> None:
    """A warning names the content type. With a selector, text is found in any content type."""
    traced.clear()
    assert streamed(traced, [b"Hel", b"lo"], media_type) is None
    assert f"{media_type} is not text; select the text with chunk=" in caplog.text
    assert media_type in traced.attributes(media_type)["germane.capture.error"]
    caplog.clear()

    assert streamed(traced, [], media_type) is None
    assert streamed(traced, [b"Hel", b"lo"], media_type, chunk=lambda chunk: chunk.decode()) == "Hello"
    assert caplog.records == []


def test_the_partial_text_of_an_abandoned_stream_is_kept(traced: Any) -> None:
    """A stream that stops while it might still become server-sent events keeps its text."""

    @germane.observe
    def ask(_question: str) -> Iterator[str]:
        yield "data: 1"
        yield "\n\n"

    stream = ask("Why?")
    next(stream)
    stream.close()  # type: ignore[attr-defined]  # an iterator that is a generator

    assert (traced.exchange.answer, traced.exchange.status) == ("data: 1", "abandoned")


@each("text", [": ping\n\n", "data: [DONE]\n\n", "event: end\n\n"])
def test_an_event_stream_without_data_is_reported(traced: Any, text: str, caplog: pytest.LogCaptureFixture) -> None:
    """A stream that is declared as an event stream but contains no text has no answer, and a warning says so."""

    traced.clear()

    @germane.observe(route=f"silent {text!r}")
    def ask(_question: str) -> StreamingResponse:
        return StreamingResponse(iter([text]), media_type="text/event-stream")

    async def read() -> list[Any]:
        return [chunk async for chunk in ask("Why?").body_iterator]

    assert asyncio.run(read()) == [text]

    assert traced.exchange.answer is None
    assert "no text was found in the stream" in caplog.text
    assert "no text was found in the stream" in traced.attributes()["germane.capture.error"]


@each("chunks", [[], ["", b""]])
def test_an_empty_stream_has_no_answer_and_is_reported(traced: Any, chunks: list[Any]) -> None:
    """The span of each call says that there was no text."""
    traced.clear()
    assert answer_to(traced, chunks) is None
    assert traced.attributes()["germane.capture.error"].startswith("answer of ask: the handler returned no text")


@each("chunk", ["a small chunk", "data: a line\n"])
def test_the_time_per_chunk_does_not_grow_with_the_length_of_the_event(chunk: str) -> None:
    """Each chunk of an event that never ends takes the caller the same time, whether the event is one line or many."""

    def seconds_per_chunk(count: int) -> float:
        reader = EventReader()
        reader.feed("data: ")
        started = time.thread_time()
        for _ in range(count):
            reader.feed(chunk)
        return (time.thread_time() - started) / count

    short, long = (min(seconds_per_chunk(count) for _ in range(3)) for count in (5_000, 40_000))

    assert long < 3 * short


def test_an_event_that_exceeds_the_maximum_length_counts_as_text(unconnected: Any) -> None:
    """A stream without a complete event within that length is text, unless its content type is declared."""
    unconnected.connect(max_text_length=100)
    chunks = ["data: ", *["ab"] * 1000, "\n\n"]

    assert answer_to(unconnected, chunks) == "".join(chunks)[:100]
