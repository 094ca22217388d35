"""Numbers in messages: scores, shares, and levels with their sample size and confidence."""

from __future__ import annotations

from typing import Final

from germane import sanitize
from germane.alert import Alert, Interval, ScoreLevel
from germane.settings import SHARE_RULES

MAX_DIGITS: Final = 4
"""Maximum number of decimal places of a score."""


def format_score(value: float, other: float | None = None) -> str:
    """Format a score with two decimal places, or with more if needed to distinguish it from another score."""
    for digits in range(2, MAX_DIGITS):
        text = f"{value:z.{digits}f}"
        if other is None or value == other or text != f"{other:z.{digits}f}":
            return text
    return f"{value:z.{MAX_DIGITS}f}"


def format_percent(share: float) -> str:
    """Format a share as a percentage, such as ``12.5%``."""
    return f"{100 * share:.3g}%"


def format_refusals(rates: tuple[float, float]) -> str:
    """Describe a change in the noncommittal rate, such as ``2% to 15%``."""
    return f"{format_percent(rates[0])} to {format_percent(rates[1])}"


def format_level(alert: Alert, level: ScoreLevel, other: float | None = None) -> str:
    """Format a level of the value that an alert is about, with its sample size and confidence.

    Args:
        alert: The alert.
        level: The level.
        other: Another value in the same sentence.
    """
    is_share = alert.type in SHARE_RULES
    value = format_percent(level.mean) if is_share else format_score(level.mean, other)
    size = f"{'' if is_share else 'mean '}of {sanitize.count_noun(level.n, 'answer')}"
    if level.interval is None:
        return f"{value} ({size})"
    low, high = (format_percent(end) if is_share else f"{end:z.2f}" for end in level.interval)
    return f"{value} ({size}, 95% confidence {low} to {high})"


def format_current(alert: Alert) -> str | None:
    """Format the current level, with enough digits to distinguish it from the threshold or else the baseline."""
    reference = alert.threshold
    if reference is None and alert.baseline is not None:
        reference = alert.baseline.mean
    return None if alert.current is None else format_level(alert, alert.current, reference)


def format_shift(size: float) -> str:
    """Describe by how much a judge's scores have changed, such as ``0.08 lower``."""
    return f"{format_score(abs(size))} {'lower' if size < 0 else 'higher'}"


def format_shift_interval(size: float, interval: Interval) -> str:
    """Format the interval of a change as amounts in its direction, such as ``0.06 to 0.10``."""
    low, high = sorted(end if size > 0 else -end for end in interval)
    return f"{low:z.2f} to {high:z.2f}"


def format_change(alert: Alert) -> str | None:
    """Describe the change from the baseline mean to the current mean, such as ``0.74 to 0.48``.

    Return None if there is no current mean.
    """
    if alert.current is None:
        return None
    if alert.baseline is None:
        return format_score(alert.current.mean)
    before, now = alert.baseline.mean, alert.current.mean
    return f"{format_score(before, now)} to {format_score(now, before)}"
