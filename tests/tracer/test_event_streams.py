"""Streams of several kinds of events: the answer is the text of the events that contain its parts."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from itertools import accumulate
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.cases import each

import germane
from germane.testing import collect

WORDS = ["Shoes can", " be returned", " within thirty", " days."]
ANSWER = "".join(WORDS)


def captured(chunks: list[Any]) -> germane.Exchange:
    """Return the exchange of a handler that yields these chunks."""

    @germane.observe(route="ask")
    def ask(question: str) -> Iterator[Any]:
        yield from chunks

    with collect() as exchanges:
        assert list(ask("Why?")) == chunks
    return exchanges[0]


Encode = Callable[[str, str], Any]
FORMATS: dict[str, Encode] = {
    "typed dict": lambda name, text: {"type": name, "text": text},
    "typed SSE": lambda name, text: f"data: {json.dumps({'type': name, 'content': text})}\n\n",
    "typed line": lambda name, text: json.dumps({"event": name, "data": text}) + "\n",
    "named SSE": lambda name, text: f"event: {name}\ndata: {json.dumps({'text': text})}\n\n",
    "named text": lambda name, text: f"event: {name}\ndata: {text}\n\n",
    "quoted text": lambda name, text: {"event": name, "data": json.dumps(text)},
    "SSE dict": lambda name, text: {"event": name, "data": json.dumps({"content": text})},
    "text of an SSE dict": lambda name, text: {"event": name, "data": text},
    "tuple": lambda name, text: (name, text),
    "tuple of a dict": lambda name, text: (name, {"text": text}),
    "list": lambda name, text: [name, text],
    "nested": lambda name, text: {"type": name, "data": {"content": text}},
}
OTHERS = [
    *("status", "progress", "context", "retrieved_contexts", "documents", "sources", "tool_call", "reasoning"),
    *("log", "agentStep", "citations", "search_results", "title", "STEP_STARTED", "usage", "follow_up", "source_text"),
    *("context_delta", "thinking-delta", "on_retriever_end", "document_chunk", "query_rewrite", "user_message"),
]
TEXTS = ["token", "delta", "answer", "content", "chunk", "text-delta", "TEXT_MESSAGE_CONTENT", "on_chat_model_stream"]


@given(
    st.sampled_from([*FORMATS]), st.sampled_from(TEXTS), st.lists(st.sampled_from(OTHERS), min_size=1, max_size=8),
    st.integers(0, 4), st.integers(1, 4),
)  # fmt: skip
def test_the_answer_is_the_text_of_its_events(
    form: str, name: str, others: list[str], position: int, parts: int
) -> None:
    """However many events of other kinds there are, before, between or after them."""
    encode, words = FORMATS[form], [*WORDS[: parts - 1], "".join(WORDS[parts - 1 :])]
    chunks = [encode(name, word) for word in words]
    chunks[position:position] = [encode(other, f"Part {number} of it") for number, other in enumerate(others)]

    exchange = captured(chunks)

    assert (exchange.answer, exchange.status) == (ANSWER, "ok")


@given(st.sampled_from([*FORMATS]), st.lists(st.sampled_from(OTHERS), min_size=1))
def test_a_stream_of_other_events_has_no_answer(form: str, others: list[str]) -> None:
    """Statuses and documents are not stored in its place, nor is the end of the stream."""
    chunks = [FORMATS[form](other, f"Part {number} of it") for number, other in enumerate(others)]

    assert captured(chunks).answer is None
    assert captured([*chunks, FORMATS[form]("done", "Success")]).answer is None


def test_an_event_of_another_kind_has_no_answer_whatever_its_fields() -> None:
    """The name inside a tagged tuple counts, too."""
    assert captured([("custom", {"type": "sources", "answer": ANSWER})]).answer is None
    assert captured([("custom", {"type": "news", "answer": ANSWER})]).answer == ANSWER


def test_a_cumulative_source_takes_precedence_over_sources_with_more_chunks() -> None:
    """Its chunks replace each other, so few of them are kept."""
    chunks = [{"type": "answer", "text": text} for text in accumulate(ANSWER)]

    assert captured([*chunks, *({"type": "text", "text": word} for word in ("one", " two"))]).answer == ANSWER


def test_events_as_text_and_as_objects_keep_their_order() -> None:
    """JSON in texts is decoded before the object after it."""
    assert captured(['{"token": "be', 'cause "}', {"token": "it does"}]).answer == "because it does"


@each("name", ["item", "phase_b", "add"])
def test_unknown_events_are_parts_if_their_texts_are_continuous(name: str) -> None:
    """Texts that each begin a sentence are statuses."""
    assert captured([{"type": name, "text": word} for word in WORDS]).answer == ANSWER
    assert captured([{"type": name, "text": word} for word in ("be", "cause")]).answer == "because"
    assert captured([{"type": name, "text": word} for word in ("Searching it", "Reading it")]).answer is None
    assert captured([{"type": name, "text": word} for word in ("searching it", "reading it")]).answer is None
    assert captured([{"type": name, "text": ANSWER}]).answer == ANSWER


def test_messages_are_parts_if_their_texts_are_continuous() -> None:
    """Without the name of an event, a message may be a status."""
    assert captured([{"message": word} for word in WORDS]).answer == ANSWER
    assert captured([{"message": word} for word in ("退货", "期是")]).answer == "退货期是"
    for texts in (["Searching it"], ["searching", "reading"], ["searching it", "reading it"]):
        assert captured([{"message": text} for text in texts]).answer is None


ERRORS = [
    *({"error": "boom"}, {"error": {"message": "boom"}}, {"type": "error", "message": "boom"}),
    *({"event": "RUN_ERROR", "data": "boom"}, {"status": "failed", "message": "boom"}, {"success": False}),
    *({"type": "response.failed", "response": {}}, {"code": 500, "message": "boom"}),
]


@each("error", ERRORS)
def test_a_stream_that_ends_with_an_error_is_an_error(error: dict[str, Any]) -> None:
    """The partial text is kept. An error that is followed by more text was overcome."""
    tokens: list[Any] = [{"type": "token", "content": word} for word in WORDS]
    for encode in (lambda event: event, lambda event: f"data: {json.dumps(event)}\n\n", json.dumps):
        chunks = [encode(event) for event in (*tokens, error, {"type": "done"})]
        exchange = captured(chunks)

        assert (exchange.answer, exchange.status) == (ANSWER, "error")
        assert (exchange.error or "").startswith("error event")
        assert captured([encode(error), *chunks[:-2]]).status == "ok"
    assert captured([("token", "Shoes"), ("error", "boom")]).error == "error event: boom"
    assert captured([{"type": "token", "content": "Shoes"}, {"type": "tool_error", "message": "x"}]).status == "ok"


def test_a_stream_that_is_only_an_error_is_not_reported_as_a_missing_text(caplog: pytest.LogCaptureFixture) -> None:
    """The error of the exchange says why there is no answer. It is redacted like the messages of exceptions."""

    @germane.observe(redact=lambda text: text.replace("Ann", "[name]"))
    def ask(question: str) -> Iterator[Any]:
        yield {"error": "Ann has no quota"}

    with collect() as exchanges:
        list(ask("Why?"))

    (exchange,) = exchanges
    assert (exchange.answer, exchange.status, exchange.error) == (None, "error", "error event: [name] has no quota")
    assert caplog.messages == []


def message(text: str, run: str = "", kind: str = "AIMessageChunk") -> dict[str, Any]:
    return {"type": kind, "content": text} | ({"id": run} if run else {})


STREAMS: dict[str, list[Any]] = {
    "tokens and an end": [*(("token", word) for word in WORDS), ("done", None)],
    "modes": [
        ("values", {"messages": [{"role": "user", "content": "Why?"}]}),
        *(("messages", (message(word), {"langgraph_node": "generate"})) for word in WORDS),
        ("updates", {"generate": {"messages": [message(ANSWER, kind="ai")]}}),
        ("custom", "Searching"),
    ],
    "modes with namespaces": [(("graph:1",), "messages", (message(word), {})) for word in WORDS],
    "updates": [{"retrieve": {"documents": ["a"]}}, {"generate": {"generation": ANSWER}}],
    "updates of messages": [
        {"rewrite": {"messages": [message("shoe returns", kind="ai")]}},
        {"generate": {"messages": [message(ANSWER, kind="ai")]}},
    ],
    "values": [{"question": "Why?"}, {"question": "Why?", "generation": ANSWER, "documents": []}],
    "messages of two calls": [
        *((message(word, "1"), {}) for word in ("shoe", " returns", " policy", " of", " the", " shop")),
        *((message(word, "2"), {}) for word in WORDS),
    ],
    "messages with their own ids": [message(word, str(number)) for number, word in enumerate(WORDS)],
    "events of runs": [
        {"event": "on_chain_start", "data": {"input": {"messages": [("user", "Why?")]}}, "run_id": "0"},
        *(
            {"event": "on_chat_model_stream", "data": {"chunk": message(word)}, "run_id": run}
            for run, words in (("1", ["shoe", " returns", " of", " the", " shop"]), ("2", WORDS))
            for word in words
        ),
        *({"event": "on_chain_stream", "data": {"chunk": word}, "run_id": "0"} for word in ["x", *WORDS, "y"]),
        {"event": "on_chain_end", "data": {"output": "Why?"}, "run_id": "0"},
    ],
    "events of a graph": [
        {"event": "on_chain_stream", "data": {"chunk": {"messages": [message(ANSWER, kind="ai")]}}},
        {"event": "on_chain_end", "data": {"output": {"messages": [message(ANSWER, kind="ai")]}, "input": {}}},
    ],
    "texts with other values": [(WORDS[0], None), *((word, None) for word in WORDS[1:])],
    "quoted texts": [{"event": "data", "data": json.dumps(word)} for word in WORDS],
    "dicts with data": [{"data": "en", "answer": word} for word in WORDS],
    "sources before text": ['{"sources": [{"text": "doc"}]}\n', *WORDS],
    "parts": ['f:{"messageId":"1"}\n', *(f"0:{json.dumps(word)}\n" for word in WORDS), 'd:{"reason":"stop"}\n'],
}


def test_a_text_in_a_tuple_is_not_the_name_of_an_event() -> None:
    """A name is one word."""
    assert captured([("In the end, ", None), ("the answer is no.", None)]).answer == "In the end, the answer is no."


@each("name", STREAMS)
def test_the_events_of_frameworks_are_read(name: str) -> None:
    """Of several calls of a model, the last one answers."""
    exchange = captured(STREAMS[name])

    assert (exchange.answer, exchange.status) == (ANSWER, "ok")


def test_only_the_first_of_several_choices_is_the_answer() -> None:
    """Whether they alternate or come together."""
    for word in ("", "Other "):
        both = [
            {"choices": [{"index": 1, "delta": {"content": word}}, {"index": 0, "delta": {"content": each}}]}
            for each in WORDS
        ]
        assert captured(both).answer == ANSWER
        others = [{"choices": [{"index": 1, "delta": {"content": word}}]} for _ in WORDS]
        assert captured([event for pair in zip(both, others, strict=True) for event in pair]).answer == ANSWER


@each("flag", ["done", "is_final", "finished", "complete"])
def test_the_text_of_a_final_event_does_not_replace_the_text_before_it(flag: str) -> None:
    """It may be a status. Without any text before it, it is the answer."""
    assert captured([{"delta": ANSWER, flag: False}, {flag: True, "text": "The stream has ended."}]).answer == ANSWER
    assert captured([{"text": ANSWER}, {flag: True, "text": "The stream has ended."}]).answer == ANSWER
    assert captured([{flag: True, "text": ANSWER}]).answer == ANSWER
    for name in ("text", "answer"):  # it may also be all of the text
        assert captured([{"text": WORDS[0]}, {name: ANSWER, flag: True}]).answer == ANSWER
        assert captured([*({"text": word} for word in WORDS), {name: ANSWER, flag: True}]).answer == ANSWER
    assert captured([{"text": WORDS[0]}, {"text": "".join(WORDS[1:]), flag: True}]).answer == ANSWER


@each("field", ["node", "typ", "agent", "art", "tipo"])
def test_the_first_field_of_events_distinguishes_their_texts(field: str) -> None:
    """Statuses and the texts of other nodes are not joined with the answer, however many there are."""
    statuses = [{field: "stan", "text": text} for text in ("Suche l\u00e4uft", "Lese 3 Dokumente")]
    for number, parts in ((0, WORDS), (1, WORDS), (2, WORDS), (1, [ANSWER]), (2, [ANSWER])):
        answer = [{field: "generator", "text": part} for part in parts]
        assert captured([*statuses[:number], *answer]).answer == ANSWER
    parts = [{field: "status", "text": text} for text in ("Suche", " l\u00e4uft", " noch")]
    assert captured([*parts, {field: "generator", "text": ANSWER}]).answer == ANSWER
    assert (
        captured([{"lang": "en", "text": word} for word in ("One line.", "Two lines.")]).answer == "One line.Two lines."
    )


def test_a_field_that_changes_with_the_text_does_not_distinguish_it() -> None:
    """Such as an id, the raw token, a status, or the reason why the text ends."""
    for first in (lambda word: {"raw": word.strip()}, lambda word: {"id": f"chunk-{hash(word)}"}, lambda _: {}):
        assert captured([{**first(word), "text": word} for word in WORDS]).answer == ANSWER
    moods = ["calm", "glad", "calm", "sad"]
    assert captured([{"mood": mood, "text": word} for mood, word in zip(moods, WORDS, strict=True)]).answer == ANSWER
    for name in ("status", "finish_reason"):
        chunks = [{name: "stop" if word == WORDS[-1] else "writing", "text": word} for word in WORDS]
        assert captured(chunks).answer == ANSWER
    assert captured([*({"text": word} for word in WORDS[:-1]), {"text": WORDS[-1], "cause": "stop"}]).answer == ANSWER


def test_messages_that_only_delimit_a_stream_are_left_out() -> None:
    """They consist of one word."""
    chunks = ["start", *WORDS, "end"]

    assert captured([{"message": text} for text in chunks]).answer == ANSWER


@each("names", [("id", "a", "b"), ("status", "writing", "stopping"), ("raw", "\u9000\u8d27", "\u671f\u662f")])
def test_words_that_are_no_names_of_sources_do_not_separate_a_text(names: tuple[str, str, str]) -> None:
    """Also in a script without blanks."""
    name, first, second = names
    chunks = [{name: first, "text": "\u9000\u8d27"}, {name: second, "text": "\u671f\u662f"}]

    assert (
        captured(chunks).answer
        == captured([*chunks[:1], chunks[1] | {"done": True}]).answer
        == "\u9000\u8d27\u671f\u662f"
    )
