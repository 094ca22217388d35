"""Scorers for tests that run in other processes, which import this module by its name."""

from __future__ import annotations

import asyncio
import os

import germane

DELAY = float(os.environ.get("HISTORY_SCORER_DELAY", "0"))
"""Seconds per exchange."""


@germane.scorer(requires={"answer"})
async def answer_number(exchange: germane.Exchange) -> float:
    """Return the number in the answer."""
    if DELAY:
        await asyncio.sleep(DELAY)
    return float(exchange.answer or "")


@germane.scorer(requires={"answer"})
async def extra_column(exchange: germane.Exchange) -> float:
    """Return a hundredth of the column ``extra``."""
    return float(exchange.attributes["extra"]) / 100
