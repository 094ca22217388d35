"""Data sets in files, and the errors for invalid ones."""

from __future__ import annotations

import csv
import io
import json
import re
import sys
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import germane
from germane.errors import UsageError
from germane.evaluation.files import read_file_records
from germane.exchange import Exchange
from germane.installation import install_command

File = Callable[[str, str | bytes], Path]
LINE = '{"question": "How?", "answer": "0.5", "contexts": ["one", "two"]}'


def read(path: Path, numeric: Any, **options: Any) -> list[Exchange]:
    """Return the exchanges in a file."""
    return [row.exchange for row in germane.evaluate(path, [numeric], **options).rows]


def test_json_lines_files_are_read(file: File, numeric: Any) -> None:
    """Files may contain a byte order mark, Windows line endings and empty lines."""
    path = file("rows.jsonl", b"\xef\xbb\xbf" + f"{LINE}\r\n\r\n{LINE}".encode())

    evaluation = germane.evaluate(path, [numeric])

    assert [row.location for row in evaluation.rows] == ["rows.jsonl, line 1", "rows.jsonl, line 3"]
    assert evaluation.rows[1].exchange.question == "How?"
    assert [context.text for context in evaluation.rows[0].exchange.contexts] == ["one", "two"]


def test_files_with_a_json_list_are_read(file: File, numeric: Any) -> None:
    """A JSON file contains a single list."""
    (exchange,) = read(file("rows.json", f"[{LINE}]"), numeric)

    assert (exchange.question, exchange.answer) == ("How?", "0.5")


def test_json_lines_can_be_long(file: File, numeric: Any) -> None:
    """A line may contain megabytes of text, and line separators other than the newline."""
    text = "x\u2028y\x85" * 500_000

    (exchange,) = read(file("rows.jsonl", json.dumps({"question": text, "answer": "1"}, ensure_ascii=False)), numeric)

    assert exchange.question == text


@pytest.mark.parametrize(("name", "separator"), [("a.csv", ","), ("b.csv", ";"), ("c.tsv", "\t")])
def test_csv_files_are_read(file: File, numeric: Any, name: str, separator: str) -> None:
    """CSV files may have commas or other delimiters, quoted line breaks, and contexts as JSON."""
    cells = ('"Two\r\nlines?"', "0.5", '"[""one"", ""two""]"')
    path = file(name, "\ufeff" + separator.join(("question", "answer", "contexts")) + "\r\n" + separator.join(cells))

    (exchange,) = read(path, numeric)

    assert (exchange.question, exchange.answer) == ("Two\r\nlines?", "0.5")
    assert [context.text for context in exchange.contexts] == ["one", "two"]


def test_long_csv_fields_are_read(file: File, numeric: Any) -> None:
    """The global limit of the csv module stays unchanged."""
    before = csv.field_size_limit()

    (exchange,) = read(file("rows.csv", f"question,answer\n{'x' * (before + 1)},1\n"), numeric)

    assert len(exchange.question or "") == before + 1
    assert csv.field_size_limit() == before


@pytest.mark.parametrize(
    ("name", "header", "row"),
    [
        ("rows.csv", "question,answer\n", "How?,{}\n"),
        ("rows.tsv", "question\tanswer\n", "How?\t{}\n"),
        ("rows.jsonl", "", '{{"question": "How?", "answer": "{}"}}\n'),
    ],
)
def test_memory_does_not_depend_on_the_size_of_a_file(file: File, name: str, header: str, row: str) -> None:
    """Rows are read when they are needed. Only a JSON list is read as a whole."""
    path = file(name, header + row.format("x" * 10_000) * 500)

    tracemalloc.start()
    try:
        count = sum(1 for _ in read_file_records(path))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert count == 500
    assert peak < path.stat().st_size / 5


def test_csv_files_can_be_read_at_the_same_time(file: File) -> None:
    """Between two rows, the global limit of the csv module has its old value."""
    before = csv.field_size_limit()
    path = file("rows.csv", f"question,answer\n{'x' * (before + 1)},1\n" * 2)

    for (_, first), (_, second) in zip(read_file_records(path), read_file_records(path), strict=True):
        assert first == second
        assert csv.field_size_limit() == before


def test_parquet_files_are_read(bare: Path, numeric: Any) -> None:
    """Contexts are lists, and missing values are None."""
    pd.DataFrame({"question": ["How?", "Why?"], "answer": ["0.5", None], "contexts": [["one", "two"], []]}).to_parquet(
        "rows.parquet"
    )

    first, second = read(Path("rows.parquet"), numeric)

    assert ([context.text for context in first.contexts], second.answer) == (["one", "two"], None)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.jsonl", f"{LINE}\n{{'question'}}", "^a.jsonl, line 2 is not JSON: .* at column 2; expected one"),
        ("a.jsonl", f"{LINE}\n[1, 2]", "^a.jsonl, line 2 must be a mapping of columns to values, not list"),
        ("a.jsonl", '{"question": "How?"}', "^a.jsonl, line 1 has no column answer or response; its columns are"),
        ("a.jsonl", "[" * 100_000, "^a.jsonl, line 1 cannot be read as JSON"),
        ("a.jsonl", '{"question": 1' + "0" * 5_000 + "}", "^a.jsonl, line 1 cannot be read as JSON"),
        ("a.jsonl", '{"question": "How?", "answer": {"text": "x"}}', "line 1 has a dict as its answer, not text"),
        ("a.jsonl", LINE.encode() + b"\n\xff\xfe{}", "line 2 is not UTF-8: byte 66 of the file is 0xff; save the file"),
        ("a.jsonl", b"\xef\xbb\xbf\xff", "line 1 is not UTF-8: byte 3 of the file"),
        ("a.json", f"{LINE}\n{LINE}", "^a.json is not JSON: Extra data at line 2, column 1; .* for JSON Lines"),
        ("a.json", LINE, "^a.json contains a dict, not a list"),
        ("a.json", f'[{LINE}, "x"]', "^a.json, row 2 must be a mapping of columns to values, not str"),
        ("a.csv", "", "^a.csv is empty: the first line must name the columns"),
        ("a.csv", "question,answer,answer\n", "duplicate columns 'answer'"),
        ("a.csv", "question,answer\nHow?,Well, so\n", "^a.csv, line 2 has 3 fields, but the header has 2: quote"),
        ("a.csv", 'question,answer\nHow?,"Well\n', "^a.csv, line 2 is not CSV: unexpected end of data; quote"),
        ("a.csv", 'question,answer\nHow?,"Well" so\n', "^a.csv, line 2 is not CSV"),
        ("a.csv", b"question,answer\nHow?,caf\xe9\n", "^a.csv, line 2 is not UTF-8: byte 24 of the file is 0xe9"),
        ("a.parquet", "PAR2", "^a.parquet is not a Parquet file"),
        ("a.txt", LINE, "^a.txt has an unsupported suffix: use one of .jsonl, .ndjson, .json, .csv, .tsv, .parquet"),
    ],
)  # fmt: skip
def test_errors_about_a_data_set_file_name_the_file_the_line_and_the_fix(
    file: File, numeric: Any, name: str, content: str | bytes, message: str
) -> None:
    """The error is raised before any row is scored."""
    with pytest.raises(UsageError, match=message):
        read(file(name, content), numeric)
    assert numeric.seen == []


@pytest.mark.parametrize("name", ["absent.jsonl", "absent.csv", "absent.parquet"])
def test_a_missing_data_set_file_is_an_error(bare: Path, numeric: Any, name: str) -> None:
    """The error names the file."""
    with pytest.raises(UsageError, match=f"^{name} cannot be read: No such file"):
        read(Path(name), numeric)


def test_the_error_for_a_parquet_file_without_pyarrow_names_the_extra(
    bare: Path, numeric: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The error contains the command that installs the extra."""
    monkeypatch.setitem(sys.modules, "pyarrow.dataset", None)

    with pytest.raises(UsageError, match=re.escape(install_command("pandas"))):
        read(Path("rows.parquet"), numeric)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(question=st.text(), context=st.text(min_size=1))
def test_texts_are_unchanged_after_writing_and_reading_csv(file: File, question: str, context: str) -> None:
    """This holds for any text without lone surrogates, which no file can contain."""
    question, context = (text.encode("utf-8", "ignore").decode() for text in (question, context))
    written = io.StringIO()
    writer = csv.writer(written)
    writer.writerows([["question", "answer"], [question, context]])

    ((_, record),) = read_file_records(file("rows.csv", written.getvalue()))

    assert record == {"question": question, "answer": context}
