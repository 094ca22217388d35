"""Score the rows of a CSV file. Run: python examples/evaluate_csv.py [FILE]

The file has the columns question and answer (Ragas' user_input and response are taken too).
"""

from __future__ import annotations

import csv
import sys
from pathlib import Path

import germane


def main(path: Path) -> None:
    """Score the file and print the mean with its interval, and the rows from the lowest score up."""
    with path.open(newline="", encoding="utf-8") as file:
        evaluation = germane.evaluate(csv.DictReader(file))
    for summary in evaluation.summary():
        if summary.estimate is not None:
            low, high = summary.estimate.interval or (float("nan"), float("nan"))
            print(
                f"{summary.scorer}: mean {summary.estimate.mean:.2f}, 95 % interval {low:.2f} to {high:.2f}, ", end=""
            )
        print(f"{summary.estimate.n if summary.estimate else 0} of {summary.asked} rows scored")
        for reason, count in summary.reasons.items():
            print(f"  {count} without a score: {reason}")
    scored = [(score.value, row) for row in evaluation.rows for score in row.scores.values() if score.value is not None]
    for value, row in sorted(scored, key=lambda pair: pair[0]):
        print(f"  {value:.2f}  {row.exchange.question}  ->  {row.exchange.answer}")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).with_name("answers.csv"))
