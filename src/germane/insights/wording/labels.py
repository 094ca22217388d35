"""Sentences about what people say of the answers of a window."""

from __future__ import annotations

from typing import Final

from germane import sanitize
from germane.insights.context import ViewParams
from germane.insights.formatting import DateFormatter, format_interval, format_number
from germane.insights.labeled_window import LabeledWindow
from germane.score import MIN_SAMPLES

OUTDATED: Final = {
    "drop": "An alert about worse answers has fired since the last label.",
    "judge_changed": "The judge has changed since the last label.",
    "judge_drift": "The judge has drifted since the last label.",
}
"""What makes an estimate outdated."""


def people_basis(window: LabeledWindow, view: ViewParams) -> str:
    """Return the basis of the number, such as "63 labels, 2 Oct to 30 Oct; 4,210 judge scores", or what it lacks."""
    dates = DateFormatter(view.until, view.zone).date_range(window.since, window.until)
    counts, estimate = window.counts, window.estimate
    if window.service is None:
        names = window.services
        dates = f"{sanitize.line(names[0], 60) if len(names) == 1 else f'{len(names)} services'}, {dates}"
    if estimate is not None:
        return f"{sanitize.count_noun(estimate.n, 'label')}, {dates}; {window.n_scores:,} judge scores"
    if not window.is_finished:
        return (
            f"{counts.settled} of {counts.size} drawn answers reviewed, {dates}; the number appears after the last one"
        )
    usable = sanitize.count_noun(counts.labeled - window.left_out - window.replaced, "label")
    return f"not enough data ({usable}, need {MIN_SAMPLES}; {dates})"


def people_sentence(window: LabeledWindow, view: ViewParams) -> str:
    """Return the interval of the mean label with its basis and its notes."""
    basis = people_basis(window, view)
    stated = f" {format_interval(window.estimate.interval)} ({basis})." if window.estimate else f": {basis}."
    return " ".join([f"According to people{stated}", *people_notes(window)])


def people_notes(window: LabeledWindow) -> list[str]:
    """Return sentences on labels that do not count, on how sure the estimate is, and on whether it still holds."""
    estimate, counts = window.estimate, window.counts
    omitted = {"from before a drift of the judge": window.left_out, "whose scores were replaced": window.replaced}
    notes = [
        f"{sanitize.count_noun(count, 'label')} {reason} {'does' if count == 1 else 'do'} not count."
        for reason, count in omitted.items()
        if count
    ]
    if estimate is None:
        return notes
    notes += [] if window.outdated is None else [OUTDATED[window.outdated]]
    if estimate.is_widened:
        rare = "bad" if estimate.few_low else "good"
        notes.append(f"Few {rare} answers labeled, so the interval is wider.")
    more = window.labels_to_halve
    notes.append(
        "More labels alone cannot halve the interval; more scores can."
        if more is None
        else f"{more:,} more labels would halve the interval."
    )
    if window.kappa is not None:
        notes.append(f"Two people agree on {window.kappa[1]} answers with a kappa of {format_number(window.kappa[0])}.")
    missing = {"could not be judged": counts.cannot_tell, "skipped": counts.skipped, "erased": counts.erased}
    if any(missing.values()):
        listed = ", ".join(f"{count} {words}" for words, count in missing.items() if count)
        notes.append(f"Drawn without a label: {listed}.")
    return notes
