"""Templates of the sentences on pages and in reports, and the functions that fill them in with facts."""

from __future__ import annotations

from germane.insights import formatting
from germane.insights.wording.comparison import comparison_sentence, context_sentence
from germane.insights.wording.labels import people_basis, people_notes, people_sentence
from germane.insights.wording.phrases import describe_period, not_enough_data
from germane.insights.wording.rules import finding_sentence
from germane.insights.wording.verdict import report_sentence, verdict_sentence

__all__ = [
    "FILTERS", "comparison_sentence", "context_sentence", "describe_period", "finding_sentence", "not_enough_data",
    "people_sentence", "report_sentence", "verdict_sentence",
]  # fmt: skip
_SENTENCES = (
    describe_period, verdict_sentence, comparison_sentence, context_sentence, finding_sentence, people_basis,
    people_notes,
)  # fmt: skip
FILTERS = {**formatting.FILTERS, **{function.__name__: function for function in _SENTENCES}}
"""Filters for page and report templates, by name."""
