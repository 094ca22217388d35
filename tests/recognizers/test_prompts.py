"""The question inside a prompt: which of its parts is it, and when can it not be told."""

from __future__ import annotations

import json

from tests.cases import each
from tests.spans.samples import node, trace
from tests.spans.shapes import FORMS, Call, call, spans_of

from germane.recognizers import Recognized, UnreadableReason, recognize

DOCUMENTS = "Cups hold three litres of water.\nLids are red and cost two euros at the desk."
LINE = "Cups hold three litres of water, and red lids cost two euros at the desk near the entrance of the shop."
LONG_DOCUMENTS = f"{DOCUMENTS}\nCups and lids are sold on all days but Sunday, and both can be returned within a month."
REPLY = "A cup holds three litres, and its red lid costs two euros at the desk."
ASKED = "How much does a cup hold, and what does its lid cost?"
UNMARKED = "volume of a cup and price of its lid"
INSTRUCTION = "Be brief and polite"


def read(prompt: str, reply: str = REPLY) -> str | UnreadableReason:
    """Return the question of a trace with one call, or the reason why there is none."""
    result = recognize(spans_of([call("", prompt, reply)], "OpenTelemetry"))
    assert result is not None
    return result.question if isinstance(result, Recognized) else result.reason


@each(
    "prompt",
    [
        f"<docs>{DOCUMENTS}</docs>\n<q>{ASKED}</q>\n{INSTRUCTION}.",
        f"<docs>\n{DOCUMENTS}\n</docs>\n\n{ASKED}",
        f"{ASKED}\n\n<docs>{DOCUMENTS}</docs>",
        f"Kontext:\n{DOCUMENTS}\n\nFrage: {ASKED}",
        f"Frage: {ASKED}\n\nKontext:\n{DOCUMENTS}\n\nAntwort:",
        f"{DOCUMENTS}\n\n{ASKED}",
        f"{ASKED}\n\n{DOCUMENTS}",
        f'{INSTRUCTION}.\n"""\n{DOCUMENTS}\n"""\n{ASKED}',
        f"=== Docs ===\n{DOCUMENTS}\n=== Task ===\n{ASKED}\n=== Reply ===",
        f"[DOCS]\n{DOCUMENTS}\n\n[ASKED]\n{ASKED}",
        f"# Docs\n\n{DOCUMENTS}\n\n# Asked\n\n{ASKED}",
        f"You answer questions. Here are the documents:\n{DOCUMENTS}\n\nAnd this is the question:\n{ASKED}",
        f"Docs:\nQ: Are lids blue?\nA: Lids are red and cost two euros at the desk.\n\nFrage: {ASKED}",
        f"Q: Are lids blue?\nA: No.\nQ: {ASKED}\nA:",
        f"Q: Are lids blue?\nA: No.\nQ: Is it cheap?\nA: Yes.\nQ: {ASKED}",
        f"Rules: {INSTRUCTION}\nUser: {ASKED}",
        f'{{"documents": ["{DOCUMENTS.splitlines()[0]}"], "frage": "{ASKED}"}}',
        f"Current task: {ASKED}\n\nExpected outcome: a text\nReturn all of it.\n\nBegin!",
    ],
)
def test_the_part_that_asks_is_the_question(prompt: str) -> None:
    """Tags, labels in any language, headings, paragraphs and JSON separate it from documents and instructions."""
    assert read(prompt) == ASKED


@each("reply", [REPLY, "I don't know.", "\u6211\u4e0d\u77e5\u9053\u3002", "\u0644\u0627 \u0623\u0639\u0631\u0641."])
@each(
    "prompt",
    [
        f"{ASKED}\n\n{LONG_DOCUMENTS}",
        f"{LONG_DOCUMENTS}\n\n{ASKED}",
        f"<Docs>\n{LONG_DOCUMENTS}\n</Docs>\n\n{ASKED}",
        f"1. Cups hold water.\n2. {LINE}\n\n{ASKED}",
        f"{INSTRUCTION}. Docs: {LINE} Asked: {ASKED}",
        f"Docs = {LINE}\nAsked = {ASKED}",
        f"Docs - {LINE}\nAsked - {ASKED}",
        f"Docs \u2192 {LINE}\nAsked \u2192 {ASKED}",
        f"1) Docs: {LINE}\n2) Asked: {ASKED}",
        f"\U0001f4c4 Docs: {LINE}\n\u2753 Asked: {ASKED}",
        f"###DOCS###\n{LONG_DOCUMENTS}\n###ASKED###\n{ASKED}",
        f"__DOCS__\n{LONG_DOCUMENTS}\n__ASKED__\n{ASKED}",
        f"<<DOCS>>\n{LONG_DOCUMENTS}\n<<ASKED>>\n{ASKED}",
        f"{{docs}}\n{LONG_DOCUMENTS}\n{{asked}}\n{ASKED}",
        f"BEGINDOCS\n{LONG_DOCUMENTS}\nENDDOCS\n{ASKED}",
        str({"docs": LONG_DOCUMENTS.splitlines(), "asked": ASKED}),
        f"<input><docs>{LONG_DOCUMENTS}</docs><query>{ASKED}</query></input>",
        f"<docs>{LONG_DOCUMENTS}</docs>\n<user question>{ASKED}</user question>",
        f"<\u0938\u0902\u0926>{LONG_DOCUMENTS}</\u0938\u0902\u0926>\n<\u092a\u094d\u0930>{ASKED}</\u092a\u094d\u0930>",
        f"<|im_start|>system\n{LONG_DOCUMENTS}<|im_end|>\n<|im_start|>user\n{ASKED}<|im_end|>\n<|im_start|>assistant\n",
        f"<|system|>\n{LONG_DOCUMENTS}<|end|>\n<|user|>\n{ASKED}<|end|>\n<|assistant|>",
        f"[INST] {LONG_DOCUMENTS}\n\n{ASKED} [/INST]",
        f'Docs:\n{LONG_DOCUMENTS}\n\nAsked: "{ASKED}"',
        f"Docs:\n{LONG_DOCUMENTS}\n\nAsked: `{ASKED}`",
    ],
)
def test_the_question_does_not_depend_on_the_answer(prompt: str, reply: str) -> None:
    """A refusal does not repeat the documents, and prompts have any delimiters: never is the whole prompt taken."""
    assert read(prompt, reply) in {ASKED, "no_question"}
    assert read(prompt) == ASKED


@each(
    "prompt",
    [
        f"{INSTRUCTION}\n{ASKED} {LINE * 20}",
        f"<s>[INST] {LINE} {ASKED} [/INST]",
        f"{LONG_DOCUMENTS}\n\n{ASKED}\n\nRemember: cite the pages. Are you ready?",
        f"{UNMARKED}\n\n{LONG_DOCUMENTS}\n\n{INSTRUCTION}",
        f"{ASKED}\n{LONG_DOCUMENTS}",
    ],
)
def test_a_long_prompt_without_a_clear_question_is_unreadable(prompt: str) -> None:
    """It is not stored as a whole even if the answer is a refusal."""
    assert read(prompt, "No.") == "no_question"


@each(
    "messages",
    [
        [ASKED, LONG_DOCUMENTS],
        [LONG_DOCUMENTS, ASKED],
        [f"Docs: {LINE}", f"Asked: {ASKED}"],
        [ASKED, f"Docs:\n{LONG_DOCUMENTS}"],
    ],
)
def test_consecutive_messages_of_the_user_are_one_prompt(messages: list[str]) -> None:
    """Applications send the documents in a message of their own, before or after the question."""
    sent = Call("", tuple(("user", text) for text in messages), REPLY)

    result = recognize(spans_of([sent], "OpenTelemetry"))

    assert isinstance(result, Recognized)
    assert result.question == ASKED


def test_a_long_message_that_was_answered_from_elsewhere_is_the_question() -> None:
    """The documents are in the system's message, so that the user's is not a prompt."""
    message = f"Dear team,\n\nI bought two of them in May, and I am happy.\n\n{UNMARKED}\n\n" + "Yours, Kim. " * 9

    result = recognize(spans_of([call(DOCUMENTS, message, REPLY)], "OpenTelemetry"))

    assert isinstance(result, Recognized)
    assert result.question == message.strip()


@each(
    "prompt",
    [
        f"Kontext:\n{DOCUMENTS}\n\nFrage: {UNMARKED}",
        f"Kontext:\n{DOCUMENTS}\n\nFrage: {UNMARKED}\n\nAntwort:",
        f"<docs>{DOCUMENTS}</docs><x>{UNMARKED}</x>",
        f"{UNMARKED}\n\n{DOCUMENTS}",
        f"Frage: {UNMARKED}\n\nKontext:\n{DOCUMENTS}",
    ],
)
def test_a_question_without_a_mark_is_the_part_that_is_left_over(prompt: str) -> None:
    """The reply was taken from the other parts."""
    assert read(prompt) == UNMARKED


@each(
    "prompt",
    [
        f"{INSTRUCTION}\n\n{DOCUMENTS}\n\n{UNMARKED}",
        f"Kontext:\n{DOCUMENTS}\n\nFrage: {ASKED}\n\nI need it for a party.",
        f"Kontext:\n{DOCUMENTS}\n\nFrage: Hi!\n{ASKED}\nThanks",
        f"Kontext:\n{DOCUMENTS}\n\nFrage: {ASKED}\n- Does it hold milk?\n- Is the lid red?",
        f"Frage: {ASKED}\nKommentar: Is it urgent?\n{DOCUMENTS}",
        "Question: another\nAnswer: one",
        f"# Role\nYou help.\n\n# Docs\n{DOCUMENTS}\n\n# Asked\n{REPLY}\n\n# Style\nCups are red, lids are red.",
        f"Frage: {UNMARKED}\nDoc: Cups hold three litres of water.\nURL: x\nDoc: A red lid.\nURL: y\nDoc: Cups.",
        f"Today is Monday.\n\n{DOCUMENTS}\n\n{UNMARKED}\n\n{INSTRUCTION}",
    ],
)
def test_a_prompt_whose_question_is_not_clear_is_unreadable(prompt: str) -> None:
    """Several parts may be the question, or it may have more lines."""
    assert read(prompt) == "no_question"


@each(
    "message",
    [
        "I bought a cup and a lid.\n\nHow much does it hold?",
        "My order: 4711",
        "Hi!\nIs the desk open today?\nThanks, Kim",
        "Please compare:\n- cups\n- lids",
        "Why does it fail?\n\n```yaml\ncups: 3\nlids: 4\n```",
    ],
)
def test_a_message_without_documents_is_the_question_as_a_whole(message: str) -> None:
    """People write several paragraphs, too."""
    assert read(message, "Yes, until nine in the evening.") == message


def test_a_prompt_without_documents_is_a_template_all_the_same() -> None:
    """If nothing was found, only the label of the documents is left."""
    assert read(f"Kontext:\nFrage: {ASKED}", "I do not know that.") == ASKED


@each("found", [DOCUMENTS, *DOCUMENTS.splitlines(), f"{DOCUMENTS}\nCups are sold at the desk."])
def test_documents_in_a_prompt_are_known_from_their_retriever(found: str) -> None:
    """The reply need not repeat them, and the prompt may contain one or a part of one."""
    retriever = node(
        "search", {"openinference.span.kind": "RETRIEVER", "retrieval.documents.0.document.content": found}
    )
    prompt = call("", f"Kontext:\n{DOCUMENTS}\n\nFrage: {UNMARKED}", "I do not know that.")
    model = node("chat", FORMS["OpenTelemetry"][1](prompt))

    result = recognize(trace("shop", node("POST /ask", {}, retriever, model)))

    assert isinstance(result, Recognized)
    assert result.question == UNMARKED


@each("query", [UNMARKED, json.dumps({"query": UNMARKED}), json.dumps({"query": UNMARKED, "filter": {"k": "v"}})])
def test_a_part_that_was_also_the_query_of_a_retriever_is_the_question(query: str) -> None:
    """Among several parts that may be the question, it is the one that was searched for."""
    prompt = f"Today is Monday.\n\n{DOCUMENTS}\n\n{UNMARKED}\n\n{INSTRUCTION}"
    retriever = node("search", {"openinference.span.kind": "RETRIEVER", "input.value": query})
    model = node("chat", FORMS["OpenTelemetry"][1](call("", prompt, REPLY)))

    result = recognize(trace("shop", node("POST /ask", {}, retriever, model)))

    assert isinstance(result, Recognized)
    assert result.question == UNMARKED


@each(("more", "expected"), [("", ASKED), ("\n\nIs it urgent?", "no_question")])
def test_the_question_is_what_the_prompts_for_all_documents_ask(more: str, expected: str) -> None:
    """If they ask two things, either may be the question."""
    lines, replies = DOCUMENTS.splitlines(), ("It holds three litres.", "It is two euros.")
    texts = {f"retrieval.documents.{number}.document.content": line for number, line in enumerate(lines)}
    retriever = node("search", {"openinference.span.kind": "RETRIEVER", **texts})
    pairs = [*zip(lines, replies, strict=True), (f"{lines[0]}\n{' '.join(replies)}", REPLY)]
    asked = [call("", f"{text}\n\n{ASKED}\n\nI need it today.{more}", reply) for text, reply in pairs]
    models = [node("chat", FORMS["OpenTelemetry"][1](each)) for each in asked]

    result = recognize(trace("shop", node("POST /ask", {}, retriever, *models)))

    assert result is not None
    assert (result.question if isinstance(result, Recognized) else result.reason) == expected
