"""Parsing of questions in a judge's replies."""

# ruff: noqa: RUF001 - sentences of many languages

from __future__ import annotations

from tests.cases import each

from germane.scorers.prompting.question_parser import GeneratedQuestion, parse_questions

ONE = [GeneratedQuestion("Where is the pier?", noncommittal=False)]
BARE = [GeneratedQuestion("Where is the pier?")]

REPLIES = {
    "JSON as asked": ('{"question": "Where is the pier?", "noncommittal": false}', ONE),
    "in a code fence": ('```json\n{"question": "Where is the pier?", "noncommittal": false}\n```', ONE),
    "prose around it": ('Sure! {"question": "Where is the pier?", "noncommittal": false} Hope it helps {', ONE),
    "after thinking": ('<think>Is it {"question": "No?"}?</think>{"question": "Where is the pier?"}', BARE),
    "after thinking that nobody saw begin": (
        '"No?" {"question": "No?"}</think>{"question": "Where is the pier?"}',
        BARE,
    ),
    "after long thinking": (f"<think>{'hm ' * 20_000}</think>Where is the pier?", BARE),
    "thinking only": ('<think>Is it {"question": "No?"}', []),
    "votes as words": ('{"question": "Where is the pier?", "noncommittal": "no"}', ONE),
    "votes as numbers": ('{"question": "Where is the pier?", "noncommittal": 0}', ONE),
    "an invalid vote": ('{"question": "Where is the pier?", "noncommittal": [1]}', BARE),
    "cut off": ('{"question": "Where is the pier?", "noncommittal": fal', BARE),
    "not closed": ('{"question": "Where is the pier?", "noncommittal": false', ONE),
    "a bare line": ("Where is the pier?", BARE),
    "a line with a label": ('Question: "Where is the pier?"', BARE),
    "a numbered line": ("Here you are:\n1. Where is the pier?\nBye.", BARE),
    "a JSON string": ('["Where is the pier?"]', BARE),
    "white space": ("  \n Where   is\tthe pier? \n", BARE),
    "a list": (
        '{"questions": [{"question": "Where is the pier?", "noncommittal": false}, "Who knows?", 7, {"q": 1}]}',
        [*ONE, GeneratedQuestion("Who knows?")],
    ),
    "several lines": ("- Where is the pier?\n- Who knows?", [*BARE, GeneratedQuestion("Who knows?")]),
    "nothing": ("", []),
    "a refusal": ("I can't help with that.", [GeneratedQuestion("I can't help with that.")]),
    "another object": ('{"answer": "pier four"}', []),
    "an error with a question": ('{"question": "Where is the pier?", "error": "upstream timeout"}', []),
    "an empty error": ('{"question": "Where is the pier?", "error": null}', BARE),
    "deep nonsense": ("[" * 100_000, []),
    "a number": ("12", []),
    "a value inside another": ('[1, [2], {"question": "Where is the pier?"}]', BARE),
    "two values": ('{"note": [1]} {"question": "Where is the pier?"}', BARE),
    "a bad escape": ('{"question": "\\x", "noncommittal": ', []),
}


@each(("reply", "expected"), REPLIES.values())
def test_generated_questions_are_parsed_from_json_and_from_text(reply: str, expected: list[GeneratedQuestion]) -> None:
    """The parser tries valid JSON first, then damaged JSON, then lines that end with a question mark."""
    assert parse_questions(reply) == expected


@each(
    "text",
    [
        "Where is the pier?",
        "Where is the pier",
        "What's the capital of France",
        "In which year did the war end",
        "営業時間は何時ですか。",
        "你们几点开门？",
        "ร้านเปิดกี่โมง",
        "أين الرصيف؟",
        "Πού είναι η προβλήτα;",
        "¿Dónde está el muelle?",
        "Pier four?",
        '"Where is it?"',
    ],
)
def test_generated_questions_in_any_language_are_accepted(text: str) -> None:
    """Questions are recognized by their question mark or first word or, in some scripts, by question words."""
    assert GeneratedQuestion(text).is_usable


@each(
    "text",
    [
        "", " ", "?", "???", "12 + 4?", "Pier four.", "The ferry leaves at nine", "—?", "What", "Where is",
        "Could not write a question", "Can't be answered from this", "Is located behind the market.",
        "我无法生成问题。",
    ],
)  # fmt: skip
def test_texts_that_are_not_questions_are_rejected(text: str) -> None:
    """Examples are empty texts, punctuation, numbers, statements and excuses."""
    assert not GeneratedQuestion(text).is_usable
