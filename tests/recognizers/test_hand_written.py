"""Hand-written RAG applications, whose traces contain model calls without a framework around them."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from itertools import islice

import pytest
from tests.cases import each
from tests.spans.samples import Node, node, trace
from tests.spans.shapes import AFTER, ANSWERS, BEFORE, FORMS, LANGUAGES, WEB, Call, Shape, call, shapes, spans_of

from germane.recognizers import Recognized, Unreadable, recognize

LIMITS = (1024, 300, 120, 60)
"""Maximum lengths of attributes."""
KIND = "openinference.span.kind"


def retriever(shape: Shape) -> Node:
    """Return a search for the documents of a shape."""
    texts = {f"retrieval.documents.{number}.document.content": text for number, text in enumerate(shape.documents)}
    return node("search", {KIND: "RETRIEVER", "input.value": shape.question, **texts})


def chain(asked: str, given: str, *children: Node) -> Node:
    return node("ask", {KIND: "CHAIN", "input.value": asked, "output.value": given}, *children)


def steps(shape: Shape, calls: list[Node]) -> list[Node]:
    """Return each call in a traced function that gets its prompt and returns its reply."""
    return [chain(each.messages[-1][1], each.reply, inner) for each, inner in zip(shape.calls, calls, strict=True)]


def replies(shape: Shape) -> str:
    return json.dumps({f"step {number}": each.reply for number, each in enumerate(shape.calls)})


SURROUNDINGS: dict[str, Callable[[Shape, list[Node]], list[Node]]] = {
    "no web request": lambda shape, calls: calls,
    "a search at the beginning": lambda shape, calls: [retriever(shape), *calls],
    "a search before the last call": lambda shape, calls: [*calls[:-1], retriever(shape), calls[-1]],
    "functions": lambda shape, calls: steps(shape, calls),
    "functions without a web request": lambda shape, calls: steps(shape, calls),
    "a chain": lambda shape, calls: [chain(shape.question, shape.answer, retriever(shape), *calls)],
    "a chain that returns all": lambda shape, calls: [chain(shape.question, replies(shape), *calls)],
    "spans without text": lambda shape, calls: [node("span", {}, each) for each in calls],
}
"""Spans around and between the calls."""


@each("form", FORMS)
def test_the_pair_of_a_hand_written_application_is_found_in_every_language(form: str) -> None:
    """Calls before and after the answer, and documents in the prompt, never lead to a wrong pair."""
    unread = Counter[str]()
    every = list(shapes())
    for shape in every:
        result = recognize(spans_of(shape.calls, form))
        if isinstance(result, Recognized):
            assert (result.question, result.answer) == (shape.question, shape.answer), shape.name
            assert not result.has_documents_without_text
        else:
            assert isinstance(result, Unreadable)
            unread[result.reason] += 1

    assert len(every) > 300
    assert unread.keys() <= {"content_cut"}, unread  # texts that happen to end in the middle at the same length
    assert unread.total() <= len(every) / 40, unread


@each("name", SURROUNDINGS)
def test_the_pair_is_found_whatever_else_is_traced(name: str) -> None:
    """A search adds contexts, and a chain confirms the pair. Each surrounding gets another third of the shapes."""
    scope, attributes = FORMS["OpenTelemetry"]
    for shape in islice(shapes(), list(SURROUNDINGS).index(name) % 3, None, 3):
        calls = [node("chat", attributes(each), scope=scope) for each in shape.calls]
        root = node("ask", {} if "web" in name else WEB, *SURROUNDINGS[name](shape, calls))
        result = recognize(trace("openinference.instrumentation", root))

        assert isinstance(result, Recognized), shape.name
        assert (result.question, result.answer) == (shape.question, shape.answer), shape.name
        contexts = tuple(context.text for context in result.contexts)
        assert contexts == shape.documents or (not contexts and "search" not in name), shape.name


def test_calls_before_and_after_the_answer_can_be_combined() -> None:
    """Whatever an application does for the answer, other calls may surround it."""
    before, after = list(BEFORE.values()), list(AFTER.values())
    unread = list[str]()
    for number, text in enumerate(LANGUAGES.values()):
        for position, (name, answer) in enumerate(ANSWERS.items(), number):
            for step in range(3):
                first = before[(position + step) % len(before)](text)
                others = [after[(2 * position + each) % len(after)](text) for each in (3 * step, 5 * step + 1)]
                result = recognize(spans_of([*first, *answer(text), *others[0], *others[1]], "OpenTelemetry"))
                if isinstance(result, Recognized):
                    assert (result.question, result.answer) == (text.question, text.answer), name
                else:
                    unread.append(name)

    assert len(unread) < 6, unread


@each("answer", ["I do not know.", "draft", "part"])
def test_short_answers_are_answers(answer: str) -> None:
    """They do not repeat the documents, and texts about them may be longer."""
    unread = Counter[str]()
    for text in LANGUAGES.values():
        given = {"draft": text.draft, "part": text.replies[1]}.get(answer, answer)
        short = replace(text, answer=given)
        for shape in ("plain", "labeled", "JSON", "headings"):
            for name, after in {"alone": lambda _: [], **AFTER}.items():
                result = recognize(spans_of([*ANSWERS[shape](short), *after(short)], "OpenTelemetry"))
                if isinstance(result, Recognized):
                    assert (result.question, result.answer) == (text.question, given), (shape, name)
                else:
                    unread[name] += 1

    assert unread.total() <= (48 if answer == "I do not know." else 0), unread
    assert unread.keys() <= {"memory", "verdict"}, unread  # sentences as well


@each("form", FORMS)
@each("limit", LIMITS)
def test_attributes_that_were_cut_off_never_lead_to_a_wrong_pair(form: str, limit: int) -> None:
    """If a text is missing its end, the trace is unreadable, and the reason names the limit."""
    reasons = Counter[str]()
    for shape in shapes():
        result = recognize(spans_of(shape.calls, form, limit))
        if isinstance(result, Recognized):
            assert (result.question, result.answer) == (shape.question, shape.answer), shape.name
        else:
            assert isinstance(result, Unreadable)
            reasons[result.reason] += 1

    assert limit > 120 or reasons["content_cut"] > 250, reasons
    assert limit < 300 or reasons.total() < {1024: 9, 300: 275}[limit], reasons


@pytest.mark.parametrize("language", LANGUAGES)
def test_two_answers_to_the_same_question_are_ambiguous(language: str) -> None:
    """Of two models that got the same documents, nothing says whose answer the user saw."""
    text = LANGUAGES[language]
    for other in (text.draft, "I am sorry, but I cannot tell that."):
        calls = [call("\n".join(text.documents), text.question, reply) for reply in (text.answer, other)]

        result = recognize(spans_of(calls, "OpenTelemetry"))

        assert isinstance(result, Unreadable)
        assert result.reason == "ambiguous"


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_last_turn_of_a_conversation_in_one_trace_is_the_pair(language: str) -> None:
    """A program may record several turns in one span."""
    text = LANGUAGES[language]
    turns = [text.parts[0], text.replies[0], text.question]
    messages = tuple(zip(("user", "assistant", "user"), turns, strict=True))
    calls = [Call("\n".join(text.documents), messages[:1], turns[1]), Call(text.documents[0], messages, text.answer)]
    scope, attributes = FORMS["OpenTelemetry"]

    result = recognize(trace(scope, node("session", {}, *(node("chat", attributes(each)) for each in calls))))

    assert isinstance(result, Recognized)
    assert (result.question, result.answer, len(result.history)) == (text.question, text.answer, 2)


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_text_that_only_looks_like_an_answer_is_never_taken_for_one(language: str) -> None:
    """Facts, summaries, verdicts and suggestions are sentences, too, and the answer may be short, JSON or missing."""
    text = LANGUAGES[language]
    documents, asked = "\n".join(text.documents), text.question
    for answer in (text.answer, "14", json.dumps(text.replies, ensure_ascii=False)):
        dialogue = f"{text.speakers[0]}: {asked}\n{text.speakers[1]}: {answer}"
        begun = f"{documents}\n\n{text.speakers[0]}: {asked}\n{text.speakers[1]}:"
        unmarked = "\n".join(each[:-1] for each in text.followups)
        for first, *others in (
            [call(documents, asked, answer), call("State a fact about the user.", dialogue, text.fact)],
            [call(documents, asked, answer), call("Describe the user.", asked, text.fact)],
            [call(documents, asked, answer), call("Sum it up.", dialogue, f"{text.fact} {text.title}.")],
            [call(documents, asked, answer), call("Is the reply compliant?", answer, "The reply is compliant.")],
            [call(documents, asked, answer), call("Suggest more.", dialogue, unmarked)],
            [call("", begun, answer), call("", f"{begun} {answer}\n\nFacts:", text.fact)],
        ):
            result = recognize(spans_of([first, *others], "OpenTelemetry"))

            assert isinstance(result, Unreadable) or (result is not None and result.answer == answer), result


@pytest.mark.parametrize("language", LANGUAGES)
def test_documents_that_another_call_got_alone_are_not_the_question(language: str) -> None:
    """Keywords, a title, suggestions or a summary may be made from them after the answer."""
    text = LANGUAGES[language]
    documents = "\n".join(text.documents)
    for reply in ('["x"]', text.title, "\n".join(text.followups), text.documents[0]):
        calls = [call(documents, text.question, text.answer), call("Make it.", documents, reply)]
        result = recognize(spans_of(calls, "OpenLLMetry"))

        expected = (text.question, text.answer)
        assert not isinstance(result, Recognized) or (result.question, result.answer) == expected, result


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_last_version_of_an_answer_is_never_overlooked(language: str) -> None:
    """Citations are added to a short draft, and a long one is shortened: the text before is not the answer."""
    text = LANGUAGES[language]
    documents = "\n".join(text.documents)
    draft, cited, whole = text.draft, f"{text.draft} [1][2]", f"{text.answer} {documents}"
    added = call("Add citations.", f"{documents}\n{draft}", cited)

    result = recognize(spans_of([call(documents, text.question, draft), added], "OpenTelemetry"))
    shortened = [call(documents, text.question, whole), call("Shorten.", whole, draft)]
    unknown = recognize(spans_of(shortened, "OpenTelemetry"))

    assert isinstance(result, Recognized)
    assert (result.question, result.answer) == (text.question, cited)
    assert isinstance(unknown, Unreadable)
    assert unknown.reason == "ambiguous"


@each("limit", [255, 1023, 4095])
def test_one_long_text_that_ends_in_the_middle_below_a_power_of_two_was_cut_off(limit: int) -> None:
    """Limits may count from zero, or leave a place for the end of a string."""
    text = "The night train stops in Lyon at two. " * 300
    for prompt, answer in (("Why?", text), (f"{text}\n\nWhy?", "Yes.")):
        result = recognize(spans_of([call("", prompt, answer)], "OpenLLMetry", limit))

        assert isinstance(result, Unreadable)
        assert result.reason == "content_cut"


def test_instructions_that_were_cut_off_make_the_choice_of_the_answer_unreadable() -> None:
    """OpenTelemetry records the system's message in an attribute of its own, and documents may be missing in it."""
    text = LANGUAGES["English"]
    spans = spans_of([call("", text.question, text.answer)], "OpenTelemetry")
    instructions = json.dumps([{"type": "text", "content": " ".join(text.documents * 5)}])
    given = {"gen_ai.system_instructions": instructions[:600]}
    cut = recognize([replace(span, attributes={**span.attributes, **given}) for span in spans])

    assert isinstance(cut, Unreadable)
    assert cut.reason == "content_cut"


def test_a_prompt_that_ends_with_a_statement_at_a_usual_limit_was_cut_off() -> None:
    """The question may have been behind it. A prompt that ends with a question is whole."""
    statement = (
        "Use what follows to reply, and say that you do not know it if it is not there, as we must not guess at it."
    )

    def read(prompt: str) -> Recognized | Unreadable | None:
        return recognize(spans_of([call("", prompt, "For 14 days.")], "OpenLLMetry"))

    cut, whole = read(statement[:99] + "."), read(statement[:99] + "?")

    assert isinstance(cut, Unreadable)
    assert cut.reason == "content_cut"
    assert isinstance(whole, Recognized)


def test_a_context_that_was_cut_off_is_left_out() -> None:
    """Scorers that need contexts skip the exchange, because the answer may be in the part that is missing."""
    kind = "openinference.span.kind"
    document = "retrieval.documents.0.document.content"
    text = LANGUAGES["English"]
    whole = {kind: "CHAIN", "input.value": text.question, "output.value": text.answer}

    def read(length: int | None) -> Recognized:
        retriever = node(
            "retriever", {kind: "RETRIEVER", document: (" ".join(text.documents) + " And so on.")[:length]}
        )
        result = recognize(trace("openinference.instrumentation.langchain", node("chain", whole, retriever)))
        assert isinstance(result, Recognized)
        return result

    assert len(read(None).contexts) == 1
    assert not read(None).has_documents_without_text
    assert read(150).contexts == ()
    assert read(150).has_documents_without_text


def test_two_texts_that_end_in_the_middle_at_one_length_were_cut_off() -> None:
    """The limit may be any number. A single text of an unusual length may be whole."""
    kind = "openinference.span.kind"
    asked = "How long may I keep a borrowed telescope, and may I renew the loan by phone if nobody waits?"
    given = "You may keep it for fourteen days and renew the loan twice by phone unless somebody waits for it."

    def read(length: int) -> Recognized | Unreadable | None:
        chain = {kind: "CHAIN", "input.value": asked[:73], "output.value": given[:length]}
        return recognize(trace("openinference.instrumentation.langchain", node("chain", chain)))

    cut, whole = read(73), read(57)

    assert isinstance(cut, Unreadable)
    assert cut.reason == "content_cut"
    assert isinstance(whole, Recognized)
