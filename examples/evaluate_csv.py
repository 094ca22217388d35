"""Score the rows of a CSV file. Run: python examples/evaluate_csv.py [FILE]

The file needs the columns `question` and `answer`; Ragas' `user_input` and `response` also work. Scores are cached in
evaluate_csv.db, so the next run scores only new rows.
"""

from __future__ import annotations

import sys
from pathlib import Path

import germane


def main(path: Path) -> None:
    """Score the file, and print the mean with its interval, all rows (lowest score first), and a threshold check."""
    evaluation = germane.evaluate(path, cache="evaluate_csv.db")
    for summary in evaluation.summary():
        if summary.estimate is not None:
            low, high = summary.estimate.interval or (float("nan"), float("nan"))
            print(f"{summary.scorer}: mean {summary.estimate.mean:.2f}, 95% interval {low:.2f} to {high:.2f}, ", end="")
        print(f"{summary.scored} of {summary.rows} rows scored")
        for reason, count in summary.reasons.items():
            print(f"  {count} without a score: {reason}")
    for problem in evaluation.problems(threshold=2):  # no score is above 1, so this returns every answer
        exchange, score = problem.row.exchange, problem.issues[0]
        shown = score.reason if score.value is None else f"{score.value:.2f}"
        print(f"  {shown}  {exchange.question}  ->  {exchange.answer}")
    print(evaluation.check(min_mean=0.75))


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).with_name("answers.csv"))
