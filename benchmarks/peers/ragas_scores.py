"""Scores labeled rows with Ragas 0.4.3, in a separate environment.

Install: pip install ragas==0.4.3 'langchain-community<0.4'

Run: python ragas_scores.py answer_relevancy JUDGE_URL MODEL [EMBEDDINGS_URL] < rows.jsonl > scores.jsonl
"""

from __future__ import annotations

import asyncio
import os
import sys
from typing import Any

from rows import Row, score_all

os.environ.setdefault("RAGAS_DO_NOT_TRACK", "true")


def metric(name: str, judge: str, model: str, embeddings: str | None) -> Any:
    """Return the metric with default parameters, as in its documentation."""
    import openai
    from ragas.embeddings.openai_provider import OpenAIEmbeddings
    from ragas.llms import llm_factory
    from ragas.metrics.collections import AnswerRelevancy, Faithfulness

    llm = llm_factory(model, client=openai.AsyncOpenAI(base_url=judge, api_key="none", timeout=900, max_retries=1))
    if name == "faithfulness":
        return Faithfulness(llm=llm)
    client = openai.AsyncOpenAI(base_url=embeddings, api_key="none")
    return AnswerRelevancy(llm=llm, embeddings=OpenAIEmbeddings(client=client, model="minilm"))


async def main() -> None:
    """Score the rows from stdin."""
    name, *where = sys.argv[1:]
    chosen = metric(name, *where[:2], where[2] if len(where) > 2 else None)

    async def score(row: Row) -> float | None:
        contexts = {"retrieved_contexts": row["contexts"]} if name == "faithfulness" else {}
        result = await chosen.ascore(user_input=row["question"], response=row["answer"], **contexts)
        return None if result.value is None else float(result.value)

    await score_all(score)


if __name__ == "__main__":
    asyncio.run(main())
