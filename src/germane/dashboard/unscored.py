"""Why answers came and none was scored, and what to do about it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from germane.dashboard.phrases import Moments, Piece, link, strong
from germane.dashboard.situation import Situation
from germane.storage import Coverage

_ADVICE: Final[Mapping[str, str]] = {
    "not_drawn": "none was drawn. Raise the setting rate, or set a budget.",
    "filtered": "filters leave all of them out. Look at the setting filters.",
    "budget": "the budget is spent. There is room again when the next hour or day begins.",
    "missing_input": "what the scorer needs was not captured. Run germane doctor.",
    "queue_full": "the queue was full, and they were dropped. Raise the setting queue, or look at the database.",
    "capture_limit": "more came than are kept. Raise the setting capture_limit.",
    "expired": "they waited until no process had their scorer any more. Run germane worker.",
    "judge_unreachable": "the judge cannot be reached{since}. Look at its address, and whether it runs.",
    "judge_rejected": "the judge's server rejects key, quota or model{since}. Run germane doctor.",
    "judge_timeout": "the judge takes too long{since}. Raise the setting judge_timeout, or take a faster one.",
    "judge_rate_limited": "the judge limits requests{since}. Set requests_per_minute to what it allows.",
    "judge_refused": "the judge refuses to judge them{since}. Take another model.",
    "no_usable_question": "the judge writes no question that can be used{since}. Take another one.",
    "embedder_error": "the embedder fails{since}. Look at its address and model: germane doctor says more.",
    "out_of_range": "the scorer gives values outside its range{since}. Correct the scorer.",
    "scorer_error": "the scorer raises an error{since}. The worker page has its text.",
    "unparsable": "nobody can read what the judge replies{since}. Take another one: germane calibrate says which.",
}
_NO_JUDGE: Final = "no judge is configured. Set OPENAI_API_KEY or OPENAI_BASE_URL, or name scorers that need none."


@dataclass(slots=True)
class _Sum:
    """What became of the answers, by one scorer."""

    seen: int = 0
    pending: int = 0
    missing: Counter[str] = field(default_factory=Counter)

    def add(self, one: Coverage) -> None:
        self.seen += one.seen
        self.pending += one.pending
        self.missing.update(one.failed)
        self.missing.update(one.skipped)


def unscored(given: Situation) -> tuple[Piece, ...]:
    """Return the sentence: how many came, why none was scored, and the next step."""
    sums: dict[str, _Sum] = {}
    for one in given.coverage:
        if given.scorer is None or one.scorer in {given.scorer, ""}:
            sums.setdefault(one.scorer, _Sum()).add(one)
    most = max(sums.values(), key=lambda one: one.seen, default=_Sum())
    many = f"{most.seen:,} answers" if most.seen else "Answers"  # those that nobody has counted yet
    came = "One answer" if most.seen == 1 else many
    scored = "was not scored" if most.seen == 1 else "none was scored"
    return (strong(f"{came} came in the last 24 h, and {scored}:"), Piece(" "), *_why(given, most))


def _why(given: Situation, found: _Sum) -> Iterator[Piece]:
    reason = given.trouble or _reason(found)
    if reason is not None:
        since = "" if given.scored_at is None else f" since {Moments(given.now, given.zone).clock(given.scored_at)}"
        yield Piece(_ADVICE.get(reason, f"{reason.replace('_', ' ')}{{since}}.").format(since=since) + " ")
    elif not given.has_judge:
        yield Piece(f"{_NO_JUDGE} ")
    elif not given.has_worker:
        yield Piece("they wait, and nothing scores. Run germane worker. ")
    else:
        yield Piece(f"{found.pending:,} wait to be scored. " if found.pending else "they wait to be looked at. ")
    yield link("See what the worker does", "/worker")


def _reason(found: _Sum) -> str | None:
    """Return why most of them have no score; None where most still wait."""
    if not found.missing or found.pending > found.missing.total():
        return None
    return min(found.missing, key=lambda reason: (-found.missing[reason], reason))
