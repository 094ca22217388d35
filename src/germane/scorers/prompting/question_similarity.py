"""The similarity between generated questions and the original question, from embeddings or from a judge."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from germane.scorers.base.protocols import Vectors
from germane.scorers.base.reply_parser import UnreadableReply, parse_list, parse_number
from germane.scorers.base.text import MAX_EMBEDDED_BYTES, truncate_utf8
from germane.scorers.judge.embedders import EmbeddingBatcher
from germane.scorers.prompting.context_blocks import numbered_list
from germane.scorers.prompting.judge_scorer import JudgeSession
from germane.scorers.prompting.prompt import delimiter_for, load_prompt

SIMILARITY_DEGREES = (1.0, 0.75, 0.5, 0.25, 0.0)
"""The ratings that a judge can give to a pair of questions, from identical to different."""
PROMPT = load_prompt("similar_questions")
_SCHEMA = {
    "type": "object",
    "properties": {"similarities": {"type": "array", "items": {"type": "number", "enum": list(SIMILARITY_DEGREES)}}},
    "required": ["similarities"],
    "additionalProperties": False,
}


async def embed_with_question(embedder: EmbeddingBatcher, question: str, texts: Sequence[str]) -> Vectors:
    """Embed the texts and the question, whose vector is cached. Return one row per text, the question's first."""
    return await embedder.embed([truncate_utf8(text, MAX_EMBEDDED_BYTES) for text in (question, *texts)], keep=1)


async def judge_similarities(session: JudgeSession, question: str, generated: Sequence[str]) -> list[float]:
    """Request the judge's ratings of all generated questions at once. Ratings are in :data:`SIMILARITY_DEGREES`."""
    distinct = list(dict.fromkeys(generated))
    values = {"question": question, "written": numbered_list(distinct), "count": str(len(distinct))}

    def parse(reply: Mapping[str, Any]) -> list[float]:
        ratings = [parse_number(item, 0, 1) for item in parse_list(reply.get("similarities"), count=len(distinct))]
        for rating in ratings:
            if rating not in SIMILARITY_DEGREES:
                degrees = ", ".join(f"{degree:g}" for degree in SIMILARITY_DEGREES)
                raise UnreadableReply(f"{rating!r} is not one of {degrees}")
        return ratings

    ratings = await session.ask_json(PROMPT, {**values, "fence": delimiter_for(*values.values())}, _SCHEMA, parse)
    by_text = dict(zip(distinct, ratings, strict=True))
    return [by_text[text] for text in generated]
