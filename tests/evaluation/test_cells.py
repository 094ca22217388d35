"""Cells that are not text, and lists that were written as text."""

from __future__ import annotations

import datetime as dt
import json
import uuid
from collections import OrderedDict, deque
from collections.abc import Callable, Iterable
from decimal import Decimal
from enum import Enum
from fractions import Fraction
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.cases import each

from germane.errors import UsageError
from germane.evaluation import read_rows
from germane.exchange import Exchange, Message

ROW = {"question": "How do I pay?", "answer": "By card."}
DAY = dt.date(2026, 3, 1)
NOON = dt.datetime(2026, 3, 1, 12, tzinfo=dt.UTC)
ID = uuid.UUID(int=7)


class Verdict(Enum):
    """An answer of a fixed list."""

    YES = "Yes."


class StringVerdict(str, Enum):  # noqa: UP042 - the kind that existed before StrEnum
    """An answer of a fixed list, which is also text."""

    YES = "Yes."


def read(rows: Any) -> Exchange:
    """Return the exchange of the first row."""
    return next(read_rows(rows)).exchange


@each(
    ("cell", "text"),
    [
        (b"By card.", "By card."),
        (bytearray("Für 3 €".encode()), "Für 3 €"),
        (memoryview(b"By card."), "By card."),
        (np.bytes_(b"By card."), "By card."),
        (np.str_("By card."), "By card."),
        (3, "3"),
        (0.5, "0.5"),
        (np.float32(0.5), "0.5"),
        (np.array(7), "7"),
        (Decimal("12.50"), "12.50"),
        (Fraction(1, 2), "0.5"),
        (DAY, "2026-03-01"),
        (NOON, "2026-03-01 12:00:00+00:00"),
        (dt.time(12), "12:00:00"),
        (dt.timedelta(hours=2), "2:00:00"),
        (pd.Timestamp("2026-03-01"), "2026-03-01 00:00:00"),
        (np.datetime64("2026-03-01"), "2026-03-01"),
        (np.datetime64("2026-03-01T12:00:00.000000001"), "2026-03-01T12:00:00.000000001"),
        (Verdict.YES, "Yes."),
        (StringVerdict.YES, "Yes."),
    ],
)
def test_cells_with_one_meaning_as_text_are_converted(cell: Any, text: str) -> None:
    """This applies to the question, the answer, a context, a message and their lists alike."""
    message = {"role": "user", "content": cell}
    exchange = read([{"question": cell, "answer": cell, "contexts": [cell, {"text": cell}], "history": [message]}])

    assert (exchange.question, exchange.answer, exchange.history) == (text, text, (Message("user", text),))
    assert [context.text for context in exchange.contexts] == [text, text]
    assert [context.text for context in read([{**ROW, "contexts": cell}]).contexts] == [text]


@each(
    ("cell", "kind"),
    [
        (True, "a bool"),
        (np.bool_(False), "a bool"),
        (ID, "a UUID"),
        (PurePosixPath("answers/7.txt"), "a PurePosixPath"),
        (b"\xff\xfe", "bytes that are not UTF-8"),
        (bytearray(b"\x80"), "bytes that are not UTF-8"),
        (float("inf"), "a float"),
        (Decimal("-Infinity"), "a Decimal"),
        (1j, "a complex"),
        ({"a": 1}, "a dict"),
        (("a", "b"), "a tuple"),
        (object(), "a object"),
        (pd.Interval(0, 1), "a Interval"),
    ],
)
@pytest.mark.parametrize("column", ["question", "answer", "contexts"])
def test_other_cells_are_errors_that_name_the_row_and_the_column(cell: Any, kind: str, column: str) -> None:
    """A Boolean, a UUID or a path can stand for another text. The scorers would report a missing answer instead."""
    if column == "question" and isinstance(cell, tuple):
        return  # a conversation
    if column == "contexts":
        cell = [cell]
    with pytest.raises(UsageError, match=rf"row 1 has .*{column.removesuffix('s')}") as caught:
        list(read_rows([ROW, {**ROW, column: cell}]))

    assert kind in str(caught.value) or "object without text" in str(caught.value)


@each("cell", [None, float("nan"), np.float64("nan"), pd.NA, pd.NaT, np.datetime64("NaT"), Decimal("NaN"), []])
def test_missing_values_of_all_libraries_are_missing(cell: Any) -> None:
    """They are neither texts nor errors."""
    exchange = read([{"question": cell, "answer": cell, "contexts": cell, "id": cell, "route": cell, "kind": cell}])

    assert (exchange.question or None, exchange.answer, exchange.contexts) == (None, None, ())
    assert (len(exchange.id), exchange.route, exchange.attributes) == (32, "evaluate", {})


@each(
    ("cell", "value"),
    [
        (b"gold", "gold"),
        (ID, str(ID)),
        (DAY, "2026-03-01"),
        (NOON, "2026-03-01 12:00:00+00:00"),
        (dt.time(12), "12:00:00"),
        (dt.timedelta(1), "1 day, 0:00:00"),
        (Decimal("12.50"), "12.50"),
        (PurePosixPath("a/b"), "a/b"),
        (np.datetime64("2026-03-01"), "2026-03-01"),
        (Verdict.YES, "Yes."),
        (7, 7),
        (True, True),
    ],
)
def test_scalar_cells_are_kept_in_ids_and_attributes(cell: Any, value: Any) -> None:
    """Numbers and Booleans keep their type in attributes. An id is always text."""
    exchange = read([{**ROW, "id": cell, "route": cell, "model": cell, "kind": cell, "image": b"\xff\xd8", "tags": []}])

    assert (exchange.id, exchange.route, exchange.model) == (str(value),) * 3
    assert exchange.attributes == {"kind": value}


@each("cell", [b"\xff", ["a"], {"a": 1}, float("inf"), object()])
@pytest.mark.parametrize("column", ["id", "route", "model"])
def test_an_id_that_cannot_be_read_is_an_error(cell: Any, column: str) -> None:
    """A generated id in its place would import the row twice."""
    with pytest.raises(UsageError, match=rf"row 0 has .* as its {column}: use text or a number"):
        read([{**ROW, column: cell}])


TABLE = {
    "question": [b"Can I return shoes?"],
    "answer": [Decimal("30.00")],
    "contexts": [[b"Within thirty days."]],
    "id": [DAY],
    "paid": [NOON],
}
BINARY = pa.table({**TABLE, "contexts": pa.array(TABLE["contexts"], pa.list_(pa.binary()))})


def _write_parquet(_: Path) -> str:
    pq.write_table(BINARY, "binary.parquet")
    return "binary.parquet"


def _write_folder(folder: Path) -> str:
    (folder / "parts").mkdir()
    pq.write_table(BINARY, folder / "parts" / "0.parquet")
    return "parts"


@each(
    "provide",
    [
        _write_parquet,
        _write_folder,
        lambda _: TABLE,
        lambda _: BINARY.to_pylist(),
        lambda _: {name: BINARY[name] for name in BINARY.column_names},
        lambda _: pd.DataFrame(TABLE),
        lambda _: BINARY.to_pandas(),
        lambda _: iter(BINARY.to_pylist()),
    ],
)
def test_all_sources_of_rows_convert_cells_alike(bare: Path, provide: Callable[[Path], Any]) -> None:
    """Hive, Impala and Spark write texts as binary columns."""
    exchange = read(provide(bare))

    assert (exchange.question, exchange.answer, exchange.id) == ("Can I return shoes?", "30.00", "2026-03-01")
    assert [context.text for context in exchange.contexts] == ["Within thirty days."]
    assert str(exchange.attributes["paid"]).startswith("2026-03-01 12:00:00")


def test_lists_and_conversations_in_binary_columns_are_parsed() -> None:
    """The text of the bytes is read like any other text."""
    talk = [{"role": "user", "content": "Hello"}, {"role": "user", "content": "How much?"}]
    exchange = read([{"user_input": json.dumps(talk).encode(), "response": b"3", "contexts": b'["one", "two"]'}])

    assert (exchange.question, exchange.history) == ("How much?", (Message("user", "Hello"),))
    assert [context.text for context in exchange.contexts] == ["one", "two"]


def contexts_of(cell: str) -> list[str]:
    """Return the contexts that a cell of a CSV file contains."""
    return [context.text for context in read([{**ROW, "contexts": cell}]).contexts]


def _array(texts: list[str]) -> Any:
    array = np.empty(len(texts), dtype=object)
    array[:] = texts
    return array


WRITTEN: list[Callable[[list[str]], str]] = [
    str,
    json.dumps,
    lambda texts: str(tuple(texts)),
    lambda texts: str(_array(texts)),
    lambda texts: repr(_array(texts)),
    lambda texts: str(np.array(texts)) if texts and "\0" not in "".join(texts) else str(texts),
    lambda texts: str(deque(texts)),
    lambda texts: str(deque(texts, maxlen=50)),
    lambda texts: str(dict.fromkeys(texts).keys()) if len(set(texts)) == len(texts) else str(texts),
    lambda texts: str([np.str_(text) for text in texts]),
    lambda texts: str([text.encode() for text in texts]),
    lambda texts: str([{"page_content": text, "score": 0.5} for text in texts]),
    lambda texts: str(_array([{"text": text, "id": None} for text in texts])),  # type: ignore[misc]  # not texts
]


@given(st.lists(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=12), max_size=4))
def test_lists_of_any_kind_keep_their_items(texts: list[str]) -> None:
    """Whatever writes them: Python's own containers, NumPy, or JSON."""
    for write in WRITTEN:
        assert contexts_of(write(texts)) == texts, write(texts)


@given(st.lists(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=12), max_size=4))
def test_sets_keep_their_items(texts: list[str]) -> None:
    """The order of a set is the one in which it is written."""
    for given_set in (set(texts), frozenset(texts)):
        assert contexts_of(str(given_set)) == list(given_set)


@each(
    ("cell", "texts"),
    [
        ("['he did it' 'on monday']", ["he did it", "on monday"]),
        ("['he did it'\n \"it's monday\"]", ["he did it", "it's monday"]),
        ("['a', 'b' 'c']", ["a", "b", "c"]),
        ("  ['a' 'b']\n", ["a", "b"]),
        ("['a' None 'b' nan]", ["a", "b"]),
        ("[1 2.5]", ["1", "2.5"]),
        ("{1, 2}", ["1", "2"]),
        ("array(['a', 'b'], dtype='<U1')", ["a", "b"]),
        ("np.array(['a', 'b'])", ["a", "b"]),
        ("Index(['a', 'b'], dtype='object')", ["a", "b"]),
        ("[{'text': 'a'} {'text': 'b'}]", ["a", "b"]),
        ("[np.str_('a'), np.float64(nan), np.int64(-3)]", ["a", "-3"]),
        (str(OrderedDict.fromkeys(["a", "b"]).keys()), ["a", "b"]),
        ("('a',)", ["a"]),
        ("()", []),
        ("array([], dtype=object)", []),
    ],
)
def test_lists_that_data_frames_write_to_csv_are_parsed(cell: str, texts: list[str]) -> None:
    """NumPy omits the commas: without them, Python would join the texts to one that nobody retrieved."""
    assert contexts_of(cell) == texts


@each(
    "cell",
    [
        "Document(page_content='a', metadata={'source': 'b'})",
        "[Document(page_content='a'), Document(page_content='b')]",
        "[Document(metadata={}, page_content='a')\n Document(metadata={}, page_content='b')]",
        "(Document(page_content='a'),)",
        "page_content='a' metadata={'source': 'b'}",
        "[NodeWithScore(node=TextNode(id_='7', kind=<ObjectType.TEXT: '1'>, text='a'), score=0.5)]",
        "[<app.Document object at 0x7f2a>, <app.Document object at 0x7f2b>]",
        "<app.Document object at 0x7f2a>",
        "[ScoredPoint(id=1, score=0.5, payload={'text': 'a'})]",
        "[{'text': 'a', 'at': datetime.date(2026, 3, 1)}]",
        "['a' 'b' ... 'y' 'z']",
        "array(['a', 'b', ..., 'y', 'z'], dtype=object)",
        "[UUID('00000000-0000-0000-0000-000000000007')]",
        "[PosixPath('a.txt'), 'b']",
        "[True, 'a']",
        "[['a' 'b']\n ['c' 'd']]",
        "[b'\\xff']",
        str(pd.Series(["a", "b"])),
        str(pd.Series(["a", "b"], name="c")),
        repr(pd.array(["a", "b"], dtype="string")),
        "['a', 'b",
        '["a", "b", "c',
        '[{"text": "a"}, {"text": "b',
        "['it's broken']",
        "['a\nb' 'c']",
    ],
)
def test_representations_of_objects_are_errors(cell: str) -> None:
    """A class name and brackets are not what was retrieved. The error names the row and the column."""
    with pytest.raises(UsageError, match=r"row 0 has .* context"):
        contexts_of(cell)


def _plain_texts() -> Iterable[str]:
    yield from ("[1] Returns are free.", "(see page 3) Returns are free.", "[citation needed]", "(returns)", "(1)")
    yield from ("[Note]", "[a, b]", "[see 'Returns' below]", "(e.g. 'a')", "('a text in parentheses')", "[f(x)]")
    yield from ("{name} is free", "{price: 3}", '{"price": 3}', "(a) first (b) second", "['a'] ['b']", "f(x)")
    yield from (
        "print('hello')",
        "Returns (free)",
        "<p>Returns are free.</p>",
        "[link](page.html)",
        "sorted(['a', 'b'])",
    )
    yield from ("Client(key='a') opens a client.", "int main() { return 0; }", "[" * 500, "(" * 500 + ")" * 500, "(\0)")
    yield from ("text='a' is an attribute", "[see <b: c> below]", "<div>\n[a]</div>", "[x + 1]", "[i for i in x]")


@each("text", list(_plain_texts()))
def test_plain_text_with_brackets_stays_text(text: str) -> None:
    """Only what is a list or an object as a whole is read as one."""
    assert contexts_of(text) == [text.replace("\0", "\ufffd")]
