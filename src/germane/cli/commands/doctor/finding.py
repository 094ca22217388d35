"""Findings reported by ``germane doctor`` and ``germane db check``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final, Literal

import click

from germane import sanitize
from germane.cli.core.output import EXIT_CHECK_FAILED

_LABELS: Final = {"ok": "ok     ", "warning": "warning", "error": "ERROR  "}


@dataclass(frozen=True, slots=True)
class Finding:
    """The result of one check."""

    subject: str
    level: Literal["ok", "warning", "error"]
    message: str
    fix: str | None = None
    coverage: Mapping[str, Any] | None = None
    """Coverage of a route and scorer, for JSON output."""

    def as_dict(self) -> dict[str, Any]:
        """Return the finding as a dict for JSON output."""
        return {name: value for name, value in asdict(self).items() if name != "coverage" or value is not None}


def print_findings(findings: Sequence[Finding]) -> None:
    """Print one line per finding, followed by its fix, if any."""
    for finding in findings:
        subject, message = sanitize.line(finding.subject), sanitize.line(finding.message, 1000)
        click.echo(f"{_LABELS[finding.level]}  {subject}: {message}")
        if finding.fix:
            click.echo(f"         -> {sanitize.line(finding.fix, 1000)}")


def exit_code(findings: Sequence[Finding]) -> int:
    """Return 4 if there is an error, otherwise 0."""
    return EXIT_CHECK_FAILED if any(finding.level == "error" for finding in findings) else 0
