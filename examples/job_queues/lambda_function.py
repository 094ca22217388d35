"""An AWS Lambda function. The environment is frozen as soon as the handler has returned."""

from __future__ import annotations

import germane

germane.start(role="capture")


@germane.observe
def answer(question: str) -> str:
    return f"Thirty days, as for {question!r}."


def handler(event: dict[str, str], _context: object) -> dict[str, str]:
    try:
        return {"answer": answer(event["question"])}
    finally:
        germane.flush(timeout=2)
