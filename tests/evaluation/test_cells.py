"""Cells that are not text, and lists that were written as text."""

from __future__ import annotations

import datetime as dt
import json
import uuid
from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from decimal import Decimal
from enum import Enum
from fractions import Fraction
from pathlib import Path, PurePosixPath
from types import SimpleNamespace
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
from germane.exchange import Context, Exchange, Message

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


TEXTS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=12).filter(
    lambda text: text.strip()[-1:] not in "])}>" and text.strip() not in {"None", "nan", "NaN", "sNaN", "NaT", "null"}
)
"""Texts that represent neither a list, an object nor a missing value."""
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


@given(st.lists(TEXTS, max_size=4))
def test_lists_of_any_kind_keep_their_items(texts: list[str]) -> None:
    """Whatever writes them: Python's own containers, NumPy, or JSON."""
    for write in WRITTEN:
        assert contexts_of(write(texts)) == texts, write(texts)


@given(st.lists(TEXTS, max_size=4))
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
        "[<app.Document object at 0x7f2a>, <app.Document object at 0x7f2b>]",
        "<app.Document object at 0x7f2a>",
        "[ScoredPoint(id=1, score=0.5, payload={'text': 'a'})]",
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
        str(pd.Categorical(["a", "b"])),
        repr(pa.array(["a", "b"])),
        str(Counter(["a"])),
        repr(defaultdict(list, a=["b"])),
        str(SimpleNamespace(title="a")),
        str(bytearray(b"a")),
        str(object()),
        str(print),
        str(contexts_of),
        str(lambda: 1),
        str(each),
        str(letter for letter in "a"),
        str(b"a"),
        str(Verdict),
        repr(Verdict.YES),
        "<Response [200]>",
        "<QuerySet [<Document: Document object (1)>]>",
        "Document(page_content='Returns are f",
        "Document(page_content='a', metadata={'source': 'b",
        "page_content='Returns are f",
        "page_content='a' metadata={'source': 'b",
        "{'text': 'a",
        '{"text": "a',
        "{'title': 'a'}",
        "Document(id=0a1b2c, content: 'a', meta: {}, score: 0.9)",
        "Document(text='a', content='b')",
        "Document(title='a')",
        "Document(text=['a'])",
        "[Document('a')]",
        "nan",
        "None",
        " NaN ",
        "<NA>",
        "null",
    ],
)
def test_representations_of_objects_are_errors(cell: str) -> None:
    """A class name and brackets are not what was said. The error names the row and the column, also within a list."""
    for column, name in (("contexts", "context"), ("question", "question"), ("answer", "answer")):
        with pytest.raises(UsageError, match=rf"row 1 has .* (?:{name}|message)"):
            list(read_rows([ROW, {**ROW, column: cell}]))
    with pytest.raises(UsageError, match=r"row 0 has .* context"):
        read([{**ROW, "contexts": ["a", cell]}])


TEXT = "It's <b: 1> \"free\" \\ (today)\n['a']"


def _documents() -> Iterable[str]:
    @dataclass
    class Document:
        page_content: str
        metadata: dict[str, Any]
        id: Any = None

    plain = Document(TEXT, {"at": NOON, "day": DAY, "id": ID, "price": Decimal(3), "path": PurePosixPath("a")})
    other = Document(TEXT, {"kind": Verdict.YES, "source": object(), "type": str, "when": pd.Timestamp(NOON)})
    yield from map(str, (plain, other, SimpleNamespace(text=TEXT), {"text": TEXT, "at": DAY}, {"text": TEXT}))
    yield f"AIMessage(content={TEXT!r}, additional_kwargs={{}}, response_metadata={{'model': 'x'}}, id='run-1')"
    yield f"content={TEXT!r} additional_kwargs={{}} response_metadata={{}}"
    yield f"page_content={TEXT!r} metadata={{'source': <app.Source object at 0x7f2a>}}"
    yield f"langchain_core.documents.base.Document(metadata={{'tags': array(['a', 'b'], dtype=object)}}, text={TEXT!r})"
    yield f"Document(text={TEXT!r}, content='')"
    yield json.dumps({"content": TEXT})
    yield repr(np.str_(TEXT))
    yield repr(defaultdict(list, text=TEXT))


@each("cell", list(_documents()))
def test_the_text_of_an_object_is_read_wherever_a_text_is_expected(cell: str) -> None:
    """Data frames write documents and messages to CSV in this form."""
    exchange = read([{"question": cell, "answer": cell, "contexts": cell}])
    several = read([{**ROW, "contexts": [cell, "b"]}, ROW])

    assert (exchange.question, exchange.answer) == (TEXT, TEXT)
    assert [context.text for context in exchange.contexts] == [TEXT]
    assert [context.text for context in several.contexts] == [TEXT, "b"]
    assert contexts_of(str([cell, cell])) == [TEXT, TEXT]
    assert cell.startswith(("content=", "page_content=")) or contexts_of(f"[{cell}, {cell}]") == [TEXT, TEXT]


def test_scalars_in_representations_are_read_like_scalar_cells() -> None:
    """The id of a document may be a UUID, and an answer a decimal number or a date."""
    cells = [repr(value) for value in (Decimal("1.50"), DAY, NOON.replace(tzinfo=None), np.float64(2), np.int64(-3))]
    document = f"Document(id={ID!r}, text='a', score={np.float64(0.5)!r})"

    assert [read([{**ROW, "answer": cell}]).answer for cell in cells] == [
        "1.50",
        "2026-03-01",
        "2026-03-01 12:00:00",
        "2.0",
        "-3",
    ]
    assert read([{**ROW, "contexts": document}]).contexts == (Context("a", str(ID), 0.5),)


@each(
    ("contexts", "texts"),
    [
        (["['a' 'b']", "c"], ["a", "b", "c"]),
        (["('a', 'b')", "[]", "{'c'}"], ["a", "b", "c"]),
        (['["a", "b"]'], ["a", "b"]),
        (json.dumps(["['a' 'b']", "{'text': 'c'}"]), ["a", "b", "c"]),
        (["[1]", "[2, 3]"], ["[1]", "[2, 3]"]),
    ],
)
def test_lists_within_a_list_of_contexts_are_parsed(contexts: Any, texts: list[str]) -> None:
    """Each retriever's result may have been written as text. Numbers in brackets are citations."""
    assert [context.text for context in read([{**ROW, "contexts": contexts}]).contexts] == texts


@each("cell", ["['a', 'b']", "('a', 'b')", "['a' 'b']", '["a"]', "array(['a'])", "{'a'}", "[None]"])
def test_a_list_is_neither_a_question_nor_an_answer(cell: str) -> None:
    """Which of its texts was meant is unknown."""
    for column in ("question", "answer"):
        with pytest.raises(UsageError, match=f"row 0 has a list as its {column}"):
            read([{**ROW, column: cell}])


@each(
    "cell",
    [{"a"}, frozenset("a"), iter("a"), (letter for letter in "a"), map(str, [1]), {"a": 1}.keys(), {"a": 1}.values()],
)
@pytest.mark.parametrize("column", ["question", "answer"])
def test_collections_without_an_order_are_no_conversation(cell: Any, column: str) -> None:
    """The last message would be an arbitrary one. An iterator that was read once is empty afterwards."""
    with pytest.raises(UsageError, match=f"row 0 has a {type(cell).__name__} as its {column}"):
        read([{**ROW, column: cell}])


def test_messages_that_were_written_as_text_keep_their_roles() -> None:
    """The classes of messages name the roles. The results of tools may be JSON."""
    talk = "[HumanMessage(content='Hello'), AIMessage(content='{\"a\": 1}'), HumanMessage(content='How much?')]"

    exchange = read([{"question": talk, "answer": "3"}])
    history = read([{**ROW, "history": [{"role": "tool", "content": '{"a": 1}'}, "user: [1]", {"text": b"None"}]}])

    assert (exchange.question, exchange.history) == (
        "How much?",
        (Message("user", "Hello"), Message("assistant", '{"a": 1}')),
    )
    assert history.history == (Message("tool", '{"a": 1}'), Message("user", "[1]"), Message("user", "None"))


def test_replies_in_a_conversation_are_answers_as_they_are() -> None:
    """Unlike a column of a file, a message certainly contains what was said."""
    talk = [{"role": "user", "content": "How much?"}, {"role": "assistant", "content": '{"price": 3}'}]

    assert read([{"question": talk}]).answer == '{"price": 3}'


def _plain_texts() -> Iterable[str]:
    yield from ("[1] Returns are free.", "(see page 3) Returns are free.", "[citation needed]", "(returns)", "(1)")
    yield from ("[Note]", "[a, b]", "[see 'Returns' below]", "(e.g. 'a')", "('a text in parentheses')", "[f(x)]")
    yield from ("{name} is free", "{price: 3}", "(a) first (b) second", "['a'] ['b']", "f(x)")
    yield from (
        "print('hello')",
        "Returns (free)",
        "<p>Returns are free.</p>",
        "[link](page.html)",
        "sorted(['a', 'b'])",
    )
    yield from ("Client(key='a') opens a client.", "int main() { return 0; }", "[" * 500, "(" * 500 + ")" * 500, "(\0)")
    yield from (
        "text='a' is an attribute",
        "[see <b: c> below]",
        "<div>\n[a]</div>",
        "[x + 1]",
        "Returns('free')",
        "Returns(2)",
        "[i for i in x]",
    )
    yield from ("[1] According to Smith (2020)", "[1], [2]", "(1), (2)", "[a][b]", "[a](b) and (c)", "[1](a.html)")
    yield from ("['Returns'](page.html) isn't free", '"Returns are free."', "'Returns' are 'free'", "b'a' is bytes")
    yield from (
        '{"a": 1} isn\'t a [list]',
        "Client(key='a') isn't a client (yet)",
        "[1in] (5in)",
        "(1or 2)",
        "[f'{x}']",
    )
    yield from (
        "<b>[a]</b>",
        "['a'.upper(), 'b']",
        "None of them.",
        "nano",
        "[3 - 1]",
    )
    yield from ("Returns: free\nName: shoes", "[ ] todo", "[x] done", "{{ name }}", "(see 'a', or 'b')")


@each("text", list(_plain_texts()))
def test_plain_text_with_brackets_stays_text(text: str) -> None:
    """Only what is a list or an object as a whole is read as one."""
    exchange, plain = read([{"question": text, "answer": text, "contexts": [text]}]), text.replace("\0", "\ufffd")

    assert contexts_of(text) == [plain]
    assert (exchange.question, exchange.answer, exchange.contexts) == (plain, plain, (Context(plain),))


@given(
    st.sampled_from(["[1] ", "[link](a.html) ", "(a) ", "'Yes' ", '"Yes," ', "{x} ", '["Yes"] ', '{"a": 1} ', "<b> "]),
    st.text(st.characters(codec="ascii", categories=["L", "N", "P", "Zs"]), min_size=1, max_size=30),
    st.sampled_from(["", " (2020)", " [2]", " {y}", " 'no'", ' "no"', " </b>"]),
)
def test_prose_that_begins_or_ends_with_brackets_or_quotes_stays_text(start: str, words: str, end: str) -> None:
    """Citations, links, JSON that is discussed, and quoted sentences are what was said."""
    text = f"{start}means {words}{end}"

    exchange = read([{"question": text, "answer": text, "contexts": [text]}])

    assert (exchange.question, exchange.answer, exchange.contexts) == (text, text, (Context(text),))


@given(st.lists(st.text(min_size=1).filter(str.strip), min_size=1, max_size=4))
def test_lists_of_models_without_the_names_of_their_classes_keep_their_texts(texts: list[str]) -> None:
    """As ``str()`` writes each of them."""
    cell = ", ".join(f"page_content={text!r} metadata={{'source': 'a'}}" for text in texts)

    assert contexts_of(f"[{cell}]") == texts


def test_the_text_of_a_node_in_another_object_is_read() -> None:
    """Metadata is not a node."""
    assert contexts_of("[NodeWithScore(node=TextNode(id_='1', text='one two'), score=0.5)]") == ["one two"]
    with pytest.raises(UsageError, match="without text"):
        contexts_of("[NodeWithScore(metadata={'text': 'one two'}, score=0.5)]")


@pytest.mark.parametrize("kind", ["float16", "float32", "float64"])
def test_numbers_of_numpy_have_their_shortest_form(kind: str) -> None:
    """Conversion to a longer type does not add digits."""
    number = np.dtype(kind).type(0.1)

    assert read([{"question": "Why?", "answer": number, "contexts": ["one"]}]).answer == "0.1"
