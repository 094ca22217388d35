"""Phrases about means and periods, which several sentences share."""

from __future__ import annotations

from germane.alert import ScoreLevel
from germane.insights.context import ViewParams
from germane.insights.formatting import DateFormatter, format_interval, format_number
from germane.insights.situation import ComparisonPeriod
from germane.score import MIN_SAMPLES
from germane.statistics import Estimate


def describe_mean(estimate: Estimate | ScoreLevel) -> str:
    """Describe a mean, such as "0.48 (95% interval 0.42-0.54, n=57)", or state that there is not enough data."""
    if estimate.n < MIN_SAMPLES:
        return not_enough_data(estimate)
    interval = "" if estimate.interval is None else f"95% interval {format_interval(estimate.interval)}, "
    return f"{format_number(estimate.mean)} ({interval}n={estimate.n:,})"


def not_enough_data(estimate: Estimate | ScoreLevel) -> str:
    """State that there are too few scores, such as "not enough data (n=7, need 20)"."""
    return f"not enough data ({describe_counts(estimate)})"


def describe_counts(estimate: Estimate | ScoreLevel) -> str:
    """Compare the number of scores with the required number, such as "n=7, need 20"."""
    return f"n={estimate.n}, need {MIN_SAMPLES}"


def describe_reference(estimate: Estimate | ScoreLevel, period: ComparisonPeriod | None, dates: DateFormatter) -> str:
    """Describe a reference mean, such as "0.78 in baseline 2 (15 Nov to 18 Nov, n=803)"."""
    mean = format_number(estimate.mean)
    if period is None:
        return f"{mean} before (n={estimate.n:,})"
    name = "before" if period.baseline is None else f"in baseline {period.baseline}"
    return f"{mean} {name} ({dates.date_range(period.since, period.until)}, n={estimate.n:,})"


def describe_period(period: ComparisonPeriod, view: ViewParams) -> str:
    """Describe a period in the visitor's time zone, such as "baseline 2, 13 Nov to 18 Nov"."""
    dates = DateFormatter(view.until, view.zone).date_range(period.since, period.until)
    return f"before, {dates}" if period.baseline is None else f"baseline {period.baseline}, {dates}"
