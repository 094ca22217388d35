"""Reads rows and writes scores, for scripts that run in another library's environment."""

from __future__ import annotations

import asyncio
import json
import math
import sys
import time
from collections.abc import Awaitable, Callable
from typing import Any

Row = dict[str, Any]


async def score_all(score: Callable[[Row], Awaitable[float | None]], *, at_once: int = 2) -> None:
    """Read rows as JSONL from stdin, and write the id, score, seconds and error of each row as soon as it is scored."""
    places = asyncio.Semaphore(at_once)

    async def one(row: Row) -> None:
        async with places:
            print(json.dumps({"id": row["id"], **await _tried(score, row)}), flush=True)

    await asyncio.gather(*(one(json.loads(line)) for line in sys.stdin if line.strip()))


async def _tried(score: Callable[[Row], Awaitable[float | None]], row: Row) -> Row:
    started = time.perf_counter()
    value, failed = None, None
    try:
        value = await score(row)
    except Exception as error:  # noqa: BLE001 - an error in one row must not stop the others
        failed = f"{type(error).__name__}: {error}"[:200]
    value = None if value is None or not math.isfinite(value) else float(value)
    return {"score": value, "seconds": time.perf_counter() - started, "error": failed}
