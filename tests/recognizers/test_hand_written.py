"""Hand-written RAG applications, whose traces contain model calls without a framework around them."""

from __future__ import annotations

from collections import Counter

import pytest
from tests.cases import each
from tests.spans.samples import node, trace
from tests.spans.shapes import FORMS, LANGUAGES, call, shapes, spans_of

from germane.recognizers import Recognized, Unreadable, recognize

LIMITS = (1024, 300, 120, 60)
"""Maximum lengths of attributes."""


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
            unread[shape.name] += 1

    assert len(every) > 200
    assert unread.total() <= len(every) / 50, unread


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

    assert limit > 120 or reasons["content_cut"] > 150, reasons


@pytest.mark.parametrize("language", LANGUAGES)
def test_two_answers_to_the_same_question_are_ambiguous(language: str) -> None:
    """Of two models that got the same documents, nothing says whose answer the user saw."""
    text = LANGUAGES[language]
    calls = [call("\n".join(text.documents), text.question, reply) for reply in (text.answer, text.draft)]

    result = recognize(spans_of(calls, "OpenTelemetry"))

    assert isinstance(result, Unreadable)
    assert result.reason == "ambiguous"


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
