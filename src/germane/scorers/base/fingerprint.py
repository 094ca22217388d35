"""Fingerprints of scorers."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping

from germane.scorers.base.protocols import Scorer


def fingerprint(
    *,
    scorer: str,
    version: str,
    parameters: Mapping[str, object],
    prompt: str = "",
    judge: str | None = None,
    embedder: str | None = None,
) -> str:
    """Return a hash, as 12 hexadecimal digits, of all inputs that determine a scorer's values.

    Equal arguments produce equal fingerprints in every process and release. ``parameters`` must be JSON-serializable.
    ``prompt`` is the template, before any placeholder is filled in.
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


def fingerprint_name(scorer: Scorer) -> str:
    """Return the scorer's name for its fingerprint. For a user's subclass of a built-in scorer, the class is included.

    A subclass may compute different values under the name that it inherits.
    """
    kind = type(scorer)
    is_builtin = kind.__module__.startswith("germane.scorers.")
    return scorer.name if is_builtin else f"{scorer.name} {kind.__module__}.{kind.__qualname__}"
