"""The same scorers over a data set."""

from __future__ import annotations

import asyncio
import json
import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from numbers import Real
from typing import TYPE_CHECKING, Any

from germane.errors import SettingsError, UsageError
from germane.exchange import Context, Exchange, new_exchange_id
from germane.score import LOW, Score

if TYPE_CHECKING:
    from germane.scorers import Scorer, Workbench
    from germane.settings import Settings
    from germane.storage import Estimate

COLUMNS = {
    "question": ("question", "user_input"),
    "answer": ("answer", "response"),
    "contexts": ("contexts", "retrieved_contexts"),
}
"""What the columns of a row may be called: ours, then those of Ragas."""


@dataclass(frozen=True, slots=True)
class RowScores:
    """One row of a data set and its scores, by scorer."""

    exchange: Exchange
    scores: Mapping[str, Score]


@dataclass(frozen=True, slots=True)
class ScorerSummary:
    """What one scorer says of a data set."""

    scorer: str
    asked: int
    """Rows."""
    estimate: Estimate | None
    """Mean with n and interval; None when no row has a score."""
    reasons: Mapping[str, int] = field(default_factory=dict)
    """Rows without a score, by reason."""


@dataclass(frozen=True, slots=True)
class Evaluation:
    """The scores of a data set, in the order of its rows."""

    rows: tuple[RowScores, ...]

    @property
    def scores(self) -> list[Score]:
        """All scores, row by row; those without a value carry the reason."""
        return [score for row in self.rows for score in row.scores.values()]

    def summary(self) -> list[ScorerSummary]:
        """Return mean, interval and absences per scorer."""
        names = dict.fromkeys(score.scorer for score in self.scores)
        return [_summary(name, [row.scores[name] for row in self.rows]) for name in names]


def evaluate(rows: Any, scorers: str | Sequence[str | Scorer] | None = None, **options: Any) -> Evaluation:
    """Score a data set; see :func:`aevaluate`.

    Raises:
        UsageError: an event loop runs here already, in a notebook for one.
    """
    if _in_event_loop():
        raise UsageError("an event loop runs here: use 'await germane.aevaluate(...)'")
    return asyncio.run(aevaluate(rows, scorers, **options))


async def aevaluate(
    rows: Any,
    scorers: str | Sequence[str | Scorer] | None = None,
    *,
    columns: Mapping[str, str] | None = None,
    **settings: Any,
) -> Evaluation:
    """Score a data set.

    Args:
        rows: Mappings, or a pandas frame, with ``question``, ``answer`` and ``contexts``; Ragas' names are taken too.
            Contexts are a list, or a JSON list in a string.
        scorers: Names, or scorers of your own; by default those of the settings.
        columns: Your names for ``question``, ``answer`` and ``contexts``.
        **settings: Any of :class:`germane.settings.Settings`, such as ``judge``, ``embedder`` and ``concurrency``.

    Raises:
        UsageError: a row has no column for question or answer, or two scorers have one name.
        SettingsError: a setting is wrong or unknown, or nothing can be scored with these.
    """
    from germane.hush import hushed
    from germane.settings import load
    from germane.tracer import suppressed

    loaded = load(**settings)
    unknown = set(columns or ()) - set(COLUMNS)
    if unknown:
        raise UsageError(f"columns maps {', '.join(COLUMNS)} to names of yours, and knows no {', '.join(unknown)}")
    scorers = [scorers] if isinstance(scorers, str) else scorers
    exchanges = [_exchange(row, number, columns or {}) for number, row in enumerate(_records(rows))]
    with suppressed(), hushed():
        workbench = _workbench(scorers, loaded)
        try:
            return Evaluation(tuple(await _score_all(exchanges, _chosen(scorers, workbench), loaded.concurrency)))
        finally:
            await workbench.aclose()


def _in_event_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


def _workbench(scorers: Sequence[str | Scorer] | None, settings: Settings) -> Workbench:
    """Return those of our own scorers that are asked for."""
    from germane.scorers import Workbench, build

    if scorers is None:
        return build(settings)
    names = tuple(scorer for scorer in scorers if isinstance(scorer, str))
    return build(settings.model_copy(update={"scorers": names})) if names else Workbench()


def _chosen(scorers: Sequence[str | Scorer] | None, workbench: Workbench) -> list[Scorer]:
    chosen = [*workbench.scorers, *(scorer for scorer in scorers or () if not isinstance(scorer, str))]
    names = [scorer.name for scorer in chosen]
    if not names:
        raise SettingsError(workbench.problem or "name at least one scorer")
    if len(set(names)) < len(names):
        raise UsageError(f"each scorer needs a name of its own: {', '.join(names)}")
    return chosen


async def _score_all(exchanges: Sequence[Exchange], scorers: Sequence[Scorer], concurrency: int) -> list[RowScores]:
    places = asyncio.Semaphore(concurrency)

    async def score(exchange: Exchange) -> RowScores:
        async with places:
            scores = await asyncio.gather(*(_score(scorer, exchange) for scorer in scorers))
        return RowScores(exchange, {score.scorer: score for score in scores})

    return list(await asyncio.gather(*map(score, exchanges)))


async def _score(scorer: Scorer, exchange: Exchange) -> Score:
    from germane.scorers import run

    # Under the scorer's own name, whatever it writes into its scores.
    return replace(await run(scorer, exchange), scorer=scorer.name)


def _summary(name: str, scores: Sequence[Score]) -> ScorerSummary:
    found = [score for score in scores if score.value is not None]
    reasons = Counter(str(score.reason) for score in scores if score.reason is not None)
    return ScorerSummary(name, len(scores), _estimate(found) if found else None, reasons)


def _estimate(scores: Sequence[Score]) -> Estimate:
    from germane.storage.estimate import Sums, estimate

    values = [score.value or 0.0 for score in scores]
    n, zeros = len(values), values.count(0.0)
    total, squares = sum(values), sum(value * value for value in values)
    return estimate(
        Sums(
            n=n,
            n_zero=zeros,
            w=n,
            w_zero=zeros,
            ww=n,
            ww_zero=zeros,
            wy=total,
            wyy=squares,
            wwy=total,
            wwyy=squares,
            w_low=sum(value < LOW for value in values),
            w_noncommittal=sum(score.label == "noncommittal" for score in scores),
        )
    )


def _records(rows: Any) -> Iterator[Mapping[str, Any]]:
    """Return the rows of a pandas frame, or of anything that gives mappings."""
    found: Iterable[Any] = rows.to_dict("records") if hasattr(rows, "columns") and hasattr(rows, "to_dict") else rows
    yield from found


def _exchange(row: Any, number: int, columns: Mapping[str, str]) -> Exchange:
    if not isinstance(row, Mapping):
        raise UsageError(f"row {number} is a {type(row).__name__}, not a mapping of columns to values")
    return Exchange(
        id=new_exchange_id(),
        trace_id="0" * 32,
        span_id="0" * 16,
        service="evaluate",
        route="evaluate",
        question=_text(_cell(row, number, "question", columns)),
        answer=_text(_cell(row, number, "answer", columns)),
        contexts=_contexts(_cell(row, number, "contexts", columns)),
        started_at=datetime.now(UTC),
    )


def _cell(row: Mapping[str, Any], number: int, name: str, columns: Mapping[str, str]) -> Any:
    known = (columns[name],) if name in columns else COLUMNS[name]
    for column in known:
        if column in row:
            return row[column]
    if name == "contexts" and name not in columns:
        return None
    raise UsageError(f"row {number} has no column {' or '.join(known)}; its columns are {', '.join(map(str, row))}")


def _text(cell: Any) -> str | None:
    """Return text, or a number as text; pandas has NaN where nothing stands."""
    if isinstance(cell, str):
        return cell
    is_number = isinstance(cell, Real) and not isinstance(cell, bool)
    return str(cell) if is_number and math.isfinite(cell) else None


def _contexts(cell: Any) -> tuple[Context, ...]:
    if isinstance(cell, str):
        cell = _from_json(cell)
    return tuple(Context(text) for text in cell if isinstance(text, str)) if isinstance(cell, Iterable) else ()


def _from_json(cell: str) -> list[Any]:
    """Read a JSON list out of a cell; any other text is one context."""
    try:
        found = json.loads(cell)
    except ValueError:
        found = None
    return found if isinstance(found, list) else [cell] if cell.strip() else []
