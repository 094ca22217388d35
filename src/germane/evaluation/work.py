"""What makes two pieces of work one: equal work is done once, in a run and in all runs that share a cache."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from germane.errors import UsageError
from germane.exchange import Exchange
from germane.registry import BUILT_IN

if TYPE_CHECKING:
    from germane.scorers import Scorer


@dataclass(frozen=True, slots=True)
class Work:
    """A scorer as configured, and all that it may look at."""

    scorer: str
    fingerprint: str
    content: str
    """Hash of what the scorer sees."""


def work_of(scorer: Scorer, exchange: Exchange) -> Work:
    """Return what is to be done.

    Our scorers see question, answer, contexts and history. Yours may look at anything, a reference in a column of its
    own for one: all but the row's id counts.

    Raises:
        UsageError: the scorer has no name or no fingerprint.
    """
    try:
        name, fingerprint = scorer.name, scorer.fingerprint
    except AttributeError as error:
        raise UsageError(f"a scorer needs name, fingerprint, requires, range and score(exchange): {error}") from None
    seen = _content(exchange) if is_ours(scorer) else {**_content(exchange), **_rest(exchange)}
    canonical = json.dumps(seen, sort_keys=True, separators=(",", ":"))
    return Work(name, str(fingerprint), hashlib.sha256(canonical.encode()).hexdigest()[:32])


def is_ours(scorer: Scorer) -> bool:
    """Return whether a scorer is one of germane's own."""
    return scorer.name in BUILT_IN and type(scorer).__module__.startswith("germane.scorers.")


def _content(exchange: Exchange) -> dict[str, Any]:
    return {
        "question": exchange.question,
        "answer": exchange.answer,
        "contexts": [context.text for context in exchange.contexts],
        "history": [[turn.role, turn.text] for turn in exchange.history],
    }


def _rest(exchange: Exchange) -> dict[str, Any]:
    return {
        "route": exchange.route,
        "model": exchange.model,
        "attributes": dict(exchange.attributes),
        "chunks": [[context.id, context.score] for context in exchange.contexts],
    }
