"""Scoring data sets with `evaluate`."""

from __future__ import annotations

import asyncio
import csv
import io
import logging
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import germane
from germane.errors import ScoringError, SettingsError, UsageError
from germane.exchange import Exchange
from germane.score import Score, UnscoredReason
from germane.scorers import AnswerRelevancy, Faithfulness, Noncommittal
from germane.statistics.estimate import WeightedSums, estimate_mean
from germane.testing import FakeJudge, Fault

pytestmark = pytest.mark.usefixtures("bare")
ROW = {"question": "How do I pay?", "answer": "You pay by card."}


class Length:
    """Custom scorer: the length of the answer, scaled to 0 to 1."""

    name = "length"
    fingerprint = "length-1"
    requires = frozenset({"answer"})
    range = (0.0, 1.0)

    def __init__(self) -> None:
        self.seen: list[Exchange] = []
        self.at_work = 0
        self.most_at_work = 0

    async def score(self, exchange: Exchange) -> Score | float:
        """Return the number of characters divided by 100."""
        self.seen.append(exchange)
        self.at_work += 1
        self.most_at_work = max(self.at_work, self.most_at_work)
        await asyncio.sleep(0.002 if len(self.seen) % 2 else 0)
        self.at_work -= 1
        if exchange.answer == "fail":
            raise ScoringError(UnscoredReason.UNPARSABLE, "as asked")
        if exchange.answer == "raise":
            raise ZeroDivisionError
        return len(exchange.answer or "") / 100


@pytest.fixture
def judge() -> Iterator[FakeJudge]:
    """Return a judge that runs in this process."""
    with FakeJudge() as running:
        yield running


def read(row: Mapping[str, Any], **options: Any) -> Exchange:
    """Return the exchange converted from a row."""
    scorer = Length()
    germane.evaluate([row], [scorer], **options)
    return scorer.seen[0]


def test_rows_are_scored_by_the_judge(judge: FakeJudge) -> None:
    """One call scores all rows, with the same settings as `germane.start`."""
    evaluation = germane.evaluate([ROW, ROW | {"answer": "By card."}], **judge.settings())

    (summary,) = evaluation.summary()
    assert [score.state for score in evaluation.scores] == ["scored", "scored"]
    assert (summary.scorer, summary.rows, summary.reasons) == ("answer_relevancy", 2, {})
    assert summary.estimate is not None
    assert summary.estimate.n == 2
    assert len(judge.chat_requests) == 2 * 2  # one for the questions, one for the rating that determines the label


def test_a_mapping_of_columns_is_accepted() -> None:
    """Data frames and Ragas use this format; ``query`` is accepted as the question."""
    columns = {"query": ["How?", "Why?"], "answer": ["So.", "Because."]}

    evaluation = germane.evaluate(columns, metrics=["noncommittal"])

    assert [row.exchange.question for row in evaluation.rows] == ["How?", "Why?"]
    assert [row.exchange.answer for row in evaluation.rows] == ["So.", "Because."]
    assert {score.scorer for score in evaluation.scores} == {"noncommittal"}


def test_scorer_classes_are_accepted_as_scorers(judge: FakeJudge) -> None:
    """Built-in classes are instantiated from the settings, other classes without arguments."""
    evaluation = germane.evaluate([ROW], metrics=[Faithfulness, Length], **judge.settings())

    assert {score.scorer: score.judge for score in evaluation.scores} == {"faithfulness": None, "length": None}
    assert evaluation.rows[0].scores["faithfulness"].reason == "missing_input"


CELLS = ["0.5", "So.", "By card."]
CONTAINERS: list[Callable[[list[Any]], Any]] = [
    list,
    tuple,
    deque,
    np.array,
    lambda cells: np.array(cells, dtype=object),
    lambda cells: pd.Series(cells, index=[7, 8, 9]),
    lambda cells: pd.Series(cells, dtype="category"),
    iter,
]


@pytest.mark.parametrize("questions", CONTAINERS)
@pytest.mark.parametrize("answers", CONTAINERS)
def test_columns_can_be_in_any_ordered_container(
    questions: Callable[[list[Any]], Any], answers: Callable[[list[Any]], Any]
) -> None:
    """Lists, tuples, arrays, series and other ordered iterables can be mixed; cells become Python values."""
    contexts = [["a", "b"], [], ["c"]]
    columns = {"query": questions(CELLS), "answer": answers(CELLS), "contexts": contexts, "n": np.arange(3)}

    exchanges = [row.exchange for row in germane.evaluate(columns, [Length()]).rows]

    assert [(each.question, each.answer) for each in exchanges] == [(cell, cell) for cell in CELLS]
    assert [[context.text for context in each.contexts] for each in exchanges] == contexts
    assert [each.attributes for each in exchanges] == [{"n": 0}, {"n": 1}, {"n": 2}]
    assert {type(value) for each in exchanges for value in (each.question, each.attributes["n"])} == {str, int}


@pytest.mark.parametrize(
    ("column", "message"),
    [
        ({"a", "b"}, "the column 'answer' of rows must be a list .*, not a set"),
        ({"a": 1}, "the column 'answer' of rows must be a list .*, not a dict"),
        (pd.DataFrame({"a": [1]}), "the column 'answer' of rows must be a list .*, not a DataFrame"),
        ("So.", r"not a single mapping .*\(the column 'answer' is a str\)"),
        (np.array("So."), "not a single mapping .*'answer' is a ndarray"),
        (None, "not a single mapping .*'answer' is a NoneType"),
        (
            ["So.", "Yes."],
            "the columns of rows have different lengths: 'question' has 3, 'answer' has 2. Pass one cell per row",
        ),
    ],
)
def test_errors_for_invalid_columns_name_the_column(column: Any, message: str) -> None:
    """The error says which column is wrong and how to fix it."""
    with pytest.raises(UsageError, match=message):
        germane.evaluate({"question": np.array(CELLS), "answer": column}, [Length()])


class Short(Faithfulness):
    """A user's subclass with the inherited name and constructor."""


class Named(AnswerRelevancy):
    """A user's subclass with its own name."""

    name = "named"


class Fixed(Noncommittal):
    """A user's subclass that needs no arguments."""

    name = "fixed"

    def __init__(self) -> None:
        super().__init__(remove_question_echo=False)


class Other(Named):
    """A user's subclass that needs its own arguments."""

    def __init__(self, threshold: float) -> None:
        self.threshold = threshold


@pytest.mark.parametrize("argument", ["metrics", "scorers"])
@pytest.mark.parametrize(
    "container", [list, tuple, set, frozenset, iter, lambda classes: (one for one in classes), deque]
)
def test_scorers_can_be_in_any_iterable(judge: FakeJudge, container: Callable[[Any], Any], argument: str) -> None:
    """An iterable may contain names, built-in classes, their subclasses and other classes. Sets are sorted by name."""
    given: Any = {argument: container(["direct_relevancy", Short, Named, Fixed, Length])}

    evaluation = germane.evaluate([{**ROW, "contexts": ["By card."]}], **given, **judge.settings())

    names = [summary.scorer for summary in evaluation.summary()]
    expected = ["direct_relevancy", "faithfulness", "named", "fixed", "length"]
    assert names == (sorted(expected) if container in {set, frozenset} else expected)
    assert [score.state for score in evaluation.scores] == ["scored"] * 5
    assert evaluation.usage.requests == len(judge.requests) > 0


@pytest.mark.parametrize("argument", ["metrics", "scorers"])
def test_invalid_collections_of_scorers_are_rejected(argument: str) -> None:
    """The error names the argument and the fix."""
    given: dict[str, Any] = {argument: {"faithfulness": 0.5}}
    with pytest.raises(UsageError, match=rf"{argument} must be a list, such as \['faithfulness'\], not dict"):
        germane.evaluate([ROW], **given)
    with pytest.raises(UsageError, match=r"Other cannot be built like AnswerRelevancy \(.*\); pass an instance of it"):
        germane.evaluate([ROW], **{argument: Other}, base_url="http://127.0.0.1:9")


def test_a_subclass_of_a_built_in_scorer_has_its_own_fingerprint(judge: FakeJudge, tmp_path: Path) -> None:
    """A subclass may compute other values, so it shares neither cached scores nor means with the built-in scorer."""
    row, cache = {**ROW, "contexts": ["By card."]}, tmp_path / "scores.jsonl"
    (builtin,) = germane.evaluate([row], Faithfulness, cache=cache, **judge.settings()).scores
    (other,) = germane.evaluate([row], Short, cache=cache, **judge.settings()).scores

    assert builtin.scorer == other.scorer == "faithfulness"
    assert builtin.fingerprint != other.fingerprint


def test_rows_from_csv_dictreader_are_accepted(judge: FakeJudge) -> None:
    """The cell with the contexts contains a JSON list."""
    file = io.StringIO('question,answer,contexts\nHow?,"By card.","[""one"", ""two""]"\n')
    scorer = Length()

    evaluation = germane.evaluate(csv.DictReader(file), [scorer, "answer_relevancy"], **judge.settings())

    assert [context.text for context in scorer.seen[0].contexts] == ["one", "two"]
    assert {score.scorer for score in evaluation.scores} == {"length", "answer_relevancy"}


@pytest.mark.parametrize(
    ("cell", "texts"),
    [
        (["one", "two"], ["one", "two"]),
        ('["one", "two"]', ["one", "two"]),
        ("just one", ["just one"]),
        ("[broken", ["[broken"]),
        ("", []),
        (None, []),
        (float("nan"), []),
        ([1, "two", None], ["1", "two"]),
    ],
)
def test_contexts_can_be_lists_json_or_plain_text(cell: Any, texts: list[str]) -> None:
    """An empty cell in a data frame means that there are no contexts."""
    assert [context.text for context in read(ROW | {"answer": "By card.", "contexts": cell}).contexts] == texts


@pytest.mark.parametrize(("cell", "text"), [(42, "42"), (0.5, "0.5"), (float("nan"), None), ([], None)])
def test_numbers_in_text_columns_are_converted_to_text(cell: Any, text: str | None) -> None:
    """Data frames store columns of digits as numbers."""
    assert read(ROW | {"question": cell}).question == text


def test_a_single_scorer_needs_no_list(judge: FakeJudge) -> None:
    """A scorer name is not treated as a sequence of letters."""
    (summary,) = germane.evaluate([ROW], "question_answer_similarity", **judge.settings()).summary()

    assert summary.scorer == "question_answer_similarity"


def test_ragas_column_names_are_accepted() -> None:
    """Data sets for Ragas can be scored unchanged."""
    exchange = read({"user_input": "How?", "response": "By card.", "retrieved_contexts": ["one"]})

    assert (exchange.question, exchange.answer, exchange.contexts[0].text) == ("How?", "By card.", "one")


def test_column_names_can_be_mapped() -> None:
    """`columns` maps names; other columns keep their names."""
    exchange = read({"q": "How?", "response": "By card."}, columns={"question": "q"})

    assert (exchange.question, exchange.answer) == ("How?", "By card.")


class Frame:
    """Minimal stand-in for a pandas data frame."""

    columns = ("question", "answer")

    def to_dict(self, orient: str) -> list[dict[str, Any]]:
        """Return the rows."""
        assert orient == "records"
        return [{"question": "How?", "answer": "By card."}, {"question": float("nan"), "answer": "By cash."}]


def test_data_frames_are_accepted() -> None:
    """A missing value becomes None."""
    scorer = Length()
    germane.evaluate(Frame(), [scorer])

    assert [exchange.question for exchange in scorer.seen] == ["How?", None]


def test_rows_keep_their_order_and_concurrency_is_limited() -> None:
    """Scores are returned in row order, however long each one takes."""
    scorer = Length()
    rows = [{"question": "How?", "answer": "x" * length} for length in range(1, 60)]

    evaluation = germane.evaluate(rows, [scorer], concurrency=5)

    assert [row.scores["length"].value for row in evaluation.rows] == [length / 100 for length in range(1, 60)]
    assert [len(row.exchange.answer or "") for row in evaluation.rows] == list(range(1, 60))
    assert scorer.most_at_work == 5


def test_failed_scores_are_counted_and_not_averaged() -> None:
    """Rows without a score have a reason and are excluded from the mean."""
    answers = ["x" * 50, "fail", "raise", "x" * 200, None, "x" * 70]

    (summary,) = germane.evaluate([{"question": "How?", "answer": answer} for answer in answers], [Length()]).summary()

    assert summary.reasons == {"unparsable": 1, "scorer_error": 1, "out_of_range": 1, "missing_input": 1}
    assert summary.rows == 6
    assert summary.estimate is not None
    assert summary.estimate.n == 2
    assert summary.estimate.mean == pytest.approx(0.6)


def test_an_unreachable_judge_yields_no_mean(judge: FakeJudge) -> None:
    """The summary only contains the reasons for missing scores."""
    judge.outage = Fault("status", status=503)

    (summary,) = germane.evaluate([ROW], retry_timeout=0, **judge.settings()).summary()

    assert (summary.estimate, summary.reasons) == (None, {"judge_unreachable": 1})


def test_an_empty_data_set_yields_an_empty_evaluation(judge: FakeJudge) -> None:
    """An empty data set is not an error."""
    evaluation = germane.evaluate([], **judge.settings())

    assert (evaluation.rows, evaluation.summary()) == ((), [])


def test_each_score_has_the_name_of_its_scorer() -> None:
    """It replaces any other name that a scorer sets in its scores."""

    class Misnamed(Length):
        async def score(self, exchange: Exchange) -> Score | float:
            return Score(scorer="other", fingerprint="other", value=0.5)

    (summary,) = germane.evaluate([ROW, {"question": "How?", "answer": None}], [Misnamed()]).summary()

    assert (summary.scorer, summary.rows) == ("length", 2)


def test_user_defined_scorers_need_no_judge(caplog: pytest.LogCaptureFixture) -> None:
    """No warning about a missing judge is logged."""
    caplog.set_level(logging.INFO)
    germane.evaluate([ROW], [Length()])

    assert caplog.messages == []


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"rows": [{"question": "How?"}]}, "row 0 has no column answer or response; its columns are question"),
        ({"rows": [ROW, {"answer": "x"}]}, "row 1 has no column question or user_input or query"),
        ({"rows": [ROW], "columns": {"question": "q"}}, "row 0 has no column q; its columns are question, answer"),
        ({"rows": [ROW], "columns": {"quesion": "q"}}, "unknown columns quesion"),
        ({"rows": ["How?"]}, "row 0 must be a mapping of columns to values, not str"),
        ({"rows": {"question": "How?"}}, "rows must be a list of mappings, .* not a single mapping"),
        ({"rows": {"question": ["How?"], "answer": []}}, "different lengths: 'question' has 1, 'answer' has 0"),
        ({"rows": [ROW], "scorers": "noncommittal", "metrics": "noncommittal"}, "pass only one of them"),
        ({"rows": 7}, "rows must be mappings, .* not int"),
        ({"rows": [ROW], "scorers": [Length(), Length()]}, "each scorer needs a unique name: length, length"),
    ],
)
def test_invalid_arguments_of_evaluate_are_rejected(arguments: dict[str, Any], message: str) -> None:
    """The error is raised before any request is sent."""
    with pytest.raises(UsageError, match=message):
        germane.evaluate(**{"scorers": [Length()], **arguments})


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            {"scorers": ["relevance"]},
            "^setting scorers: unknown scorer 'relevance'; did you mean 'context_relevance'[?]",
        ),
        ({"scorers": []}, "no scorers selected"),
        ({"judje": "x"}, "did you mean 'judge'"),
    ],
)
def test_invalid_settings_are_rejected(arguments: dict[str, Any], message: str) -> None:
    """The errors are the same as those from `germane.start`."""
    with pytest.raises(SettingsError, match=message):
        germane.evaluate([ROW], **arguments)


def test_a_running_event_loop_requires_aevaluate() -> None:
    """In a notebook, the error from `evaluate` refers to `aevaluate`, which works there."""

    async def notebook() -> germane.Evaluation:
        with pytest.raises(UsageError, match="await germane"):
            germane.evaluate([ROW], [Length()])
        return await germane.aevaluate([ROW], [Length()])

    assert len(asyncio.run(notebook()).rows) == 1


def test_judge_requests_of_an_evaluation_are_not_captured(judge: FakeJudge) -> None:
    """Scorers may call functions that are observed in production."""
    from germane.testing import collect

    class Observed(Length):
        async def score(self, exchange: Exchange) -> Score | float:
            return len(answer(exchange.question or "")) / 100

    @germane.observe
    def answer(question: str) -> str:
        return "By card."

    with collect() as exchanges:
        germane.evaluate([ROW], [Observed()])

    assert exchanges == []


@pytest.mark.parametrize("values", [[1.0, 1.0, 0.98], [1.0] * 3 + [0.0], [-1.0, -0.99, -1.0], [0.99, 0.2]])
def test_intervals_of_means_stay_within_the_range_of_scores(values: list[float]) -> None:
    """No interval exceeds 1."""
    zeros, total, squares = values.count(0.0), sum(values), sum(value * value for value in values)
    n = len(values)
    found = estimate_mean(
        WeightedSums(n=n, n_zero=zeros, sum_w=n, sum_w_zero=zeros, sum_w2=n, sum_w2_zero=zeros, sum_wy=total,
                     sum_wy2=squares, sum_w2y=total, sum_w2y2=squares, sum_w_low=0, sum_w_noncommittal=0)
    )  # fmt: skip

    assert found.interval is not None
    assert -1 <= found.interval[0] <= found.mean <= found.interval[1] <= 1
