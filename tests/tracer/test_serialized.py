"""Returned texts that are serialized structures or whole streams of events, and texts that only mention them."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.cases import each

import germane
from germane.testing import collect

ANSWER = "Shoes can be returned within thirty days."
LETTERS = st.characters(exclude_categories=["Cs", "Cc"])
ANSWERS = st.text(LETTERS, min_size=1, max_size=30).map(lambda text: f"Within {text} days")
OTHERS = st.dictionaries(st.sampled_from(["title", "rows", "id", "it's"]), st.text(LETTERS, max_size=9), min_size=1)


def captured(result: Any, route: str = "ask") -> germane.Exchange:
    """Return the exchange of a handler that returns this value, or yields the items of a list."""

    def stream(question: str) -> Any:
        yield from result

    handler = stream if isinstance(result, list) else lambda question: result
    with collect() as exchanges:
        returned = germane.observe(route=route)(handler)("Why?")
        assert (list(returned) if isinstance(result, list) else returned) == result
    return exchanges[0]


FORMS: dict[str, Callable[[Any], str]] = {
    "JSON": json.dumps,
    "indented": lambda value: "\n" + json.dumps(value, indent=2) + "\n",
    "fence": lambda value: f"```json\n{json.dumps(value)}\n```",
    "fence without a language": lambda value: f" ```\n{json.dumps(value, ensure_ascii=False)}```\n",
    "tildes": lambda value: f"~~~JSON\n{json.dumps(value)}\n~~~",
    "fence that was not closed": lambda value: f"``` json\n{json.dumps(value)}",
    "string": lambda value: json.dumps(json.dumps(value)),
    "string of a string": lambda value: json.dumps(json.dumps(json.dumps(value))),
    "literal": str,
    "literal in a string": lambda value: json.dumps(str(value)),
    "list": lambda value: str([value]),
    "tuple": lambda value: str((value,)),
    "bytes": lambda value: json.dumps(value),
}


@each("form", FORMS)
@given(answer=ANSWERS, other=OTHERS)
def test_a_structure_is_read_in_whatever_form_it_is_returned(form: str, answer: str, other: dict[str, Any]) -> None:
    """Its answer is found, or none is stored."""

    def returned(value: Any) -> Any:
        return FORMS[form](value).encode() if form == "bytes" else FORMS[form](value)

    assert captured(returned(other | {"answer": answer})).answer == answer
    assert captured(returned(other)).answer is None
    assert captured(list(FORMS[form](other))).answer is None


@each(
    "text",
    [
        *("{'title': 'a', 'bo", "{'title': <object at 0x7f>}", "[{'on': datetime.date(2026, 1, 1)}]", "{1: 'a'}"),
        json.dumps('{"answer": "Thirty'),
    ],
)
def test_a_literal_that_cannot_be_read_is_no_answer(text: str) -> None:
    """It was cut off, or contains representations of other objects."""
    assert captured(text).answer is None


def lines_of_sse(*events: Any, name: str = "") -> str:
    head = f"event: {name}\n" if name else ""
    return "".join(f"{head}data: {event if isinstance(event, str) else json.dumps(event)}\n\n" for event in events)


def lines(*events: Any) -> str:
    return "\n".join(map(json.dumps, events))


def parts(*parts: tuple[str, Any]) -> str:
    return "".join(f"{code}:{json.dumps(value)}\n" for code, value in parts)


BODIES: dict[str, Callable[[list[str]], str]] = {
    "events": lambda words: lines_of_sse(*({"delta": word} for word in words), "[DONE]"),
    "events without a last line": lambda words: lines_of_sse(*({"text": word} for word in words)).strip(),
    "events of text": lambda words: ": ping\n\n" + lines_of_sse(*words),
    "quoted texts": lambda words: "retry: 1\n\n" + lines_of_sse(*map(json.dumps, words), name="data"),
    "named events": lambda words: lines_of_sse("Searching", name="status") + lines_of_sse(*words, name="token"),
    "completion": lambda words: lines_of_sse(*({"choices": [{"delta": {"content": word}}]} for word in words)),
    "lines": lambda words: lines({"type": "start"}, *({"response": word} for word in words), {"done": True}),
    "lines with a result": lambda words: lines({"status": "working"}, {"answer": "".join(words)}),
    "objects in a row": lambda words: "".join(json.dumps({"token": word}) for word in words),
    "parts": lambda words: parts(
        ("f", {"messageId": "1"}), *(("0", word) for word in words), ("d", {"reason": "stop"})
    ),
    "parts with reasoning": lambda words: parts(("g", "Hm"), ("2", [{"n": 1}]), *(("0", word) for word in words)),
    "parts that were cut off": lambda words: parts(*(("0", word) for word in words)) + 'd:{"rea',
}


@each("body", BODIES)
@given(st.lists(st.text("abc ", min_size=1, max_size=6).filter(lambda text: text.strip() == text), min_size=2))
def test_a_whole_stream_that_is_returned_as_one_text_is_read(body: str, words: list[str]) -> None:
    """The answer is the same as if the handler had yielded the events."""
    words = ["Shoes", *(f" {word}" for word in words)]

    assert captured(BODIES[body](words)).answer == "".join(words)
    assert captured(BODIES[body](words).encode()).answer == "".join(words)


@each(
    "text",
    [
        lines_of_sse({"title": "a"}),
        lines_of_sse({"type": "status", "content": "Searching"}),
        lines_of_sse({"delta": "Shoes"}, {"error": "boom"}),
        lines({"title": "a"}, {"title": "b"}),
        '{"title": "a"}\n{"title": "b',
        parts(("0", "Shoes"), ("3", "boom")),
        parts(("f", {"messageId": "1"})),
    ],
)
def test_a_stream_without_an_answer_is_reported(text: str, caplog: pytest.LogCaptureFixture) -> None:
    """The text of its events is never stored as it is."""
    caplog.clear()
    assert captured(text, f"route of {text!r}").answer is None
    assert "answer of route of " in caplog.text


PROSE = [
    'Use {"a": 1}.',
    '{"a": 1} is an object.',
    "{'name': 'x'} is a dict.",
    "{'name'} is a placeholder",
    'Call it like this:\n\n```json\n{"a": 1}\n```\n\nand it answers.',
    "```python\nprint({'a': 1})\n```",
    "```python\n{'a': 1}\n```",
    "```\nplain\n```",
    '```json\n{"a": 1}\n```\nThis is JSON.',
    '"Yes," she said.',
    '"Because."',
    '"{"',
    "'quoted'",
    "(see {'a': 1})",
    "Data: 1\nEvent: 2\n",
    "data: 1\nis a line",
    "id: 42",
    "data: first\n\nand then plain text",
    "a: one\nb: two",
    '0: "zero"\n1: "one"',
    '0:"zero" is not a part\n1:"one"',
    "1: yes\n2: no",
    "~~~\ncode\n~~~",
    "[1, 2] are numbers",
    '{"a": 1} {b} {c}',
    '{"a": 1}\n[1] As they say.',
    "  An indented answer  \n",
    "OK",
    "\ufeffAn answer",
    "{% raw %}{{ name }}{% endraw %}",
]


@each("text", PROSE)
def test_a_text_that_mentions_a_structure_is_kept_as_it_is(text: str) -> None:
    """Byte for byte, returned or streamed."""
    assert captured(text).answer == text
    assert captured([text[:3], text[3:]]).answer == text
    assert captured(list(text)).answer == text


@given(st.sampled_from(["{", "[", '"', "'", "```", "data: ", "0:", "(", "1. ", ""]), st.text(LETTERS), ANSWERS)
def test_prose_is_kept_whatever_it_begins_with(start: str, middle: str, end: str) -> None:
    """Words after a structure make the text prose."""
    text = f"{start}{middle} {end} and so on"

    assert captured(text).answer == text


@each("item", ['{"port": 80}', '{"text": "x"}', '{"error": "x"}', '{"answer": "no"}\n', '[{"a": 1}]'])
def test_an_object_inside_of_streamed_prose_is_part_of_it(item: str) -> None:
    """Data before or after the text is not."""
    for chunks in (["The config:\n", "```json\n", item, "```\n"], ["Use ", item, item, " here."], [item, " is it."]):
        assert captured(chunks).answer == "".join(chunks)


@each("data", ['{"sources": ["a"]}', '{"usage": {"tokens": 3}}\n'])
def test_data_before_and_after_streamed_prose_is_no_part_of_it(data: str) -> None:
    """The text does not continue its line."""
    assert captured([data, "Shoes can ", "be returned."]).answer == "Shoes can be returned."
    assert captured([data, "\nShoes can ", "be returned.", data]).answer == "\nShoes can be returned."


MESSAGES = [
    "content={text!r} additional_kwargs={{}} response_metadata={{}}",
    "AIMessage(content={text!r}, additional_kwargs={{}}, response_metadata={{'model': 'm'}}, id='run-1')",
    "content=[{{'type': 'text', 'text': {text!r}}}] additional_kwargs={{}} response_metadata={{}} id='run-1'",
]


@each("form", MESSAGES)
@each("text", ["Thirty days.", 'It\'s (about) "thirty"', "a\nb"])
def test_a_message_that_was_converted_to_text_is_read(form: str, text: str) -> None:
    """By ``str()`` or ``repr()``. Code that creates a message is kept."""
    assert captured(form.format(text=text)).answer == text
    for code in (f"AIMessage(content={text!r})", f"Use content={text!r} additional_kwargs={{}}", "It is 30 (thirty)"):
        assert captured(code).answer == code
