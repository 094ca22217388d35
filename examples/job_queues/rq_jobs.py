"""The jobs of the worker."""

from __future__ import annotations

import germane


@germane.observe
def answer(question: str) -> str:
    return f"Thirty days, as for {question!r}."
