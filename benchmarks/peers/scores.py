"""Scores labeled rows with another library, in a separate environment.

Install: pip install deepeval==4.3.1, or pip install ragas==0.4.3 'langchain-community<0.4'

Run: python scores.py deepeval|ragas answer_relevancy|faithfulness JUDGE_URL MODEL [EMBEDDINGS_URL] < rows.jsonl
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import math
import os
import sys
import time
from collections.abc import Awaitable, Callable
from typing import Any

os.environ |= {"DEEPEVAL_TELEMETRY_OPT_OUT": "1", "DEEPEVAL_DISABLE_TIMEOUTS": "1", "DEEPEVAL_RETRY_MAX_ATTEMPTS": "2"}
os.environ |= {"RAGAS_DO_NOT_TRACK": "true"}
AT_ONCE = 2
Row = dict[str, Any]
Score = Callable[[Row], Awaitable[float | None]]


def deepeval(name: str, judge: str, model: str) -> Score:
    """Return DeepEval's metric without reasons, which would be generated after the score."""
    with contextlib.redirect_stdout(sys.stderr):
        from deepeval.metrics import AnswerRelevancyMetric, FaithfulnessMetric
        from deepeval.models import LocalModel
        from deepeval.test_case import LLMTestCase
    kind = FaithfulnessMetric if name == "faithfulness" else AnswerRelevancyMetric

    async def score(row: Row) -> float | None:
        llm = LocalModel(model=model, base_url=judge, api_key="none", temperature=0.0)
        metric = kind(model=llm, include_reason=False)
        contexts = list(row["contexts"]) or None
        case = LLMTestCase(input=row["question"], actual_output=row["answer"], retrieval_context=contexts)
        value: float | None = await metric.a_measure(case, _show_indicator=False)
        return value

    return score


def ragas(name: str, judge: str, model: str, embeddings: str | None = None) -> Score:
    """Return Ragas' metric with default parameters, as in its documentation."""
    import openai
    from ragas.embeddings.openai_provider import OpenAIEmbeddings
    from ragas.llms import llm_factory
    from ragas.metrics.collections import AnswerRelevancy, Faithfulness

    llm = llm_factory(model, client=openai.AsyncOpenAI(base_url=judge, api_key="none", timeout=900, max_retries=1))
    if name == "faithfulness":
        metric: Any = Faithfulness(llm=llm)
    else:
        client = openai.AsyncOpenAI(base_url=embeddings, api_key="none")
        metric = AnswerRelevancy(llm=llm, embeddings=OpenAIEmbeddings(client=client, model="minilm"))

    async def score(row: Row) -> float | None:
        contexts = {"retrieved_contexts": row["contexts"]} if name == "faithfulness" else {}
        value: float | None = (
            await metric.ascore(user_input=row["question"], response=row["answer"], **contexts)
        ).value
        return value

    return score


async def score_all(score: Score) -> None:
    """Read rows as JSONL from stdin, and write the id, score, seconds and error of each row as soon as it is scored."""
    places = asyncio.Semaphore(AT_ONCE)

    async def one(row: Row) -> None:
        async with places:
            print(json.dumps({"id": row["id"], **await _tried(score, row)}), flush=True)

    await asyncio.gather(*(one(json.loads(line)) for line in sys.stdin if line.strip()))


async def _tried(score: Score, row: Row) -> Row:
    started = time.perf_counter()
    value, failed = None, None
    try:
        value = await score(row)
    except Exception as error:  # noqa: BLE001 - an error in one row must not stop the others
        failed = f"{type(error).__name__}: {error}"[:200]
    value = None if value is None or not math.isfinite(value) else float(value)
    return {"score": value, "seconds": time.perf_counter() - started, "error": failed}


if __name__ == "__main__":
    library, *arguments = sys.argv[1:]
    asyncio.run(score_all({"deepeval": deepeval, "ragas": ragas}[library](*arguments)))
