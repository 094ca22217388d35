"""What comes out: the scores of a data set."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from typing import TYPE_CHECKING, Any, Literal

from germane.errors import UsageError
from germane.evaluation.files import PANDAS
from germane.evaluation.progress import Spending
from germane.evaluation.summary import Check, ScorerSummary, check, summaries_of
from germane.exchange import Exchange
from germane.score import LOW, Score

if TYPE_CHECKING:
    from collections.abc import Iterator


Kind = Literal["markdown", "json", "html"]


@dataclass(frozen=True, slots=True)
class RowScores:
    """One row of a data set and its scores, by scorer."""

    exchange: Exchange
    scores: Mapping[str, Score]
    place: str = ""
    """Where the row stands, such as ``row 0`` or ``answers.csv, line 2``."""


@dataclass(frozen=True, slots=True)
class Problem:
    """A row that scored low, or could not be scored."""

    row: RowScores
    score: Score


@dataclass(frozen=True, slots=True, repr=False)
class Evaluation:
    """The scores of a data set, in the order of its rows."""

    rows: tuple[RowScores, ...]
    spending: Spending = field(default_factory=Spending)
    """What this run took."""

    def __repr__(self) -> str:
        scorers = dict.fromkeys(name for row in self.rows for name in row.scores)
        return f"Evaluation({len(self.rows)} rows, scored by {', '.join(scorers) or 'nothing'})"

    def _repr_markdown_(self) -> str:
        """Return what a notebook shows of it."""
        return self.report("markdown")

    @property
    def scores(self) -> list[Score]:
        """All scores, row by row; those without a value carry the reason."""
        return [score for row in self.rows for score in row.scores.values()]

    @property
    def cost(self) -> float | None:
        """US dollars that this run took; None where no price is known. What the cache held costs nothing."""
        return self.spending.cost

    @property
    def tokens(self) -> int | None:
        """Tokens that this run's judge read and wrote; None where no server told."""
        told = (self.spending.input_tokens, self.spending.output_tokens)
        return None if told == (None, None) else sum(count or 0 for count in told)

    @property
    def seconds(self) -> float:
        """Seconds that this run took."""
        return self.spending.seconds

    def summary(self) -> list[ScorerSummary]:
        """Return mean, interval and absences per scorer; one for each fingerprint where a scorer's differ."""
        names = dict.fromkeys(name for row in self.rows for name in row.scores)
        return [found for name in names for found in summaries_of([row.scores[name] for row in self.rows])]

    def problems(self, threshold: float = LOW) -> list[Problem]:
        """Return scores under the threshold, lowest first, then failures in the order of the rows."""
        found = list(self._problems(threshold))
        return sorted(found, key=lambda problem: (problem.score.value is None, problem.score.value or 0.0))

    def check(self, min_mean: float | None = None, min_coverage: float | None = None) -> Check:
        """Compare each scorer with the least mean and the least share of scored rows that are asked of it.

        Raises:
            UsageError: ``min_mean`` is not finite, or ``min_coverage`` is not from 0 to 1.
        """
        return check(self.summary(), min_mean, min_coverage)

    def report(self, kind: Kind = "markdown") -> str:
        """Return a report as Markdown, as one JSON object, or as a page of HTML that needs nothing else.

        Raises:
            UsageError: there is no such kind.
        """
        from germane.evaluation.report import report

        return report(self, kind)

    def to_pandas(self) -> Any:
        """Return a pandas frame: a row for each row, and columns for each scorer.

        They are ``id``, ``question``, ``answer``, ``contexts``, your other columns, and for each scorer its value
        (NaN without one) under its name, with ``_label``, ``_reason`` and ``_explanation`` behind it.

        Raises:
            UsageError: pandas is not installed.
        """

        return frame(self.rows)

    def _problems(self, threshold: float) -> Iterator[Problem]:
        for row in self.rows:
            for score in row.scores.values():
                if score.state == "failed" or (score.value is not None and score.value < threshold):
                    yield Problem(row, score)


COLUMNS = ("id", "question", "answer", "contexts")


def frame(rows: Sequence[RowScores]) -> Any:
    """Return one row for each row.

    Raises:
        UsageError: pandas is not installed.
    """
    try:
        pandas = import_module("pandas")
    except ImportError:
        raise UsageError(f"to_pandas() needs pandas; {PANDAS}") from None
    found = pandas.DataFrame([_record(row) for row in rows], columns=None if rows else list(COLUMNS))
    scorers = dict.fromkeys(name for row in rows for name in row.scores)
    return found.astype(dict.fromkeys(scorers, float))


def _record(row: RowScores) -> dict[str, Any]:
    exchange = row.exchange
    record: dict[str, Any] = {
        "id": exchange.id,
        "question": exchange.question,
        "answer": exchange.answer,
        "contexts": [context.text for context in exchange.contexts],
    }
    record |= {name: value for name, value in exchange.attributes.items() if name not in record}
    for name, score in row.scores.items():
        reason = None if score.reason is None else str(score.reason)
        record |= {name: score.value, f"{name}_label": score.label, f"{name}_reason": reason}
        record[f"{name}_explanation"] = score.explanation
    return record
