"""Questions and answers in structured values: messages, bodies, states, results and events."""

from __future__ import annotations

import json
from collections import UserDict, deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from inspect import signature
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, ConfigDict
from starlette.exceptions import HTTPException
from tests.cases import each

import germane
from germane.testing import collect
from germane.tracer.handler import QuestionArgument

MESSAGES = [
    {"role": "system", "content": "Be brief."},
    {"role": "user", "content": "Hello!"},
    {"role": "assistant", "content": "Hello."},
    {"role": "user", "content": "Why?"},
]


def captured(function: Callable[..., Any], *args: Any, **kwargs: Any) -> germane.Exchange:
    """Return the exchange of one call."""
    with collect() as exchanges:
        result = germane.observe(route="ask")(function)(*args, **kwargs)
        if isinstance(result, Iterator):
            list(result)
    (exchange,) = exchanges
    return exchange


@dataclass
class Turn:
    role: str
    content: str


@dataclass(slots=True)
class Chat:
    messages: list[Turn]
    user_id: str = "ann"


class Body(BaseModel):
    query: str
    model: str = "m"


class OpenBody(BaseModel):
    model_config = ConfigDict(extra="allow")


class Pair(NamedTuple):
    question: str
    language: str


TURNS = [Turn(**message) for message in MESSAGES]
QUESTIONS: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "messages": (lambda messages, model="m": "a", (MESSAGES,)),
    "messages and an id": (lambda session, messages: "a", ("s1", MESSAGES)),
    "message objects": (lambda history: "a", (TURNS,)),
    "body": (lambda body: "a", ({"messages": MESSAGES},)),
    "model": (lambda request, tenant: "a", (Body(query="Why?"), "acme")),
    "undeclared fields": (lambda request: "a", (OpenBody.model_validate({"query": "Why?"}),)),
    "slots": (lambda chat: "a", (Chat(TURNS),)),
    "named tuple": (lambda pair: "a", (Pair("Why?", "en"),)),
    "state": (lambda state, config: "a", ({"question": "Why?", "documents": []}, {"tags": ["x"]})),
    "keywords": (lambda **inputs: "a", ()),
    "JSON": (lambda message: "a", (json.dumps({"type": "ask", "question": "Why?"}),)),
    "event of a function": (lambda event, context: "a", ({"body": json.dumps({"messages": MESSAGES})}, None)),
    "content blocks": (lambda messages: "a", ([{"role": "user", "content": [{"type": "text", "text": "Why?"}]}],)),
}


@each("name", QUESTIONS)
def test_the_question_is_found_in_structured_arguments(name: str) -> None:
    """It takes precedence over other texts, such as ids and names of models."""
    function, args = QUESTIONS[name]
    kwargs = {"messages": MESSAGES, "tenant": "acme"} if name == "keywords" else {}

    assert captured(function, *args, **kwargs).question == "Why?"


def test_earlier_messages_become_the_history() -> None:
    """Instructions to the model are not part of it."""
    history = captured(lambda messages: "a", MESSAGES).history

    assert [(message.role, message.content) for message in history] == [("user", "Hello!"), ("assistant", "Hello.")]


COMPLETION = {"choices": [{"index": 0, "message": {"role": "assistant", "content": "Because."}}]}
ANSWERS: dict[str, Any] = {
    "completion": COMPLETION,
    "answer": {"answer": "Because.", "sources": ["a"], "question": "Why?"},
    "state": {"messages": [*MESSAGES, {"role": "assistant", "content": "Because."}]},
    "message objects": {"messages": [*TURNS, Turn("assistant", "Because.")]},
    "generation": {"question": "Why?", "generation": "Because.", "documents": ["a"]},
    "envelope": {"code": 0, "message": "success", "data": {"answer": "Because."}},
    "response of a function": {"statusCode": 200, "body": json.dumps({"answer": "Because."})},
    "JSON": json.dumps({"response": "Because."}),
    "bytes": json.dumps(COMPLETION).encode(),
    "bytes of a text": json.dumps("Because.").encode(),
    "answer next to another one": {"cached": {"answer": "Before."}, "answer": "Because."},
    "text with sources": ("Because.", ["a", "b"]),
    "text with status": ({"answer": "Because."}, 200),
    "components": ("", [*MESSAGES, {"role": "assistant", "content": "Because."}]),
    "content blocks": [{"type": "text", "text": "Because."}],
    "output": {"output": [{"type": "message", "role": "assistant", "content": [{"type": "text", "text": "Because."}]}]},
}


@each("name", ANSWERS)
def test_the_answer_is_found_in_a_structured_result(name: str) -> None:
    """The handler needs no ``answer=``, and the exchange does not contain JSON."""
    exchange = captured(lambda question: ANSWERS[name], "Why?")

    assert (exchange.answer, exchange.status) == ("Because.", "ok")


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)


@given(JSON.filter(lambda value: isinstance(value, dict | list)), st.booleans())
def test_json_is_never_the_answer(value: Any, is_streamed: bool) -> None:
    """The answer is a text in the JSON, or it is missing and reported."""
    text = json.dumps(value)
    exchange = captured(lambda question: iter([text[:3], text[3:]]) if is_streamed else text, "Why?")

    assert exchange.answer != text
    assert exchange.answer is None or json.dumps(exchange.answer)[1:-1] in text


@each(
    "text", ["[1] As the documents say.", "{name} is a variable", "{}!", '"Because."', "[sic] Because", "{", "[a](b)"]
)
def test_text_that_only_begins_like_json_is_the_answer(text: str) -> None:
    """Citations, templates and links are text, also in a stream."""
    assert captured(lambda question: text, "Why?").answer == text
    assert captured(lambda question: iter(text), "Why?").answer == text
    assert captured(lambda question: iter(["", text]), "Why?").answer == text


def sse(*events: Any, names: tuple[str, ...] = ()) -> list[str]:
    """Return server-sent events with these data, and names for the first of them."""
    heads = [f"event: {name}\n" for name in names] + [""] * len(events)
    texts = [event if isinstance(event, str) else json.dumps(event) for event in events]
    return [f"{head}data: {text}\n\n" for head, text in zip(heads, texts, strict=False)]


def lines(*events: Any) -> list[str]:
    return [json.dumps(event) + "\n" for event in events]


DELTAS = [{"choices": [{"delta": {"content": text}}]} for text in ("Be", "cause.")]
OUTPUT = {
    "output": [{"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Because."}]}]
}
STREAMS: dict[str, list[Any]] = {
    "OpenAI chat": sse(
        {"choices": [{"delta": {"role": "assistant"}}]}, *DELTAS, {"choices": [], "usage": {}}, "[DONE]"
    ),
    "OpenAI responses": sse(
        {"type": "response.reasoning_text.delta", "delta": "Hm"},
        {"type": "response.output_text.delta", "delta": "Be"},
        {"type": "response.output_text.delta", "delta": "cause."},
        {"type": "response.output_text.done", "text": "Because."},
        {"type": "response.completed", "response": OUTPUT},
    ),
    "Anthropic": sse(
        {"type": "message_start", "message": {"role": "assistant", "content": []}},
        {"type": "content_block_delta", "delta": {"type": "thinking_delta", "thinking": "Hm"}},
        {"type": "content_block_delta", "delta": {"type": "text_delta", "text": "Be"}},
        {"type": "content_block_delta", "delta": {"type": "text_delta", "text": "cause."}},
        {"type": "message_stop"},
    ),
    "Gemini": lines(
        *({"candidates": [{"content": {"role": "model", "parts": [{"text": t}]}}]} for t in ("Be", "cause."))
    ),
    "a list of objects": ['[{"text": "Be"}\n', ',\r\n{"text": "cause."}', "\n]"],
    "Ollama": lines({"response": "Be", "done": False}, {"response": "cause."}, {"response": "", "done": True}),
    "Ollama chat": lines(*({"message": {"role": "assistant", "content": text}} for text in ("Be", "cause."))),
    "AI SDK": sse(
        {"type": "start"},
        {"type": "text-delta", "id": "0", "delta": "Be"},
        {"type": "text-delta", "id": "0", "delta": "cause."},
        {"type": "finish"},
    ),
    "Cohere": sse(
        *({"type": "content-delta", "delta": {"message": {"content": {"text": t}}}} for t in ("Be", "cause."))
    ),
    "Bedrock": lines(*({"contentBlockDelta": {"delta": {"text": text}}} for text in ("Be", "cause."))),
    "text generation": sse(*({"token": {"id": 1, "text": text}, "generated_text": None} for text in ("Be", "cause."))),
    "status and tokens": sse(
        {"type": "status", "content": "Searching"},
        {"type": "token", "content": "Because."},
        {"type": "sources", "content": [{"title": "a"}]},
        {"type": "done"},
    ),
    "named events": sse("Searching", "Be", "cause.", {"n": 1}, names=("status", "token", "token", "end")),
    "quoted texts": sse('"Be"', '"cause."'),
    "dicts": [{"delta": "Be"}, {"delta": "cause."}, {"answer": "Because.", "sources": []}],
    "documents in a row": ['{"token": "Be"}{"tok', 'en": "cause."}'],
    "text and then JSON": ["Be", "cause.", json.dumps({"sources": ["a"]})],
    "a body in pieces": ['{"answer": "Bec', 'ause.", "sources": [', "]}"],
    "progress and then a result": lines({"message": "Searching"}, {"message": "Reading"}, {"answer": "Because."}),
    "many lines": lines({"text": "Be"}, {"text": "cause."}, *({"n": number} for number in range(1000))),
    "a body in many pieces": list(json.dumps({"sources": ["a"] * 300, "answer": "Because."})),
    "bytes": [part.encode() for part in lines({"text": "Be"}, {"text": "cause."})],
    "tuples of LangGraph": [
        (("node",), {"content": "Be", "type": "AIMessageChunk"}),
        ({"content": "cause."}, {"n": 1}),
    ],
}


@each("name", STREAMS)
def test_the_answer_is_read_from_the_events_of_a_stream(name: str) -> None:
    """The text is read from JSON events in the formats of providers and of hand-written servers."""
    exchange = captured(lambda question: iter(STREAMS[name]), "Why?")

    assert (exchange.answer, exchange.status) == ("Because.", "ok")


def test_text_after_many_events_does_not_replace_the_answer_before_it() -> None:
    """A proxy may end a stream of JSON with a page about an error."""
    words = [f"word{number} " for number in range(300)]
    exchange = captured(lambda question: iter([*lines(*({"text": word} for word in words)), "<h1>Bad gateway"]), "Why?")

    assert exchange.answer is not None
    assert exchange.answer.startswith("".join(words[:150]))


@given(st.sampled_from(["delta", "text", "token", "content"]), st.lists(st.integers(1, 30), min_size=1), st.booleans())
def test_lines_of_json_may_be_split_anywhere(name: str, sizes: list[int], is_sse: bool) -> None:
    """The chunks of a response need not end with a line."""
    events = [{name: "Be"}, {name: "cause."}, {"done": True}]
    text, chunks = "".join(sse(*events) if is_sse else lines(*events)), []
    while text:
        sizes.append(size := sizes.pop(0))
        chunks.append(text[:size])
        text = text[size:]

    assert captured(lambda question: iter(chunks), "Why?").answer == "Because."


def test_missing_texts_are_reported_once_per_handler(traced: Any, caplog: pytest.LogCaptureFixture) -> None:
    """The log says what was found and what to do. Each span has the report."""

    @germane.observe(route="without texts")
    def ask(limit: int, body: Any) -> Any:
        return {"rows": limit}

    for number in range(3):
        ask(number, {"filter": "x"})

    answer, question = caplog.messages
    assert "question of without texts: found none in limit (int), body (dict with filter); select it" in question
    assert "answer of without texts: found no answer in dict with rows; select it with answer=" in answer
    assert all("found no answer" in span.attributes["germane.capture.error"] for span in traced.spans)


def test_a_handler_that_returns_nothing_is_reported(traced: Any, caplog: pytest.LogCaptureFixture) -> None:
    """A handler may send its answer elsewhere, for example through a web socket."""
    ask = germane.observe(route="returns nothing")(lambda question: None)
    ask("Why?")
    ask("Why?")

    (message,) = caplog.messages
    assert "answer of returns nothing: the handler returned no text" in message


def test_reading_structured_values_runs_no_code_of_theirs() -> None:
    """Properties, cycles and very large values are harmless."""

    class Node(BaseModel):
        parent: Any = None
        children: list[Any] = []

        @property
        def question(self) -> str:
            raise ZeroDivisionError

        def __iter__(self) -> Any:
            raise ZeroDivisionError

    @dataclass
    class Graph:
        nodes: list[Any] = field(default_factory=list)

        def __getattr__(self, name: str) -> Any:
            raise ZeroDivisionError

    root = Node()
    root.children = [Node(parent=root) for _ in range(300)]
    for child in root.children:
        child.children = root.children

    exchange = captured(lambda graph, question: root, Graph([root] * 100), "Why?")

    assert (exchange.question, exchange.answer, exchange.status) == ("Why?", None, "ok")


def control_flow(module: str, name: str, base: type[BaseException] = Exception) -> BaseException:
    """Return an exception whose base class looks like a framework's."""
    declared = type(name, (base,), {"__module__": module})
    return type("Own", (declared,), {})()  # type: ignore[no-any-return]  # a new class


@each(
    ("make", "status"),
    [
        (lambda: control_flow("celery.exceptions", "TaskPredicate"), "cancelled"),
        (lambda: control_flow("dramatiq.errors", "Retry"), "cancelled"),
        (lambda: control_flow("langgraph.errors", "GraphBubbleUp"), "cancelled"),
        (
            lambda: control_flow("streamlit.runtime.scriptrunner_utils", "ScriptControlException", BaseException),
            "cancelled",
        ),
        (lambda: ExceptionGroup("both", [control_flow("celery.exceptions", "TaskPredicate")]), "cancelled"),  # type: ignore[list-item]  # an Exception
        (lambda: HTTPException(303, headers={"location": "/"}), "cancelled"),
        (lambda: HTTPException(404), "error"),
        (lambda: control_flow("celery.exceptions", "SoftTimeLimitExceeded"), "error"),
        (lambda: control_flow("shop.errors", "Retry"), "error"),
    ],
)
def test_exceptions_that_control_the_flow_are_not_errors(make: Any, status: str) -> None:
    """A retry, an interrupt or a redirect does not count as a failed call."""
    error = make()

    def fail(question: str) -> None:
        raise error

    with collect() as exchanges, pytest.raises(type(error)) as caught:
        germane.observe(fail)("Why?")

    assert caught.value is error
    assert (exchanges[0].status, exchanges[0].error is None) == (status, status == "cancelled")


@each("name", ["isError", "is_error"])
def test_the_text_of_a_tool_that_failed_is_not_an_answer(name: str) -> None:
    """Versions of the Model Context Protocol's libraries spell the field differently."""

    @germane.observe
    def ask(question: str) -> dict[str, Any]:
        return {"content": [{"type": "text", "text": "The index cannot be read."}], name: True}

    with collect() as exchanges:
        ask("Are dogs allowed?")

    assert exchanges[0].answer is None


@each("before", ["", " ", "\n\n  ", "\ufeff", "\ufeff\n"])
def test_json_is_read_whatever_blanks_are_before_it(before: str) -> None:
    """Some servers begin a body with a line break or a byte order mark."""

    @germane.observe
    def ask(question: str, *, body: str) -> str:
        return before + body

    with collect() as exchanges:
        ask("Are dogs allowed?", body='{"answer": "Yes, on a lead."}')
        ask("Are dogs allowed?", body='{"title": "Dogs"}')

    assert [exchange.answer for exchange in exchanges] == ["Yes, on a lead.", None]


class Key:
    """A key of a mapping that counts how often it is read."""

    read = 0

    def __str__(self) -> str:
        Key.read += 1
        return f"key {Key.read}"


class Table(UserDict[Any, Any]):
    """A mapping that is not a dict."""


def _keys(number: int) -> dict[Any, Any]:
    return {Key(): number for _ in range(number)}


@each(
    "create",
    [
        lambda: _keys(30_000),
        lambda: Table(_keys(30_000)),
        lambda: {"cache": _keys(30_000)},
        lambda: {"rows": [_keys(10) for _ in range(3_000)]},
        lambda: {"rows": tuple(_keys(10) for _ in range(3_000))},
        lambda: {"rows": deque(_keys(10) for _ in range(3_000))},
        lambda: [[[_keys(30) for _ in range(10)] for _ in range(10)] for _ in range(10)],
        lambda: tuple(_keys(30) for _ in range(1_000)),
        lambda: [_keys(30)] * 1_000,
        lambda: Chat([Turn("user", "Why?")], user_id=_keys(30_000)),  # type: ignore[arg-type]  # fields hold anything
    ],
)
def test_the_items_that_a_call_reads_are_limited(create: Callable[[], Any]) -> None:
    """A handler that passes a whole index, as an argument or as its result, must not wait until it is copied."""
    state = create()
    for parts in ({"state": state}, {"state": {"state": state}}):
        Key.read = 0
        result = {**parts, "answer": "Because."}
        exchange = captured(lambda state, messages, result: result, state, MESSAGES, result)

        assert (exchange.question, exchange.answer) == ("Why?", "Because.")
        assert Key.read <= 4 * 21_000  # three arguments, one by one, and the result


def test_what_is_near_the_top_of_a_large_value_is_read() -> None:
    """Documents and caches next to the messages do not hide them, wherever they are."""
    documents = [{"text": f"Document {number}", "vector": [0.5] * 1_500} for number in range(2_000)]
    cache = {str(number): [{"a": 1}] * 5 for number in range(900)}
    tree = [[[{str(number): number for number in range(30)}] * 10] * 10] * 10
    state = {
        "tree": tree,
        "documents": documents,
        "cache": cache,
        "messages": [{"role": "system", "content": "."}] * 990 + MESSAGES,
    }
    state["index"] = tree
    answer = {"documents": documents, "cache": cache, "output": {"messages": [*MESSAGES, Turn("assistant", "So.")]}}

    exchange = captured(lambda state: answer, state)

    assert (exchange.question, exchange.answer) == ("Why?", "So.")


def test_the_last_items_of_a_list_and_the_first_of_a_mapping_are_read() -> None:
    """Conversations grow at the end. A thousand items of each collection are read."""
    tail = [{"role": "user", "content": "Why?"}]
    for before, question in ((0, "Why?"), (5_000, "Why?")):
        messages = [{"role": "user", "content": "Hello?"}] * before + tail
        for collection in (list, tuple, deque):
            assert captured(lambda messages: "Because.", collection(messages)).question == question
    for before, answer in ((999, "Because."), (1_000, None)):
        filled = {str(number): number for number in range(before)}
        result = {**filled, "answer": "Because."}
        assert captured(lambda question, result: result, "Why?", result).answer == answer


def test_only_the_first_arguments_of_a_call_are_searched() -> None:
    """A function may be called with thousands of arguments."""
    argument = QuestionArgument(signature(lambda *args, session, **kwargs: None))
    kwargs = {**{str(number): [] for number in range(5_000)}, "session": {"question": "Why?"}}

    assert len(list(argument.arguments(([],) * 5_000, {}))) == 100
    assert len(list(argument.arguments((), kwargs))) == len(dict(argument.arguments((), kwargs))) == 101
    assert argument((), kwargs) == "Why?"
