"""Results of an evaluation: problems, thresholds, reports and data frames."""

from __future__ import annotations

import json
import math
import re
import sys
from collections.abc import Callable
from html.parser import HTMLParser
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import germane
from germane import sanitize
from germane.errors import UsageError
from germane.evaluation import Evaluation, RowScores
from germane.exchange import Exchange
from germane.installation import install_command
from germane.score import Score
from germane.testing import FakeJudge

pytestmark = pytest.mark.usefixtures("bare")
Evaluated = Callable[..., germane.Evaluation]
HOSTILE = (
    "</td><script>alert(1)</script>|\n# x ![a](http://evil.test/?q=1) [b](javascript:c) <img src=x> `d` "
    "\x1b[2J\u202e www.e.f"
)
SUPER_BOWL = [
    {
        "user_input": "When was the first super bowl?",
        "response": "The first superbowl was held on Jan 15, 1967",
        "retrieved_contexts": [
            "The First AFL-NFL World Championship Game was an American football game played on January 15, 1967."
        ],
    },
    {
        "user_input": "Who won the most super bowls?",
        "response": "The most super bowls have been won by The New England Patriots",
        "retrieved_contexts": [
            "The New England Patriots have won the Super Bowl a record six times, surpassing the Pittsburgh Steelers."
        ],
    },
]


class Tenth:
    """Scorer that returns a tenth of the number in the answer."""

    name = "tenth"
    fingerprint = "tenth-1"
    requires = frozenset({"answer"})
    range = (0.0, 1.0)

    async def score(self, exchange: Exchange) -> Score | float:
        """Return the value."""
        return float(exchange.answer or 0) / 10


class ByFingerprint:
    """Scorer whose judge server changes its model halfway."""

    name = "changing"
    fingerprint = "configured"
    requires = frozenset({"answer"})
    range = (0.0, 1.0)

    async def score(self, exchange: Exchange) -> Score | float:
        """Return the number in the answer, with the fingerprint in the answer."""
        value, fingerprint = (exchange.answer or "").split()
        return Score(scorer=self.name, fingerprint=fingerprint, value=float(value))


def test_the_ragas_example_from_its_documentation_works() -> None:
    """The example is from the Ragas documentation."""
    with FakeJudge(questions=lambda answer: ["When was the first super bowl?"], first_token={"5": 1.0}) as judge:
        frame = germane.evaluate(SUPER_BOWL, ["answer_relevancy"], **judge.settings()).to_pandas()

    assert frame["question"].tolist() == [row["user_input"] for row in SUPER_BOWL]
    assert frame["contexts"].tolist() == [row["retrieved_contexts"] for row in SUPER_BOWL]
    assert frame["answer_relevancy"][0] == pytest.approx(1.0, abs=1e-9)
    assert frame["answer_relevancy"][1] < 0.9
    assert frame["answer_relevancy_label"][0] == "relevant"
    assert list(frame.columns[:4]) == ["id", "question", "answer", "contexts"]


def test_a_data_frame_gets_score_columns() -> None:
    """The result is the same data frame with additional columns."""
    with FakeJudge() as judge:
        frame = germane.evaluate(pd.DataFrame(SUPER_BOWL), "question_answer_similarity", **judge.settings()).to_pandas()

    assert frame["question_answer_similarity"].between(0, 1).all()


def test_missing_scores_in_a_data_frame_are_nan_and_have_a_reason(evaluated: Evaluated) -> None:
    """The column has the same mean as the summary."""
    evaluation = evaluated(["0.25", "none", "0.75", None])
    frame = evaluation.to_pandas()

    assert frame["numeric"].dtype == np.float64
    assert frame["numeric"].isna().tolist() == [False, True, False, True]
    assert frame["numeric"].mean() == pytest.approx(0.5, abs=1e-9)
    assert frame["numeric_reason"].dropna().tolist() == ["unparsable", "missing_input"]


def test_a_data_frame_keeps_its_other_columns(numeric: Any) -> None:
    """A scorer's column replaces a data set column with the same name."""
    rows = [{"question": "How?", "answer": "0.5", "label": 1, "numeric": 0.1}]

    frame = germane.evaluate(rows, [numeric]).to_pandas()

    assert (frame["label"][0], frame["numeric"][0]) == (1, 0.5)


@pytest.mark.parametrize("answers", [[], ["none"]])
def test_a_data_frame_without_scores_keeps_the_input_columns(evaluated: Evaluated, answers: list[object]) -> None:
    """This covers a data set without rows, and one whose rows all failed."""
    frame = evaluated(answers).to_pandas()

    assert len(frame) == len(answers)
    assert {"question", "answer"} <= set(frame.columns)


def test_the_error_for_a_data_frame_without_pandas_names_the_extra(
    evaluated: Evaluated, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The error contains the command that installs the extra."""
    evaluation = evaluated(["0.5"])
    monkeypatch.setitem(sys.modules, "pandas", None)

    with pytest.raises(UsageError, match=re.escape(install_command("pandas"))):
        evaluation.to_pandas()


def test_problems_list_low_scores_before_failures(evaluated: Evaluated) -> None:
    """The lowest score comes first. Skipped scores and scores at the threshold are not problems."""
    problems = evaluated(["0.4", "x", "0.6", "0.1", None, "y"]).problems()

    assert [problem.lowest for problem in problems] == [0.1, 0.4, None, None]
    assert [problem.row.location for problem in problems] == ["row 3", "row 0", "row 1", "row 5"]


def test_the_score_threshold_of_problems_is_configurable(evaluated: Evaluated) -> None:
    """All scores below the threshold are problems."""
    evaluation = evaluated(["0.4", "0.6", "0.9"])

    assert [problem.lowest for problem in evaluation.problems(0.7)] == [0.4, 0.6]
    with pytest.raises(UsageError, match="threshold must be a finite number, not nan"):
        evaluation.problems(math.nan)


def test_problems_are_grouped_by_answer(numeric: Any) -> None:
    """An answer has one entry with all of its problems, however often it occurs."""
    rows = [{"question": "How?", "answer": answer} for answer in ("0.4", "0.9", "0.4", "0.2")]

    first, second, third = germane.evaluate(rows, [numeric, Tenth()]).problems()

    assert [row.location for row in first.rows] == ["row 3"]
    assert {score.scorer: score.value for score in first.issues} == {"numeric": 0.2, "tenth": pytest.approx(0.02)}
    assert [row.location for row in second.rows] == ["row 0", "row 2"]
    assert {score.scorer for score in second.issues} == {"numeric", "tenth"}
    assert {score.scorer for score in third.issues} == {"tenth"}


def test_the_threshold_of_problems_applies_to_calibrated_values() -> None:
    """Problems agree with labels: a cosine of 0.5 can be good with one embedder and bad with another."""
    details = {"good": {"calibrated": 0.8}, "bad": {"calibrated": 0.55}, "unknown": {}}
    labels = {"good": "mostly_relevant", "bad": "partly_relevant", "unknown": "uncalibrated"}
    scores = {
        name: Score(scorer="similarity", fingerprint="f", value=0.5, label=labels[name], details=details[name])
        for name in details
    }
    rows = [RowScores(Exchange.from_texts("How?", name), {"similarity": score}) for name, score in scores.items()]

    assert [problem.row.exchange.answer for problem in Evaluation(tuple(rows)).problems()] == ["bad"]


def test_a_summary_contains_the_minimum_the_maximum_and_the_sum(evaluated: Evaluated) -> None:
    """These are the lowest score, the highest score, and the sum of all scores."""
    (summary,) = evaluated(["0.25", "0.75", "x", "0.5"]).summary()
    (empty,) = evaluated(["x"]).summary()

    assert (summary.minimum, summary.maximum, summary.total) == (0.25, 0.75, 1.5)
    assert (empty.minimum, empty.maximum, empty.total) == (None, None, 0.0)


def test_reports_list_identical_answers_on_one_line(numeric: Any) -> None:
    """The line states how many more rows have the same answer."""
    rows = [{"question": "How?", "answer": "0.1"}] * 3 + [{"question": "Why?", "answer": "0.1"}]

    report = germane.evaluate(rows, [numeric]).report()

    assert report.count("| 0.10 |") == 2
    assert "row 0; 2 more rows with the same answer" in report
    assert "Worst 4 of 4 low or failed scores" in report


def test_scores_with_different_fingerprints_are_never_averaged() -> None:
    """Each fingerprint has its own mean; coverage is measured per scorer."""
    answers = ["0.2 old"] * 2 + ["0.8 new"] * 3 + [""]
    evaluation = germane.evaluate([{"question": "How?", "answer": answer} for answer in answers], [ByFingerprint()])

    summaries = {summary.fingerprint: summary for summary in evaluation.summary()}

    assert {name: summary.estimate and summary.estimate.mean for name, summary in summaries.items()} == {
        "new": pytest.approx(0.8, abs=1e-9),
        "old": pytest.approx(0.2, abs=1e-9),
    }
    assert {(summary.rows, summary.scored) for summary in summaries.values()} == {(6, 5)}
    assert "changing (fingerprint new): " in str(evaluation.check())


@pytest.mark.parametrize(
    ("answers", "least", "passed", "broken", "expected"),
    [
        (["0.8"] * 20, 0.75, True, False, "mean 0.800 (n=20, 95% interval 0.667 to 0.832) is at least 0.75, which"),
        (["0.7"] * 20, 0.7, True, False, "is at least 0.7"),  # although rounding makes the mean slightly lower
        (["0.7"] * 20, 0.75, False, True, "mean 0.700 (n=20, 95% interval 0.577 to 0.748) is below 0.75;"),
        (["0.5", "0.9"] * 10, 0.71, False, True, "is below 0.71, which is inside the interval"),
        (["0.1"] * 19, 0.75, False, False, "not enough data to check it (need 20)"),
        (["0.1"], 0.75, False, False, "mean 0.100 (n=1, 95% interval -1.000 to 1.000), not enough data"),
        (["x"] * 30, 0.75, False, False, "not enough data (n=0, need 20)"),
    ],
)
def test_a_mean_is_checked_only_with_at_least_20_scores(
    evaluated: Evaluated, answers: list[object], least: float, passed: bool, broken: bool, expected: str
) -> None:
    """A mean below the threshold fails, regardless of its interval."""
    check = evaluated(answers).check(min_mean=least)

    assert (check.passed, check.failed) == (passed, broken)
    assert expected in str(check)


def test_coverage_is_checked_independently_of_the_mean(evaluated: Evaluated) -> None:
    """Failed and skipped rows both lack a score."""
    evaluation = evaluated(["0.8"] * 27 + ["x", "y", None])

    assert evaluation.check(min_coverage=0.9).passed
    check = evaluation.check(min_coverage=0.95)
    assert (check.passed, check.has_min_samples, check.failed) == (False, True, True)
    assert "27 of 30 rows scored, below 95.0% (2 unparsable, 1 missing_input)" in str(check)


def test_a_check_without_rows_does_not_pass(evaluated: Evaluated) -> None:
    """No data is not success."""
    check = evaluated([]).check(min_mean=0.5)

    assert (check.passed, check.has_min_samples, str(check)) == (False, False, "There are no rows.")


@pytest.mark.parametrize("share", [1.01, 90, -0.1, float("nan")])
def test_coverage_threshold_must_be_between_0_and_1(evaluated: Evaluated, share: float) -> None:
    """A threshold of 90 is an error, because 0.9 was meant."""
    with pytest.raises(UsageError, match="a share of the rows, from 0 to 1"):
        evaluated([]).check(min_coverage=share)


@pytest.mark.parametrize("mean", [float("nan"), float("inf")])
def test_mean_threshold_must_be_finite(evaluated: Evaluated, mean: float) -> None:
    """A check against NaN would never fail."""
    with pytest.raises(UsageError, match=r"min_mean must be a finite number, not"):
        evaluated([]).check(min_mean=mean)


def test_a_markdown_report_escapes_texts(numeric: Any) -> None:
    """Table rows have equal numbers of cells, and contain no links, images or tags."""
    report = germane.evaluate([{"question": HOSTILE, "answer": HOSTILE}], [numeric]).report("markdown")

    shown = [line for line in report.splitlines() if "alert" in line]
    assert [len(re.findall(r"(?<!\\)\|", line)) for line in shown] == [5, 7]  # tables of reasons and of rows
    assert not re.search(r"<|(?<!\\)[\[\]`*]|[\x00-\x1f\x7f\u202e]|http:|www\.", "".join(shown))


def test_a_report_gives_the_reasons_for_missing_scores(evaluated: Evaluated) -> None:
    """Each reason is listed with its most frequent explanation."""
    report = evaluated(["0.5", "one", "two", "two", None]).report("markdown")

    assert "| numeric | 3 | unparsable | no number in two |" in report
    assert "| numeric | 1 | missing\\_input | there is no answer |" in report


def test_notebooks_show_the_report_of_an_evaluation(evaluated: Evaluated) -> None:
    """The report is shown as Markdown, and the repr is a single line."""
    evaluation = evaluated(["0.5"] * 30)

    assert repr(evaluation) == "Evaluation(30 rows, scored by numeric)"
    assert repr(evaluated([])) == "Evaluation(0 rows, scored by nothing)"
    assert evaluation._repr_markdown_() == evaluation.report("markdown")


class Tags(HTMLParser):
    """Tags and texts of an HTML page."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: set[str] = set()
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Record a tag."""
        self.tags.add(tag)
        self.attributes |= {name for name, _ in attrs}

    def handle_data(self, data: str) -> None:
        """Record a text."""
        self.text += data


def test_an_html_report_escapes_texts(numeric: Any) -> None:
    """For any answer, the page is self-contained and has no script."""
    page = Tags()
    page.feed(germane.evaluate([{"question": HOSTILE, "answer": HOSTILE}], [numeric]).report("html"))

    assert {"html", "head", "body", "style", "h1", "table"} <= page.tags
    assert page.tags & {"script", "img", "a", "link", "iframe", "form"} == set()
    assert page.attributes & {"src", "href", "onerror", "onclick"} == set()
    assert sanitize.line(HOSTILE) in page.text
    assert "default-src 'none'" in germane.evaluate([], [numeric]).report("html")


def test_a_json_report_is_a_single_object(numeric: Any) -> None:
    """The object contains every row with all fields of its scores. NaN becomes null."""

    class Odd(type(numeric)):  # type: ignore[misc]  # the fixture's class
        async def score(self, exchange: Exchange) -> Score | float:
            return Score(scorer="numeric", fingerprint="f", value=0.5, details={"nan": float("nan")})

    rows = [{"id": "a", "question": HOSTILE, "answer": "x", "contexts": ["one"], "label": 1}]
    report = json.loads(germane.evaluate(rows, [Odd()]).report("json"))

    (row,) = report["rows"]
    assert report["schema_version"] == 1
    assert (row["id"], row["question"], row["contexts"], row["attributes"]) == ("a", HOSTILE, ["one"], {"label": 1})
    assert (row["scores"]["numeric"]["value"], row["scores"]["numeric"]["details"]) == (0.5, {"nan": None})
    assert report["summary"][0]["n"] == 1


def test_a_report_shows_the_means_of_small_data_sets_with_a_note(evaluated: Evaluated) -> None:
    """The interval is also shown, with a note that it is wide."""
    enough, few = (evaluated(["0.25", "0.75"] * half).report() for half in (10, 9))

    assert "| numeric | 20 | 0.500 |" in enough
    assert "| numeric | 18 | 0.500 | 0." in few
    assert "fewer than 20 scores has a wide interval" in few
    assert "fewer than 20 scores has a wide interval" not in enough


def test_an_unknown_report_format_is_an_error(evaluated: Evaluated) -> None:
    """The error lists the known formats."""
    with pytest.raises(UsageError, match="unknown report format 'pdf'; known formats: markdown, json, html"):
        evaluated([]).report("pdf")


@given(st.text())
def test_markdown_in_any_text_is_escaped(text: str) -> None:
    """The text is one line without control characters or active Markdown."""
    shown = sanitize.markdown(text)

    assert shown.isprintable() or "\u200b" in shown or "\u200d" in shown
    assert not re.search(r"(?<!\\)(\\\\)*[`*_\[\]|#:]|<", shown.replace("&lt;", "").replace("&amp;", ""))
