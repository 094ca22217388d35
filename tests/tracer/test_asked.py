"""Which text of a call is the question, by the names and the forms of the texts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.cases import each

import germane
from germane.testing import collect

ANSWER = "Shoes can be returned within thirty days of delivery."
QUESTIONS = [
    "Can I return shoes?",
    "Tell me about returns.",
    "return policy",
    "Why?",
    "Where is order 550e8400-e29b-41d4-a716-446655440000?",
    "Kann ich Schuhe umtauschen?",
    "\u53ef\u4ee5\u9000\u8d27\u5417",
    "\u0938\u092e\u092f \u0938\u0940\u092e\u093e \u0915\u094d\u092f\u093e \u0939\u0948",
    "\u0e04\u0e37\u0e19\u0e2a\u0e34\u0e19\u0e04\u0e49\u0e32\u0e44\u0e14\u0e49\u0e44\u0e2b\u0e21",
]
IDENTIFIERS = [
    *("sess-123", "u-1", "42", "550e8400-e29b-41d4-a716-446655440000", "sk-proj-a1b2c3d4e5f6g7h8", "gpt-4o", "en-US"),
    *("https://shop.example/returns?id=1", "/var/lib/docs/a.txt", "C:\\docs\\a.txt", "ann@shop.example", "a_b_c", "v2"),
    *(
        "Bearer a1b2c3d4e5f6g7h8i9j0",
        "2026-11-29 10:00:00",
        "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.Zm9v",
        "AbCdEfGhIjKl",
        "a=1",
    ),
]
NAMES = ["a", "text", "content", "utterance", "user_text", "q"]


def ask(parameters: str, *args: Any, answer: Any = "a") -> germane.Exchange:
    """Return the exchange of a call of a function with these parameters."""
    function: Callable[..., Any] = eval(f"lambda {parameters}: answer", {"answer": answer})
    with collect() as exchanges:
        germane.observe(route=f"ask {parameters}")(function)(*args)
    (exchange,) = exchanges
    return exchange


@each("question", QUESTIONS)
@each("identifier", IDENTIFIERS)
def test_an_identifier_is_not_the_question_whatever_its_name(question: str, identifier: str) -> None:
    """Its form tells it from a question in any language, before and after it."""
    assert ask("a, b", identifier, question).question == question
    assert ask("a, b", question, identifier).question == question
    assert ask("a", identifier).question is None
    assert ask("question, b", identifier, question).question in {question, identifier}


@each(
    "identifier",
    [
        *("sk-proj-a1b2c3d4e5f6g7h8", "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.Zm9v", "Bearer a1b2c3d4e5f6g7h8i9j0"),
        "550e8400-e29b-41d4-a716-446655440000",
    ],
)
@each("name", ["question", "query", "prompt", "message", "input", "a", "api_key"])
def test_a_key_is_never_the_question(identifier: str, name: str) -> None:
    """A key is not stored even if its name is that of a question."""
    for argument in (identifier, {name: identifier}, [{"role": "user", "content": identifier}]):
        assert identifier not in str(ask(name, argument))


@each("other", ["acme", "en", "Ann Smith", "de", "A long text about shoes. They can be returned."])
@each("name", ["session_id", "sessionId", "apiKey", "tenant", "locale", "lang", "user", "file_path", "context", "docs"])
@each("question", QUESTIONS)
def test_the_name_of_another_text_excludes_it(other: str, name: str, question: str) -> None:
    """A text of any form is not the question if its name says that it is an id, a key, a locale or a document."""
    assert ask(f"{name}, text", other, question).question == question
    assert ask(name, other).question is None


@given(st.sampled_from(NAMES), st.sampled_from(QUESTIONS), st.sampled_from(["acme", "premium", "en"]))
def test_a_sentence_is_preferred_to_a_word(name: str, question: str, word: str) -> None:
    """The order of the arguments does not matter."""
    if " " in question or not question.isascii():
        assert ask(f"kind, {name}", word, question).question == question
        assert ask(f"{name}, kind", question, word).question == question


@each("fields", [{"text": "q", "files": []}, {"chat_id": "c1", "text": "q"}, {"text": "q", "name": "Ann Lee"},
                 {"event": {"type": "message", "text": "q", "user": "U1"}}, {"message": {"id": 2, "text": "q"}},
                 {"queryStringParameters": {"q": "q"}, "headers": {"user-agent": "Mozilla/5.0 (X11; Linux)"}},
                 {"query": {"text": "q"}}, {"q": "q", "tenant": "acme"}])  # fmt: skip
@each("question", QUESTIONS)
def test_the_text_in_a_record_is_the_question(fields: dict[str, Any], question: str) -> None:
    """Events and bodies of chats, messages with files, and parameters of a URL."""

    def filled(value: Any) -> Any:
        if isinstance(value, dict):
            return {name: filled(inner) for name, inner in value.items()}
        return question if value == "q" else value

    assert ask("body", filled(fields)).question == question


@each("fields", [{"title": "Shoes and socks"}, {"draft": ANSWER, "documents": [ANSWER]}, {"text": "id-1"},
                 {"text": "Shoes and socks", "content": "Can I?", "subject": "How so?"},
                 {"role": "assistant", "content": "How can I help?"}, {"context": {"text": ANSWER}}])  # fmt: skip
def test_a_record_without_a_clear_question_is_reported(fields: dict[str, Any]) -> None:
    """A text that neither asks nor has a name of a question may be anything."""
    assert ask("body", fields).question is None


QUESTION, DOCUMENTS = "Can I return shoes?", [ANSWER, "Refunds are paid within two weeks."]
PROMPTS = [
    "Use the context.\n<context>{d}</context>\nQuestion: {q}",
    "<documents>\n{d}\n</documents>\n<question>{q}</question>",
    "<context>{d}</context> {q}",
    "Answer from the context.\n\nContext:\n{d}\n\nQuestion: {q}\n\nAnswer:",
    "Beantworte die Frage.\n\nKontext: {d}\nFrage: {q}\nAntwort:",
    "R\u00e9ponds.\n\nContexte :\n{d}\n\nQuestion : {q}\n\nR\u00e9ponse :",
    "\u56de\u7b54\u3002\n\n\u8d44\u6599\uff1a{d}\n\u95ee\u9898\uff1a{q}\n\u56de\u7b54\uff1a",
    "Answer from the documents.\n\n{d}\n\nQuestion: {q}",
    "{q}\n\nHere are the documents:\n{d}",
    "## Context\n{d}\n\n## Question\n{q}",
    "Rules:\n- be brief\n\nDocuments:\n{d}\n\nUser: {q}",
    "You are helpful. Use only this:\n---\n{d}\n---\n{q}",
]
TYPED = [
    "I bought shoes last week. They do not fit. Can I return them within thirty days?",
    "I bought shoes last week.\nCan I return them within thirty days of delivery?",
    "Hello team,\n\ncan shoes be returned?\n\nBest regards\nAnn",
    "Which of these can I return?\n- shoes\n- socks",
    "I have two questions:\n1. Can I return shoes?\n2. How long is delivery?",
    "Order: 12345\nSize: 42\nCan I exchange it?",
    "I get this error:\nTypeError: unsupported operand\nHow do I fix it?",
    "Why does this fail?\n\n```python\nx: int = 'a'\n```",
    "How do I center a <div>text</div> in HTML?",
    "\u6211\u4e0a\u5468\u4e70\u4e86\u978b\u5b50\u3002\n\u53ef\u4ee5\u9000\u8d27\u5417\uff1f",
]


@each("template", PROMPTS)
@each("name", ["prompt", "text", "message", "messages"])
@each("length", [1, 2])
def test_the_question_is_taken_out_of_a_whole_prompt(template: str, name: str, length: int) -> None:
    """The documents and instructions in the prompt are not part of the question."""
    prompt: Any = template.format(q=QUESTION, d="\n".join(DOCUMENTS[:length]))
    exchange = ask(name, [{"role": "user", "content": prompt}] if name == "messages" else prompt, answer=ANSWER)

    assert (exchange.question, exchange.answer) == (QUESTION, ANSWER)


@each("text", TYPED)
@each("name", ["prompt", "text", "message", "messages"])
def test_a_question_of_several_lines_is_stored_whole(text: str, name: str) -> None:
    """Greetings, lists, code and labels are part of what a person has typed."""
    argument = [{"role": "user", "content": text}] if name == "messages" else text

    assert ask(name, argument, answer="Please ask the shop.").question == text


def test_a_prompt_whose_question_is_unknown_is_reported(caplog: pytest.LogCaptureFixture) -> None:
    """A text with the documents in it is not scored as a question, even in one line."""

    @germane.retrieval
    def search() -> list[str]:
        return DOCUMENTS

    @germane.observe(route="whole prompt")
    def generate(prompt: str) -> str:
        search()
        return ANSWER

    with collect() as exchanges:
        generate(f"{' '.join(DOCUMENTS)} " * 4 + f"Answer this: {QUESTION}")
        generate(f"{DOCUMENTS[0]}\n{DOCUMENTS[1]}")

    assert [(exchange.question, exchange.answer) for exchange in exchanges] == [(None, ANSWER)] * 2
    assert ["question of whole prompt: the text is a whole prompt" in message for message in caplog.messages] == [True]


def test_a_question_that_is_selected_or_set_is_not_searched() -> None:
    """Only a text that germane itself has chosen may be a whole prompt."""
    prompt = PROMPTS[0].format(q=QUESTION, d=ANSWER)

    @germane.observe
    def generate(prompt: str) -> str:
        germane.set_question(f"{prompt}\n")
        return ANSWER

    with collect() as exchanges:
        germane.observe(question="prompt")(lambda prompt: ANSWER)(prompt)
        generate(prompt)

    assert [exchange.question for exchange in exchanges] == [prompt, f"{prompt}\n"]


def test_a_prompt_that_the_answer_is_from_is_not_the_question() -> None:
    """Without documents that were captured, the answer shows where it was taken from."""
    text = f"Rules: be brief\n\nNotes:\n{ANSWER}\n{DOCUMENTS[1]}"

    assert ask("prompt", text, answer=ANSWER).question is None
    assert ask("prompt", text, answer="Please ask the shop.").question == text


@each("blank", [" ", "\n\t", "\u3000", b" "])
def test_a_blank_answer_is_missing(blank: Any) -> None:
    """A text of blanks only answers nothing."""
    assert ask("question", "Can I return shoes?", answer=blank).answer is None


@each("name", ["text", "message", "input", "q", "c"])
@each("prompt", ["You are a helpful assistant. Answer in one sentence.", "Answer this question: {question}", "{q}?"])
def test_a_prompt_beside_a_text_that_asks_is_an_instruction(name: str, prompt: str) -> None:
    """A template never is the question."""
    assert ask(f"prompt, {name}", prompt, QUESTION).question == QUESTION
    assert ask(f"{name}, prompt", QUESTION, prompt).question == QUESTION
    assert ask("prompt", prompt).question == prompt
    assert ask(f"prompt, {name}", QUESTION, "return policy").question == QUESTION


QUOTES = [
    "User: what is x?\nBot: y\nwhy did your bot say this?",
    "Is this contract valid?\n\nSection 1: The tenant pays.\nSection 2: The landlord repairs.",
    "Customer: may I return it?\nAgent: no.\nIs that right?\nBe quick.",
]


@each("text", [*QUOTES, *TYPED])
@each("name", ["question", "query"])
def test_a_typed_question_keeps_what_it_quotes(text: str, name: str) -> None:
    """The parameter's name says that the text is only the question, unless its form says otherwise."""
    assert ask(name, text, answer="Please ask the shop.").question == text


def test_a_typed_text_that_the_answer_is_from_is_a_prompt() -> None:
    """Its question is taken out of it."""
    assert ask("question", f"{QUESTION}\n\n{ANSWER}\n{DOCUMENTS[1]}", answer=ANSWER).question == QUESTION
    text = f"\u8d44\u6599\uff1a{ANSWER}\n{DOCUMENTS[1]}\n\n\u95ee\u9898\uff1a{QUESTION}"
    assert ask("question", text, answer="\u6211\u4e0d\u77e5\u9053\u3002").question == QUESTION


@each("template", [each for each in PROMPTS if "question>" in each or "Question: {q}" in each])
@each("name", ["question", "query"])
def test_a_whole_prompt_is_none_whatever_its_name(template: str, name: str) -> None:
    """Even if the answer is a refusal."""
    prompt = template.format(q=QUESTION, d=ANSWER)

    assert ask(name, prompt, answer=ANSWER).question == QUESTION
    assert ask(name, prompt, answer="Please ask the shop.").question == QUESTION


def pairs(questions: Any, results: Any) -> dict[str | None, str | None]:
    """Return the questions and answers that are captured from a batch."""
    with collect() as exchanges:
        germane.observe(route="batch")(lambda questions: results)(questions)
    return {exchange.question: exchange.answer for exchange in exchanges}


@given(st.permutations(range(4)), st.booleans())
def test_the_results_of_a_batch_are_matched_by_what_they_repeat(order: list[int], is_text: bool) -> None:
    """By an id, under whatever name, or by the question itself."""
    texts = [f"Can I return article {number}?" for number in range(4)]
    items = [{"id": number, "question": text} for number, text in enumerate(texts)]
    expected = {text: f"Answer {number}." for number, text in enumerate(texts)}
    for name in ("id", "item_id"):
        results = [{name: str(number) if is_text else number, "answer": f"Answer {number}."} for number in order]
        assert pairs(items, results) == expected
    assert pairs(texts, [{"index": number, "answer": f"Answer {number}."} for number in order]) == expected
    nested = [{"meta": {"id": number}, "answer": f"Answer {number}."} for number in order]
    assert pairs(items, nested) == expected
    for questions in (texts, items):
        repeated = [{"question": texts[number], "answer": f"Answer {number}."} for number in order]
        assert pairs(questions, repeated) == expected


def test_the_results_of_a_batch_that_do_not_match_are_reported(caplog: pytest.LogCaptureFixture) -> None:
    """Ids of their own, or none, leave them in order."""
    items = [{"id": number, "question": f"Can I return article {number}?"} for number in (1, 2)]
    answers = [{"answer": "Yes."}, {"answer": "No."}]
    expected = {"Can I return article 1?": "Yes.", "Can I return article 2?": "No."}

    assert pairs(items, answers) == expected
    assert pairs(items, [{"id": f"x{number}"} | answer for number, answer in enumerate(answers)]) == expected
    assert pairs([item["question"] for item in items], ["Yes.", "No."]) == expected
    assert pairs(items, [{"id": 2} | answers[0], {"id": 2} | answers[1]]) == {None: None}
    assert pairs(["Why?", "Why?"], [{"question": "Why?", "answer": "No."}] * 2) == {"Why?": "No."}
    same = [{"id": number, "question": "Why?", "answer": f"Reason {number}."} for number in (2, 1)]
    assert pairs([{"id": number, "question": "Why?"} for number in (1, 2)], same) == {"Why?": "Reason 2."}
    assert pairs(items, [{"id": 2} | answers[0], answers[1]]) == {None: None}
    unclear = [{"question": text, "answer": text} for text in ("How?", "Why?", "Why?")]
    assert pairs(["Why?", "Why?", "How?"], unclear) == {None: None}
    assert any("do not match the questions one to one" in message for message in caplog.messages)
