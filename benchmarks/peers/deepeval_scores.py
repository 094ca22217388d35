"""Scores labeled rows with DeepEval 4.3.1, in a separate environment (pip install deepeval==4.3.1).

Run: python deepeval_scores.py answer_relevancy JUDGE_URL MODEL < rows.jsonl > scores.jsonl
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys

from rows import Row, score_all

os.environ |= {"DEEPEVAL_TELEMETRY_OPT_OUT": "1", "DEEPEVAL_DISABLE_TIMEOUTS": "1", "DEEPEVAL_RETRY_MAX_ATTEMPTS": "2"}


async def main() -> None:
    """Score the rows from stdin, without reasons, which would be generated after the score."""
    with contextlib.redirect_stdout(sys.stderr):
        from deepeval.metrics import AnswerRelevancyMetric, FaithfulnessMetric
        from deepeval.models import LocalModel
        from deepeval.test_case import LLMTestCase
    name, judge, model = sys.argv[1:4]
    kind = FaithfulnessMetric if name == "faithfulness" else AnswerRelevancyMetric

    async def score(row: Row) -> float | None:
        llm = LocalModel(model=model, base_url=judge, api_key="none", temperature=0.0)
        metric = kind(model=llm, include_reason=False)
        case = LLMTestCase(
            input=row["question"], actual_output=row["answer"], retrieval_context=list(row["contexts"]) or None
        )
        value = await metric.a_measure(case, _show_indicator=False)
        return None if value is None else float(value)

    await score_all(score)


if __name__ == "__main__":
    asyncio.run(main())
