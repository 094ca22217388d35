"""The sentences of the comparison page: its verdict, and the circumstances that explain it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from germane import sanitize
from germane.insights.comparison_context import VersionContext
from germane.insights.comparison_verdict import COMPARED_BY, ComparisonVerdict
from germane.insights.context import ViewParams
from germane.insights.formatting import (
    DateFormatter,
    format_interval,
    format_number,
    format_signed,
    scorer_title,
    shorten,
)
from germane.insights.wording.phrases import describe_mean
from germane.insights.wording.pieces import Sentence, fill_sentence, route_or_service
from germane.score import MIN_SAMPLES

_MEANS: Final = " {new} than {old} on {place}: {after}, compared with {before}; {difference}[; also on {more}]"
COMPARISONS: Final[Mapping[str, str]] = {
    "worse": "**{title} is worse**" + _MEANS + "[; better on {opposite}].",
    "better": "**{title} is better**" + _MEANS + "[; worse on {opposite}].",
    "unclear": (
        "**No difference [of {min_drop} or more ]shown** between {old_name} and {new_name}"
        "[: {whole_before} and {whole_after}; {whole_difference}]"
        "[; {small} of {routes} routes have too few scores to compare]."
    ),
    "judge_changed": (
        "**The judge changed, so the two sides cannot be compared.** No fingerprint has enough scores on both sides."
    ),
    "few": (
        "**Not enough data** to compare: n={old_n} {old} and n={new_n} {new}, need {needed} on each side"
        "[ of a {route}]."
    ),
    "one_version": "**Not enough data** to compare: this window has scores of only one {by}.",
    "no_version": "**Not enough data** to compare: no {by} has scores in this window.",
    "no_scores": "**No scores** {phrases}.",
    "empty": "**No scores** in this window.",
}
"""Sentences by :data:`ComparisonState`."""
SHARED_START: Final = (
    "{model} and prompt version {prompt_version} began together on {date}, so this comparison cannot distinguish them. "
)
LATER_DROP: Final = (
    "The drop[ on {route}] began later, on {onset}. [{deploy}. ][{path:Compare the time before and after it}]"
)


def comparison_sentence(verdict: ComparisonVerdict) -> Sentence:
    """Return the verdict on two sides in one sentence."""
    moved, others = (verdict.worse, verdict.better) if verdict.worse else (verdict.better, ())
    more, opposite = (sum(line.route is not None for line in lines) for lines in (moved, others))
    old_n, new_n = verdict.counts
    values: dict[str, object] = {
        "title": scorer_title(verdict.scorer),
        "more": sanitize.count_noun(more - 1, "more route") if more > 1 else None,
        "opposite": sanitize.count_noun(opposite, "route") if opposite else None,
        "min_drop": format_number(verdict.min_drop) if verdict.has_small_difference else None,
        "small": verdict.small_routes or None,
        "routes": len(verdict.routes),
        "route": "route" if len(verdict.routes) > 1 else None,
        "old_n": f"{old_n:,}",
        "new_n": f"{new_n:,}",
        "needed": MIN_SAMPLES,
        "by": COMPARED_BY[verdict.by],
        "phrases": " or ".join(side.phrase for side in verdict.sides),
    }
    for age, side in zip(("old", "new"), verdict.sides, strict=False):
        values |= {age: side.phrase, f"{age}_name": side.name}
    for prefix, line in (("", verdict.first), ("whole_", verdict.whole)):
        if line is not None and line.is_comparable and line.before is not None and line.after is not None:
            difference = f"difference {format_signed(line.difference)}, 95% interval {format_interval(line.interval)}"
            means = {"before": describe_mean(line.before), "after": describe_mean(line.after), "difference": difference}
            values |= {prefix + name: text for name, text in means.items()}
            values[f"{prefix}place"] = route_or_service(line.route)
    return fill_sentence(COMPARISONS[verdict.state], **values)


def context_sentence(context: VersionContext, view: ViewParams) -> Sentence:
    """Return the circumstances that explain a comparison of versions in up to two sentences."""
    dates = DateFormatter(view.until, view.zone)
    pieces: Sentence = ()
    if context.began_together is not None:
        names = {name: shorten(label, 60) for name, label in context.began_together.items()}
        pieces += fill_sentence(SHARED_START, **names, date=dates.date(context.began))
    drop = context.later_drop
    if drop is not None:
        pieces += fill_sentence(
            LATER_DROP,
            route=drop.route and shorten(drop.route, 60),
            onset=dates.date_time(drop.onset),
            deploy=drop.deploy and f"{drop.deploy[:1].upper()}{drop.deploy[1:]}",
            path=drop.path,
        )
    return pieces
