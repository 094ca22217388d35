"""Data sets in Parquet, and scoring of a data set in partitions."""

from __future__ import annotations

import json
import multiprocessing
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import Executor, ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import nullcontext
from datetime import date
from pathlib import Path
from typing import Any

import pyarrow as pa  # type: ignore[import-untyped]  # pyarrow has no types
import pyarrow.parquet as pq  # type: ignore[import-untyped]
import pytest

import germane
from germane.errors import UsageError
from germane.evaluation import open_engine, run_dataset
from germane.evaluation.dataset_run import DatasetResult, _divide_rate_limits, count_rows, list_parts
from germane.evaluation.engines import Engine
from germane.evaluation.parquet import list_row_groups, read_row_group
from germane.score import Score
from germane.settings import load_settings
from germane.testing import FakeJudge, JudgeRequest

DAYS = ("2026-03-01", "2026-03-02")


@pytest.fixture
def folder(bare: Path) -> Path:
    """A folder with one file of four row groups for each of two days, 200 rows in all, whose answers are numbers."""
    for number, day in enumerate(DAYS):
        rows = [
            {"id": f"{day} {row}", "question": "How many?", "answer": f"{row / 100}", "contexts": ["one"], "extra": row}
            for row in range(100)
        ]
        (bare / "data" / f"day={day}").mkdir(parents=True)
        table = pa.Table.from_pylist(rows)
        pq.write_table(table, bare / "data" / f"day={day}" / f"{number}.parquet", row_group_size=25)
    return Path("data")


@pytest.fixture
def imports(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make the test scorers importable, here and in other processes."""
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(Path(__file__).parent), os.environ.get("PYTHONPATH", "")]))
    monkeypatch.syspath_prepend(str(Path(__file__).parent))


@pytest.fixture(scope="module")
def engine() -> Iterator[Engine]:
    """One local process."""
    with open_engine("local", workers=1) as opened:
        yield opened


def run(path: Path, engine: Engine, *scorers: str, output: str = "scores", **options: Any) -> DatasetResult:
    """Score a data set, by default with ``noncommittal``."""
    settings = load_settings(scorers=scorers or ["noncommittal"])
    return run_dataset(path, Path(output), settings, nullcontext(engine), **{"partition_size": 50, **options})


def read_scores(output: Path) -> list[dict[str, Any]]:
    """Return the rows of all score files in a folder, in order."""
    files = sorted(output.glob("*.parquet"))
    return [row for file in files for row in pq.read_table(file).to_pylist()]


def test_a_folder_of_parquet_files_is_a_data_set(folder: Path, numeric: Any) -> None:
    """Rows are in the order of the files, and the names of the folders are columns."""
    rows = germane.evaluate(folder, [numeric]).rows

    assert len(rows) == 200
    assert rows[0].exchange.id == "2026-03-01 0"
    assert dict(rows[-1].exchange.attributes) == {"extra": 99, "day": "2026-03-02"}
    assert rows[-1].location.endswith("day=2026-03-02/1.parquet, row 100")


@pytest.mark.parametrize(
    ("folder_name", "column", "expected"),
    [
        ("day=2026-03-01", pa.array([date(2026, 3, 1)]), "2026-03-01"),
        ("tenant=1", pa.array([1], pa.int64()), 1),
        ("tenant=1", pa.array([1.0]), 1.0),
        ("tenant=01", pa.array(["01"]), "01"),
        ("tenant=1", pa.array(["1"]).dictionary_encode(), "1"),
    ],
)
def test_files_may_contain_the_columns_of_their_folders(
    bare: Path, numeric: Any, folder_name: str, column: pa.Array, expected: object
) -> None:
    """DuckDB can write such files. A column has the values and the type that the file contains."""
    name = folder_name.partition("=")[0]
    (bare / "data" / folder_name).mkdir(parents=True)
    table = pa.table({"question": ["How?"], "answer": ["1"], name: column})
    pq.write_table(table, bare / "data" / folder_name / "a.parquet")

    (row,) = germane.evaluate("data", [numeric]).rows

    assert row.exchange.attributes.get(name) == expected
    assert type(row.exchange.attributes.get(name)) is type(expected)


@pytest.mark.parametrize(
    ("table", "message"),
    [
        (pa.table({"prompt": ["How?"], "reply": ["1"]}), "row 1 has no column .*; its columns are prompt, reply, day"),
        (
            pa.table({"question": ["How?"], "reply": ["1"]}),
            "row 1 has no column .*; its columns are question, reply, day",
        ),
        (
            pa.Table.from_arrays([pa.array(["1"])] * 3, ["question", "answer", "answer"]),
            "has duplicate columns 'answer': rename them",
        ),
    ],
)
def test_errors_about_columns_name_the_file_and_all_of_its_columns(
    folder: Path, engine: Engine, table: pa.Table, message: str
) -> None:
    """This also holds for later files, and for columns that the scorers do not need."""
    pq.write_table(table, folder / f"day={DAYS[1]}" / "2.parquet")

    with pytest.raises(UsageError, match=f"^data/day={DAYS[1]}/2.parquet,? {message}"):
        run(folder, engine)


@pytest.mark.parametrize("error", [pa.ArrowTypeError("bad"), pa.ArrowKeyError("bad"), pa.ArrowCapacityError("bad")])
def test_every_error_of_pyarrow_names_the_file(folder: Path, monkeypatch: pytest.MonkeyPatch, error: Exception) -> None:
    """Not all of them are OS errors or value errors."""
    (group, *_) = list_row_groups(folder)

    def fail(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr(pq.ParquetFile, "iter_batches", fail)
    with pytest.raises(UsageError, match=rf"^data/day={DAYS[0]}/0\.parquet cannot be read: '?bad"):
        list(read_row_group(group))


def test_files_in_a_folder_that_are_not_parquet_are_named(folder: Path, engine: Engine) -> None:
    """Files and folders whose names start with a dot or an underscore are ignored, as in other tools."""
    (folder / "_SUCCESS").touch()
    (folder / ".part.crc").touch()
    assert count_rows(folder) == 200

    (folder / "notes.txt").write_text("one")
    with pytest.raises(UsageError, match=r"^data/notes\.txt is not a Parquet file"):
        run(folder, engine)


def test_partitions_are_whole_row_groups_of_one_file(folder: Path) -> None:
    """A row group that is larger than the partition size is a partition. Other files are divided by rows."""
    assert [part.rows for part in list_parts(folder, 60, None)] == [50, 50, 50, 50]
    assert [part.rows for part in list_parts(folder, 10, None)] == [25] * 8
    assert [part.rows for part in list_parts(folder, 60, 100)] == [60, 40]
    assert (count_rows(folder), count_rows(folder, 7)) == (200, 7)

    Path("rows.jsonl").write_text('{"question": "How?", "answer": "1"}\n' * 7, encoding="utf-8")
    parts = list(list_parts(Path("rows.jsonl"), 3, None))
    assert [(part.number, part.rows) for part in parts] == [(0, 3), (1, 3), (2, 1)]


def test_scores_and_summaries_equal_those_of_evaluate(folder: Path, engine: Engine) -> None:
    """The summary is computed from running sums, and each partition has a score file with a schema version."""
    expected = germane.evaluate(folder, ["noncommittal", "context_coverage"])

    result = run(folder, engine, "noncommittal", "context_coverage")

    assert (result.rows, result.reused_parts) == (200, 0)
    assert result.summaries == expected.summary()
    assert result.check(0.5, 0.9) == expected.check(0.5, 0.9)
    rows = read_scores(result.output)
    wanted = [(row.exchange.id, score.scorer, score.value) for row in expected.rows for score in row.scores.values()]
    assert [(row["id"], row["scorer"], row["value"]) for row in rows] == wanted
    metadata = pq.read_metadata(result.output / "part-000003.parquet").metadata
    assert metadata[b"germane.schema_version"] == b"1"


def test_evaluations_are_written_as_parquet(bare: Path, numeric: Any) -> None:
    """Scores without a value have their reason. Generated ids are omitted."""
    rows = [{"question": "How?", "answer": "0.5", "id": "a"}, {"question": "How?", "answer": "x"}]
    germane.evaluate(rows, [numeric]).to_parquet("scores.parquet")

    first, second = pq.read_table("scores.parquet").to_pylist()
    assert (first["id"], first["value"], first["reason"], first["row"]) == ("a", 0.5, None, "row 0")
    assert (second["id"], second["value"], second["reason"]) == (None, None, "unparsable")
    assert [path.name for path in bare.iterdir()] == ["scores.parquet"]


def test_lone_surrogates_in_scores_are_replaced(bare: Path) -> None:
    """Judges may return them, and the scores were paid for. Surrogate pairs are joined, as in the database."""

    class Careless:
        name = "careless"
        fingerprint = "careless-1"
        requires = frozenset({"answer"})
        range = (0.0, 1.0)

        async def score(self, exchange: germane.Exchange) -> Score:
            return Score(
                scorer="careless",
                fingerprint="careless-1",
                value=1.0,
                label="good \ud83d",
                explanation="cut \ud83d, joined \ud83d\ude00",
                details={"reply \ud83d": ["\ude00 naïve"]},
                judge="judge \ud83d",
            )

    germane.evaluate([{"question": "How?", "answer": "By card."}], [Careless()]).to_parquet("scores.parquet")

    (row,) = pq.read_table("scores.parquet").to_pylist()
    assert row["explanation"] == "cut \ufffd, joined \U0001f600"
    assert (row["label"], row["judge"]) == ("good \ufffd", "judge \ufffd")
    assert json.loads(row["details"]) == {"reply \ufffd": ["\ufffd naïve"]}


def test_a_repeated_run_scores_only_missing_partitions(folder: Path, engine: Engine) -> None:
    """A file that was not completed is ignored, and the summary covers all partitions."""
    first = run(folder, engine)
    times = {file.name: file.stat().st_mtime_ns for file in first.output.glob("*.parquet")}
    (first.output / "part-000001.parquet").write_bytes(b"PAR1 and no more")

    second = run(folder, engine)

    assert (second.reused_parts, second.summaries) == (3, first.summaries)
    again = {file.name: file.stat().st_mtime_ns for file in first.output.glob("*.parquet")}
    assert [name for name in sorted(times) if again[name] != times[name]] == ["part-000001.parquet"]
    assert len(read_scores(second.output)) == 200


@pytest.mark.parametrize("change", ["scorer", "file", "limit"])
def test_a_folder_with_the_scores_of_another_run_is_rejected(folder: Path, engine: Engine, change: str) -> None:
    """Scores of different data sets, scorers or options are never mixed."""
    run(folder, engine)
    if change == "file":
        os.utime(folder / f"day={DAYS[0]}" / "0.parquet", ns=(1, 1))
    options: dict[str, Any] = {"limit": 10} if change == "limit" else {}

    with pytest.raises(UsageError, match="contains the scores of another data set, or of other scorers or options"):
        run(folder, engine, *["context_coverage"][: change == "scorer"], **options)


@pytest.mark.parametrize("suffix", ["", ".parq", ".PARQUET"])
def test_rows_of_new_files_are_never_mixed_with_old_scores(folder: Path, engine: Engine, suffix: str) -> None:
    """The manifest describes all files that are read, whatever their suffix."""
    first, second = (folder / f"day={day}" / f"{number}.parquet" for number, day in enumerate(DAYS))
    first = first.rename(first.with_name(f"part-1{suffix}"))
    second.unlink()
    assert run(folder, engine).rows == 100

    shutil.copy(first, first.with_name(f"part-0{suffix}"))
    with pytest.raises(UsageError, match="contains the scores of another data set"):
        run(folder, engine)


def test_a_folder_with_other_files_is_rejected(folder: Path, engine: Engine) -> None:
    """Nothing is written into it."""
    Path("scores").mkdir()
    Path("scores/notes.txt").touch()
    with pytest.raises(UsageError, match="scores is not empty: choose another folder"):
        run(folder, engine)
    assert [file.name for file in Path("scores").iterdir()] == ["notes.txt"]


@pytest.mark.parametrize("output", ["data", "data/scores", "data/../data/_new/scores"])
def test_scores_are_never_written_into_the_data_set(folder: Path, engine: Engine, output: str) -> None:
    """The error is raised before anything is created, so the data set can still be read."""
    with pytest.raises(
        UsageError, match=f"^{output} is in the folder of the data set, data, .*: choose another folder"
    ):
        run(folder, engine, output=output)
    assert sorted(file.name for file in folder.iterdir()) == [f"day={day}" for day in DAYS]


@pytest.mark.slow
@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL])
def test_files_of_killed_processes_are_removed(
    folder: Path, imports: None, monkeypatch: pytest.MonkeyPatch, how: signal.Signals
) -> None:
    """An interrupted command removes its partial files. After it was killed, the next one does."""
    command = [sys.executable, "-m", "germane", "score", "data", "--output", "scores", "--engine", "local:1"]
    command += ["--partition-size", "25", "--scorer", "answer_number"]
    monkeypatch.setenv("GERMANE_IMPORTS", "history_scorers")
    monkeypatch.setenv("HISTORY_SCORER_DELAY", "60")
    # A shell in the background ignores SIGINT, which its processes inherit, unless they handle the signal.
    inherited = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as first:
            while not list(Path("scores").glob(".*.tmp")):
                assert first.poll() is None
                time.sleep(0.05)
            first.send_signal(how)
    finally:
        signal.signal(signal.SIGINT, inherited)
    assert bool(list(Path("scores").glob(".*.tmp"))) == (how == signal.SIGKILL)

    monkeypatch.setenv("HISTORY_SCORER_DELAY", "0")
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    assert sorted(file.name for file in Path("scores").iterdir()) == [
        "manifest.json",
        *(f"part-{number:06}.parquet" for number in range(8)),
    ]


@pytest.mark.parametrize("kind", [ThreadPoolExecutor, ProcessPoolExecutor])
def test_any_executor_scores_a_data_set(folder: Path, kind: type[Executor]) -> None:
    """The caller's executor stays open, and the scores are those of ``evaluate``."""
    context: dict[str, Any] = {"mp_context": multiprocessing.get_context("spawn")}
    with kind(1, **(context if kind is ProcessPoolExecutor else {})) as executor:
        result = germane.evaluate_to_parquet(folder, "scores", "noncommittal", engine=executor, workers=1)
        assert executor.submit(len, "open").result() == 4
    assert result.summaries == germane.evaluate(folder, "noncommittal").summary()
    assert result.output == Path("scores")


def test_a_stopped_executor_is_reported(folder: Path) -> None:
    """The scores so far stay in the folder."""
    executor = ThreadPoolExecutor(1)
    executor.shutdown()
    with pytest.raises(UsageError, match="the executor accepts no more work, so pass a new one"):
        germane.evaluate_to_parquet(folder, "scores", "noncommittal", engine=executor, workers=1)


def test_arguments_that_do_not_fit_together_are_rejected(folder: Path, numeric: Any) -> None:
    """Each message names the argument."""
    with ThreadPoolExecutor(1) as executor:
        for options, message in (
            ({"engine": executor}, "workers must be the number of functions that the executor runs"),
            ({"engine": "spark"}, "engine must be one of local, dask, ray, or an executor, not 'spark'"),
            ({"engine": executor, "scheduler": "tcp://a:1"}, "scheduler must be the address .* is an executor"),
            ({"scorers": [numeric]}, "scorers must be names, not"),
        ):
            given: dict[str, Any] = {"scorers": "noncommittal", **options}  # type: ignore[dict-item]
            with pytest.raises(UsageError, match=message):
                germane.evaluate_to_parquet(folder, "scores", **given)


def test_an_invalid_row_stops_the_run_with_its_location(bare: Path, engine: Engine) -> None:
    """The partitions before it stay done."""
    rows: Sequence[dict[str, Any]] = [{"question": "How?", "answer": "1"}] * 3 + [{"question": "How?"}]
    Path("rows.jsonl").write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")

    with pytest.raises(UsageError, match="line 4 has no column answer"):
        run(Path("rows.jsonl"), engine, partition_size=2)
    assert [file.name for file in sorted(Path("scores").glob("*.parquet"))] == ["part-000000.parquet"]


@pytest.mark.slow
def test_user_defined_scorers_get_all_columns(folder: Path, imports: None, engine: Engine) -> None:
    """Built-in scorers read only the columns that they know."""
    settings = load_settings(scorers=["extra_column"], imports=["history_scorers"])
    own = open_engine("local", workers=1)  # its process has the path of the test scorers
    result = run_dataset(folder, Path("scores"), settings, own, partition_size=100)
    assert result.summaries[0].maximum == 0.99


def test_processes_share_the_rate_limits(bare: Path) -> None:
    """Each process limits itself to its share. Limits that are not set stay unset."""
    settings = load_settings(requests_per_minute=60.0)

    sent = _divide_rate_limits(settings, 4)

    assert (sent.requests_per_minute, sent.tokens_per_minute) == (15.0, None)


@pytest.mark.parametrize("threads", [1, 2])
def test_rate_limits_hold_across_partitions(bare: Path, threads: int) -> None:
    """Many small partitions send as many requests as a large one, and all threads together as many as a single one."""
    rows = [{"question": "How long is the warranty?", "answer": f"The warranty is {n} years."} for n in range(8)]
    Path("rows.jsonl").write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    times = []

    def reply(_: JudgeRequest) -> None:
        times.append(time.monotonic())

    with FakeJudge(replies=reply) as judge, ThreadPoolExecutor(threads) as executor:
        germane.evaluate_to_parquet(
            "rows.jsonl", "scores", "intent_match", engine=executor, workers=threads, partition_size=1,
            requests_per_minute=180, **judge.settings(),
        )  # fmt: skip

    assert len(times) == 8
    # Each thread sends one request at the start, and then one every third of a second times the number of threads.
    assert max(times) - min(times) > (8 / threads - 1) * threads / 3 - 0.2


def test_each_request_is_counted_once_in_the_costs_of_identical_rows(bare: Path) -> None:
    """Rows that reuse a score have no cost and no tokens of their own."""

    class Paid:
        name = "paid"
        fingerprint = "paid-1"
        requires = frozenset({"answer"})
        range = (0.0, 1.0)

        async def score(self, exchange: germane.Exchange) -> Score:
            return Score(scorer="paid", fingerprint="paid-1", value=0.5, input_tokens=10, cost=0.25)

    rows = [{"question": "How?", "answer": "By card."}] * 3
    scores = [row.scores["paid"] for row in germane.evaluate(rows, [Paid()]).rows]

    assert sorted(
        ((score.cost, score.input_tokens, score.output_tokens) for score in scores), key=str
    ) == [
        (0.0, 0, None), (0.0, 0, None), (0.25, 10, None),
    ]  # fmt: skip
