"""The rules but ``drop``: a module for each, a pure function over numbers that the store read."""

from __future__ import annotations

import logging
from collections.abc import Collection, Sequence

from germane.settings import AnyRule

logger = logging.getLogger("germane.monitor")


def tell_unfed(rules: Sequence[AnyRule], scorers: Collection[str]) -> None:
    """Say in the log which rules watch a scorer that is not among those of this process."""
    for rule in rules:
        if scorers and rule.scorer is not None and rule.scorer not in scorers:
            logger.warning(
                "rule %r watches %s, which does not score here (%s does): it sees only what other processes score",
                rule.name, rule.scorer, ", ".join(sorted(scorers)),
            )  # fmt: skip
