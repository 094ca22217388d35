"""Short hash of all that decides a scorer's values."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping


def fingerprint(
    *,
    scorer: str,
    version: str,
    parameters: Mapping[str, object],
    prompt: str = "",
    judge: str | None = None,
    embedder: str | None = None,
) -> str:
    """Return 12 hexadecimal digits: equal for equal arguments, in every process and release.

    ``parameters`` may hold what JSON can; ``prompt`` is the text before anything is filled in.
    """
    parts = {
        "scorer": scorer,
        "version": version,
        "parameters": dict(parameters),
        "prompt": prompt,
        "judge": judge,
        "embedder": embedder,
    }
    canonical = json.dumps(parts, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    return hashlib.sha256(canonical.encode()).hexdigest()[:12]
