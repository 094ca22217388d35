"""Findings reported by ``germane doctor`` and ``germane db check``."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal

import click

from germane import records, sanitize
from germane.cli.core.output import EXIT_CHECK_FAILED

if TYPE_CHECKING:
    from germane.storage import Coverage

MAX_NAMES_SHOWN: Final = 5
"""Maximum number of names in a line that summarizes several findings."""
_LABELS: Final = {"ok": "ok     ", "warning": "warning", "error": "ERROR  "}


@dataclass(frozen=True, slots=True)
class Finding:
    """The result of one check."""

    subject: str
    level: Literal["ok", "warning", "error"]
    message: str
    fix: str | None = None
    coverage: Coverage | None = None
    """Coverage of a route and scorer, for JSON output."""
    group: str | None = None
    """Subject of the group, such as ``handler``, for findings that may occur once per route and scorer."""
    fault: str | None = None
    """What is wrong, without the numbers of this finding, so that findings can be grouped. Defaults to the message."""

    def as_dict(self) -> dict[str, Any]:
        """Return the finding as a dict for JSON output."""
        return {
            name: value
            for name, value in records.encode(self).items()
            if name not in {"group", "fault"} and (name != "coverage" or value is not None)
        }


def print_findings(findings: Sequence[Finding]) -> None:
    """Print one line per finding, followed by its fix, if any.

    Findings of one group with the same level, fault and fix share a line. --json lists all of them.
    """
    for finding in _summarize(findings):
        subject, message = sanitize.line(finding.subject), sanitize.line(finding.message, 1000)
        click.echo(f"{_LABELS[finding.level]}  {subject}: {message}")
        if finding.fix:
            click.echo(f"         -> {sanitize.line(finding.fix, 1000)}")


def _summarize(findings: Sequence[Finding]) -> Iterator[Finding]:
    groups: dict[object, list[Finding]] = {}
    for number, finding in enumerate(findings):
        fault = None if finding.level == "ok" else finding.fault or finding.message
        key: object = number if finding.group is None else (finding.group, finding.level, finding.fix, fault)
        groups.setdefault(key, []).append(finding)
    for first, *others in groups.values():
        if not others:
            yield first
            continue
        listed = (first, *others) if first.level == "ok" else others
        more = f"; and {len(listed) - MAX_NAMES_SHOWN} more" if len(listed) > MAX_NAMES_SHOWN else ""
        names = "; ".join(
            sanitize.line(finding.subject, 80).removeprefix(f"{first.group} ").removeprefix("of ")
            for finding in listed[:MAX_NAMES_SHOWN]
        )
        if first.level == "ok":
            yield Finding(str(first.group), "ok", f"{len(listed)} ({names}{more})")
        else:
            yield Finding(first.subject, first.level, f"{first.message}; the same applies to {names}{more}", first.fix)


def exit_code(findings: Sequence[Finding]) -> int:
    """Return 4 if there is an error, otherwise 0."""
    return EXIT_CHECK_FAILED if any(finding.level == "error" for finding in findings) else 0
