"""What the doctor finds, one thing at a time, and how each is mended."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final, Literal

import click

from germane.sanitize import harmless

MANY: Final = 10_000
"""Exchanges and scores that the doctor counts at most."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing looked at."""

    about: str
    status: Literal["ok", "note", "fault"]
    message: str
    fix: str | None = None
    coverage: Mapping[str, Any] | None = None
    """Of a route and scorer: seen, scored, skipped and failed by reason, pending."""

    def as_dict(self) -> dict[str, Any]:
        """Return it ready for JSON."""
        return {name: value for name, value in asdict(self).items() if name != "coverage" or value is not None}


FAULT_FOUND: Final = 4
"""Exit code."""
_SIGNS: Final = {"ok": "ok   ", "note": "note ", "fault": "FAULT"}


def show(findings: Sequence[Finding]) -> None:
    """Print a line for each, and how it is mended."""
    for finding in findings:
        click.echo(f"{_SIGNS[finding.status]}  {harmless(finding.about)}: {harmless(finding.message, 1000)}")
        if finding.fix:
            click.echo(f"       -> {harmless(finding.fix, 1000)}")


def code(findings: Sequence[Finding]) -> int:
    """Return 4 when there is a fault, else 0."""
    return FAULT_FOUND if any(finding.status == "fault" for finding in findings) else 0


_KEY = "set OPENAI_API_KEY to a valid key, judge to a model that it may use, OPENAI_BASE_URL to where both are known"
NO_JUDGE = "set OPENAI_API_KEY, or OPENAI_BASE_URL for a server of your own"
ADDRESS = "start the judge's server, or correct OPENAI_BASE_URL"
EMBEDDED = "mend that, or have a judge at a server: set judge to its name, and OPENAI_API_KEY or OPENAI_BASE_URL"
FIXES: Final[Mapping[str, str]] = {
    "judge_rejected": _KEY,
    "judge_unreachable": ADDRESS,
    "judge_timeout": "raise judge_timeout, or lower concurrency",
    "judge_rate_limited": "lower rate or concurrency, or ask for a higher limit",
    "embedder_error": "correct the setting embedder",
    "no_usable_question": "use a stronger judge",
    "unparsable": "use a stronger judge, or one that thinks less; or correct OPENAI_BASE_URL",
}
"""By the reason why scores fail or wait."""
