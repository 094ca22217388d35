"""A scorer that takes a few microseconds, for processes that import it by its name."""

from __future__ import annotations

from zlib import crc32

import germane


@germane.scorer(requires={"answer"})
async def answer_hash(exchange: germane.Exchange) -> float:
    """Return a number that depends on the answer."""
    return crc32((exchange.answer or "").encode()) / 2**32


@germane.scorer(requires={"answer"})
async def answer_length(exchange: germane.Exchange) -> float:
    """Return the length of the answer, in units of 10,000 characters, but at most 1."""
    return min(1.0, len(exchange.answer or "") / 10_000)
