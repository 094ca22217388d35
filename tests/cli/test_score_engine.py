"""Tests of `germane score --engine`, and of scores in Parquet."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa  # type: ignore[import-untyped]  # pyarrow has no types
import pyarrow.parquet as pq  # type: ignore[import-untyped]
import pytest

Call = Callable[..., Any]


@pytest.fixture
def folder(alone: None) -> Path:
    """A folder with two Parquet files of 100 rows."""
    folder = Path("data")
    folder.mkdir()
    for number in range(2):
        table = pa.Table.from_pylist([{"question": "How do I pay?", "answer": "By card."}] * 100)
        pq.write_table(table, folder / f"{number}.parquet")
    return folder


@pytest.mark.slow
def test_the_command_writes_scores_and_a_summary(call: Call, folder: Path) -> None:
    """An estimate scores nothing. Options that need all rows in memory are rejected."""
    planned = call("score", "data", "--scorer", "noncommittal", "--engine", "local", "--estimate")
    assert planned.out.startswith("200 rows of data.\n")
    assert not Path("data.scores").exists()

    ended = call("score", "data", "--scorer", "noncommittal", "--engine", "local:1", "--fail-under", "2")
    assert ended.code == 3
    assert "noncommittal" in ended.out
    assert "Scored now: 200 rows in" in ended.out
    assert "The scores are in data.scores." in ended.out
    assert sum(len(pq.read_table(file)) for file in Path("data.scores").glob("*.parquet")) == 200

    again = call("score", "data", "--scorer", "noncommittal", "--engine", "local:1")
    assert "Scored now: 0 rows in" in again.out
    assert "Scored before and reused: 200 rows." in again.out

    rejected = call("score", "data", "--engine", "local", "--report", "json")
    assert "--report does not apply with --engine" in rejected.err
    single = call("score", "data", "--scorer", "noncommittal", "--output", "scores.parquet")
    assert (single.code, len(pq.read_table("scores.parquet"))) == (0, 200)


def test_an_output_of_the_wrong_kind_is_rejected_before_scoring(call: Call, folder: Path) -> None:
    """The scores are a folder with --engine, and a file without it."""
    as_file = call("score", "data", "--engine", "local", "--output", "out.parquet")
    assert "--output must be a folder with --engine, not out.parquet" in as_file.err
    assert not Path("out.parquet").exists()

    Path("existing.parquet").mkdir()
    as_folder = call("score", "data", "--output", "existing.parquet")
    assert "--output must be a file without --engine, not the folder existing.parquet" in as_folder.err
