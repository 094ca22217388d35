"""How near written questions are to the one asked: by their vectors, or by a judge's opinion."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from germane.scorers.base.json_reply import Unreadable, as_list, as_number
from germane.scorers.base.protocols import Vectors
from germane.scorers.base.text import cut
from germane.scorers.judge.embedding_batcher import Batcher
from germane.scorers.prompting.judge_session import Inquiry
from germane.scorers.prompting.template import fence_for, read_prompt

EMBEDDED_LIMIT = 8_000
"""Bytes of one text that go to the embedder."""
DEGREES = (1.0, 0.75, 0.5, 0.25, 0.0)
"""What a judge may say of two questions, from identical to different."""
PROMPT = read_prompt("similar_questions")
_SCHEMA = {
    "type": "object",
    "properties": {"similarities": {"type": "array", "items": {"type": "number", "enum": list(DEGREES)}}},
    "required": ["similarities"],
    "additionalProperties": False,
}


async def embedded(embedder: Batcher, question: str, texts: Sequence[str]) -> Vectors:
    """Return the vectors of the question and of the texts, in one request. That of the question is remembered.

    Raises:
        ScoringError: the embedder failed.
    """
    return await embedder.embed([cut(text, EMBEDDED_LIMIT) for text in (question, *texts)], keep=1)


async def judged(inquiry: Inquiry, question: str, written: Sequence[str]) -> list[float]:
    """Return what the judge says of each written question, one of :data:`DEGREES`: one request for all of them.

    Raises:
        ScoringError: the judge gave no reply, or none that can be read.
    """
    distinct = list(dict.fromkeys(written))
    numbered = "\n".join(f"{place}. {text}" for place, text in enumerate(distinct, 1))
    values = {"question": question, "written": numbered, "count": str(len(distinct))}

    def read(reply: Mapping[str, Any]) -> list[float]:
        return [_degree(value) for value in as_list(reply.get("similarities"), count=len(distinct))]

    degrees = await inquiry.ask_json(PROMPT, {**values, "fence": fence_for(*values.values())}, _SCHEMA, read)
    by_text = dict(zip(distinct, degrees, strict=True))
    return [by_text[text] for text in written]


def _degree(value: Any) -> float:
    number = as_number(value, 0, 1)
    if number not in DEGREES:
        raise Unreadable(f"{number!r} is none of {', '.join(f'{degree:g}' for degree in DEGREES)}")
    return number
