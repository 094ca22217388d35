"""`germane export` and `germane import`: what leaves a database comes back as it was, once."""

from __future__ import annotations

import csv
import json
import os
import subprocess
import sys
import unicodedata
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.cli.conftest import an_exchange, write

from germane.annotation import Feedback, Mark, Recorded
from germane.errors import UsageError
from germane.exchange import Context, Turn
from germane.sanitize import cell
from germane.score import Reason
from germane.storage import Decision, Record, Selection, Store, dumped, read
from germane.storage.db.sanitize import clean
from germane.storage.transfer.record import COLUMNS

Call = Callable[..., Any]
NASTY = '=HYPERLINK("http://evil")\n<script>\u202e\0 "quoted", with; commas'


@pytest.fixture
def full(database_url: str) -> Iterator[Store]:
    """A database of either kind with one of everything in it."""
    with closing(Store(database_url)) as store:
        store.migrate()
        write(store, [0.9, 0.2, Reason.JUDGE_TIMEOUT], details={"questions": [{"text": NASTY, "similarity": 0.5}]})
        write(store, [0.4], fingerprint="f2", route="docs", embedder="mini", contexts=(Context(NASTY, "c1", 0.7),))
        write(store, [0.7], scorer="faithfulness", history=(Turn("user", "Hello"),), attributes={"tenant": "ä", "n": 3})
        (labelled, skipped, waiting, _) = exchanges = [an_exchange(question=NASTY, route="docs") for _ in range(4)]
        store.add(exchanges)
        store.assign([Decision(labelled.id, 0.25, "drawn"), Decision(waiting.id, 0.5, "drawn")], {"late": "f1"})
        store.assign([Decision(skipped.id, 0.25, "not_drawn", {"late": Reason.NOT_DRAWN})], {"late": "f1"})
        now = datetime.now(UTC)
        store.record([Recorded(exchange_id=labelled.id, name="mine", value=0.5, recorded_at=now)])
        store.add_feedback([Feedback(id="l1", exchange_id=labelled.id, score=0.0, comment=NASTY, created_at=now)])
        store.count_dropped({("shop", "ask"): 7}, ["answer_relevancy"])
        store.add_marks([Mark(id="m1", name=NASTY, service="shop", at=now, attributes={"by": NASTY, "n": [1]})])
        yield store


@pytest.fixture
def url(database_url: str, tmp_path: Path, request: pytest.FixtureRequest) -> str:
    """An empty database of the other kind, with tables."""
    if database_url.startswith("sqlite"):
        server = request.getfixturevalue("postgresql")
        url: str = server.url(server.create())
    else:
        url = f"sqlite:///{tmp_path / 'other.db'}"
    with closing(Store(url)) as store:
        store.migrate()
    return url


def told(store: Store) -> dict[str, Any]:
    """Return all that people read of a database."""
    since = datetime.now(UTC) - timedelta(days=1)
    until = since + timedelta(days=2)
    bucket = timedelta(hours=24)
    return {
        "summary": store.summary(),
        "coverage": store.coverage(),
        "trend": [store.trend(scorer=name, bucket=bucket, since=since, until=until) for name in _SCORERS],
        "worst": store.worst(limit=100),
        "exchanges": sorted(store.exchanges(), key=lambda one: one.id),
        "feedback": store.feedback(),
        "marks": store.marks(),
        "outstanding": store.outstanding(),
        "counts": replace(store.counts(), oldest_pending_at=None),
        "unsampled": store.unsampled(10),
    }


_SCORERS = ("answer_relevancy", "faithfulness", "late", "mine")


def test_what_was_exported_comes_back_once(
    call: Call, full: Store, url: str, database_url: str, tmp_path: Path
) -> None:
    """Trend, summary, coverage, worst answers and what waits are equal on the other kind of database, twice over."""
    file = str(tmp_path / "all.jsonl")
    assert call("export", file, "--database", database_url).err == f"9 exchanges in {file}\n"
    first = call("import", file, "--database", url)
    again = call("import", file, "--database", url)
    home = call("import", file, "--database", database_url)

    assert first.out == "exchanges read: 9, of them new: 9; new tasks: 9\n"
    assert again.out == home.out == "exchanges read: 9, of them new: 0; new tasks: 0\n"
    with closing(Store(url)) as other:
        assert told(other) == told(full)
        assert [one.seen for one in other.coverage() if one.scorer == "answer_relevancy" and one.route == "ask"] == [10]
    assert not list(tmp_path.glob("*.part"))


def test_the_tally_holds_after_an_import(call: Call, full: Store, url: str, database_url: str, tmp_path: Path) -> None:
    """Of every route and scorer, seen is what was scored, skipped, failed or is pending."""
    call("export", str(tmp_path / "all.jsonl"), "--database", database_url)
    call("import", str(tmp_path / "all.jsonl"), "--database", url)
    with closing(Store(url)) as other:
        covered = other.coverage()

    assert covered
    for one in covered:
        assert one.seen == one.scored + sum(one.skipped.values()) + sum(one.failed.values()) + one.pending


def test_a_pipe_takes_it_over(full: Store, url: str, database_url: str) -> None:
    """Without a file it is written to stdout, and read from stdin where the file is a dash."""
    germane = [sys.executable, "-m", "germane"]
    exported = subprocess.run([*germane, "export", "--database", database_url], capture_output=True, check=True)
    command = [*germane, "import", "-", "--database", url]
    imported = subprocess.run(command, input=exported.stdout, capture_output=True, check=True)

    assert imported.stdout == b"exchanges read: 9, of them new: 9; new tasks: 9\n"


def test_an_export_may_be_a_part(call: Call, database: str, store: Store, tmp_path: Path) -> None:
    """Of a time, a route or a scorer: nothing else is in the file."""
    now = datetime.now(UTC)
    write(store, [0.1], route="old", started_at=now - timedelta(days=3))
    write(store, [0.2], route="docs")
    write(store, [0.3], scorer="faithfulness")
    chosen: dict[str, list[str]] = {}
    for arguments in (["--since", "1d"], ["--until", "1d"], ["--route", "docs"], ["--scorer", "faithfulness"]):
        call("export", str(tmp_path / "part.jsonl"), *arguments)
        lines = (tmp_path / "part.jsonl").read_text().splitlines()
        chosen[arguments[0]] = [str(score["value"]) for line in lines for score in json.loads(line)["scores"]]

    assert {name: sorted(values) for name, values in chosen.items()} == {
        "--since": ["0.2", "0.3"],
        "--until": ["0.1"],
        "--route": ["0.2"],
        "--scorer": ["0.3"],
    }


def test_pages_leave_nothing_out(store: Store) -> None:
    """Exchanges of one moment that lie on two pages are each there once."""
    moment = datetime.now(UTC)
    exchanges = [an_exchange(started_at=moment + timedelta(seconds=number // 4)) for number in range(20)]
    store.add(exchanges)
    found, page = list[str](), store.records(Selection(), limit=3)
    while page:
        found += [record.exchange["id"] for record in page]
        page = store.records(Selection(), after=page[-1], limit=3)

    assert sorted(found) == sorted(exchange.id for exchange in exchanges)


def test_a_broken_line_is_told_by_its_number(call: Call, database: str, store: Store, tmp_path: Path) -> None:
    """Nothing from it on comes in, unless broken lines are to be left out; mended, the file is imported whole."""
    write(store, [0.1, 0.2, 0.3])
    file, other = tmp_path / "all.jsonl", f"sqlite:///{tmp_path / 'other.db'}"
    call("export", str(file))
    call("db", "upgrade", "--database", other)
    lines = file.read_text().splitlines()
    broken = json.loads(lines[1])
    broken["exchange"]["draw"] = 2
    file.write_text("\n".join([lines[0], json.dumps(broken), lines[2]]))
    refused = call("import", str(file), "--database", other)
    with closing(Store(other)) as target:
        assert target.counts().captured == 1
    skipped = call("import", str(file), "--skip-bad", "--database", other)
    file.write_text("\n".join(lines))

    why = f"{file}, line 2 exchange.draw = 2.0 is not above 0 and at most 1"
    assert (refused.code, refused.out) == (1, "")
    assert refused.err.startswith(f"germane: {why}. ")
    assert (skipped.code, skipped.err) == (0, f"left out: {why}\n")
    assert skipped.out == "exchanges read: 2, of them new: 1; new tasks: 1\n"
    assert call("import", str(file), "--database", other).out == "exchanges read: 3, of them new: 1; new tasks: 1\n"


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"version": 2}, "is of version 2"),
        ({"exchange": None}, "has no exchange"),
        ({"more": 1}, "holds 'more'"),
        ({"tasks": 1}, "tasks is no list"),
        ({"exchange": {"id": ""}}, "exchange.id is empty"),
        ({"exchange": {"id": 3}}, "exchange.id = 3 is not text"),
        ({"exchange": {"id": "x" * 501}}, "exchange.id is longer than 500 characters"),
        ({"exchange": {"started_at": "2026-01-01T00:00:00"}}, "exchange.started_at .* its zone"),
        ({"exchange": {"started_at": "0001-01-01T00:00:00Z"}}, "exchange.started_at .* after 1969"),
        ({"exchange": {"started_at": "9999-12-31T23:59:59Z"}}, "exchange.started_at .* after 1969"),
        ({"exchange": {"duration": "long"}}, "exchange.duration = 'long' is not a finite number"),
        ({"exchange": {"contexts": ["text"]}}, "exchange.contexts is no list of objects"),
        ({"exchange": {"history": [{}]}}, "exchange.history is no list of objects"),
        ({"exchange": {"attributes": []}}, "exchange.attributes = .* is not JSON"),
        ({"exchange": {"secret": 1}}, "exchange.secret is nothing that this germane knows"),
        ({"task": {"state": "lost"}}, "task.state = 'lost' is none of"),
        ({"task": {"state": "failed", "reason": "not_drawn"}}, "task.reason = 'not_drawn' is no reason"),
        ({"task": {"state": "pending"}}, "has a score without a task that is done"),
        ({"task": {"state": "pending"}, "scores": []}, "pending and no moment from which"),
        ({"task": {"attempts": 2**31}}, "task.attempts = 2147483648 is not a whole number from 0"),
        ({"task": {"attempts": -1}}, "task.attempts = -1 is not a whole number from 0"),
        ({"exchange": {"sampling_probability": 1e-300}}, "exchange.sampling_probability = 1e-300 is not from 1e-12 to"),
        ({"exchange": {"capture_probability": -0.5}}, "exchange.capture_probability = -0.5 is not from 1e-12 to 1"),
        ({"exchange": {"proxy_probability": float("nan")}}, "proxy_probability = nan is not a finite number"),
        ({"score": {"sampling_probability": 0}}, "score.sampling_probability = 0.0 is not from 1e-12 to 1"),
        ({"score": {"value": 7}}, "score.value = 7.0 is not from -1 to 1"),
        ({"score": {"input_tokens": 2**62}}, "score.input_tokens = .* is not a whole number from 0"),
        ({"feedback": [{"id": "l1", "score": 2, "created_at": "2026-01-01T00:00:00Z"}]}, "feedback.score = 2.0 is not"),
    ],
)
def test_what_no_export_holds_is_refused(change: dict[str, Any], why: str, store: Store) -> None:
    """Each line is looked at before anything of it is written, and the error says what is wrong with it."""
    write(store, [0.5])
    line = json.loads(dumped(store.records(Selection())[0]))
    for name, value in change.items():
        if name in {"task", "score"}:
            line[f"{name}s"][0] |= value
        else:
            line[name] = line[name] | value if isinstance(value, dict) else value
    with pytest.raises(UsageError, match=why):
        read(json.dumps(line))


@pytest.mark.parametrize("count", [-1, 2**31, 2**62, True, "7"])
def test_counts_that_nobody_counted_are_refused(count: Any) -> None:
    """A sum of them would fit into no number; nor is a count of what has rows of its own taken."""
    names = {"minute": "2026-01-01T00:00:00Z", "service": "s", "route": "r", "scorer": "", "process": "p"}
    with pytest.raises(UsageError, match="in no form that an export has"):
        read(json.dumps({"version": 1, "dropped": {**names, "reason": "queue_full", "count": count}}))
    with pytest.raises(UsageError, match="in no form that an export has"):
        read(json.dumps({"version": 1, "dropped": {**names, "reason": "not_drawn", "count": 7}}))


@pytest.mark.parametrize(
    "change",
    [{"id": ""}, {"name": 7}, {"name": "x" * 501}, {"service": None}, {"at": "2026-03-01"}, {"at": 7},
     {"attributes": []}, {"attributes": "x"}],
)  # fmt: skip
def test_marks_that_nobody_made_are_refused(change: dict[str, Any]) -> None:
    """In one sentence, whatever is wrong with them; what is whole is read."""
    whole = {"id": "m1", "name": "v1", "service": "shop", "at": "2026-03-01T12:00:00+00:00", "attributes": {"n": 1}}

    assert read(json.dumps({"version": 1, "mark": whole})) == Mark(
        **whole | {"at": datetime(2026, 3, 1, 12, tzinfo=UTC)}  # type: ignore[arg-type]  # the right ones
    )
    for wrong in (whole | change, change, [], None):
        with pytest.raises(UsageError, match="mark in no form"):
            read(json.dumps({"version": 1, "mark": wrong}))


def test_a_file_that_says_things_twice_counts_them_once(full: Store, url: str) -> None:
    """Lines that come again, in one transaction too, and tasks that stand twice in a line."""
    lines = [json.loads(dumped(record)) for record in full.records(Selection())]
    twice = [read(json.dumps(line | {"tasks": line.get("tasks", []) * 2})) for line in lines * 2]
    with closing(Store(url)) as other:
        restored = other.restore([one for one in twice if isinstance(one, Record)])
        seen = {(one.scorer, one.route): one.seen for one in other.coverage()}

    dropped = {("answer_relevancy", "ask"): 7}
    assert (restored.exchanges, restored.tasks) == (9, 9)
    assert seen == {key: one.seen - dropped.get(key, 0) for one in full.coverage() for key in [(one.scorer, one.route)]}


def test_a_file_says_nothing_new_of_an_exchange_that_is_here(store: Store) -> None:
    """Its route, service and moment count, whatever a stranger's file says; and what was erased does not come back."""
    write(store, [0.5])
    store.prune(texts_before=datetime.now(UTC))
    (before,) = store.records(Selection())
    score = {**before.scores[0], "scorer": "theirs", "explanation": "A text.", "details": {"n": 1, "quote": "A text."}}
    claims = {"route": "other", "service": "theirs", "question": "?", "started_at": datetime(2020, 1, 1, tzinfo=UTC)}
    foreign = Record({**before.exchange, **claims}, [{**before.tasks[0], "scorer": "theirs"}], [score])

    assert store.restore([foreign]).tasks == 1
    (after,) = store.records(Selection())
    theirs = next(one for one in after.scores if one["scorer"] == "theirs")
    assert after.exchange == before.exchange
    assert (theirs["explanation"], theirs["details"]) == (None, {"n": 1})
    assert {(one.service, one.route) for one in store.coverage()} == {("shop", "ask")}


@given(st.text())
def test_no_line_holds_what_a_terminal_obeys(text: str) -> None:
    """`germane export | head` at a terminal; and each line is one, wherever lines are looked for."""
    line = dumped(Record({"id": "e", "question": text + "\x9b31m\u202e\u2028\x7f"}))
    assert not any(unicodedata.category(one) in {"Cc", "Zl", "Zp"} or one in "\u202a\u202e\u2066" for one in line)
    assert json.loads(line)["exchange"]["question"] == clean(text + "\x9b31m\u202e\u2028\x7f")


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)


@settings(max_examples=50)
@given(data=st.data())
def test_whatever_a_line_holds_it_is_read_or_refused(data: st.DataObject) -> None:
    """Any value in any place of a line ends in a record that can be dumped again, or in one sentence."""
    line = {"version": 1, "exchange": {"id": "e1"}, "tasks": [{"scorer": "a"}], "scores": [], "feedback": []}
    columns = {"exchange": COLUMNS["exchange"], "tasks": COLUMNS["task"], "scores": COLUMNS["score"]}
    for part, known in columns.items():
        drawn = {column.name: data.draw(_JSON) for column in known if data.draw(st.booleans())}
        line[part] = drawn if part == "exchange" else [drawn]
    with suppress(UsageError):
        found = read(json.dumps(line))
        assert dumped(read(dumped(found))) == dumped(found)


def test_what_a_line_says_is_what_was_dumped(full: Store) -> None:
    """A line that is read and dumped again is the same line."""
    for record in full.records(Selection()):
        again = read(dumped(record))
        assert isinstance(again, Record)
        assert dumped(again) == dumped(record)


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_a_flat_export_has_the_rows_of_the_view(
    kind: str, call: Call, database: str, store: Store, tmp_path: Path
) -> None:
    """One for each exchange and scorer, with the same fingerprint, state and weight as in the view `answers`."""
    if kind == "parquet":
        pytest.importorskip("pyarrow", reason="needs germane[pandas]")
    write(store, [0.9, Reason.JUDGE_TIMEOUT])
    write(store, [0.4], fingerprint="f2", route="docs")
    store.add([an_exchange()])  # nobody has decided on it: it has no row
    file = tmp_path / f"flat.{kind}"
    assert call("export", str(file)).err == f"3 rows of 4 exchanges in {file}\n"
    with store._database.read() as connection:
        view = [dict(row) for row in connection.exec_driver_sql("SELECT * FROM answers").mappings()]
    rows = _read(file)

    assert len(rows) == len(view) == 3
    texts = ("exchange_id", "route", "scorer", "fingerprint", "state", "reason", "label", "question")
    assert sorted([row[name] or "" for name in texts] for row in rows) == sorted(
        [row[name] or "" for name in texts] for row in view
    )
    assert sorted(float(row["weight"]) for row in rows) == [1.0, 1.0, 1.0]
    assert sorted(float(row["value"]) for row in rows if row["value"] not in {"", None}) == [0.4, 0.9]


def _read(file: Path) -> list[dict[str, Any]]:
    if file.suffix == ".csv":
        with file.open(newline="") as lines:
            return list(csv.DictReader(lines))
    import pyarrow.parquet  # type: ignore[import-untyped]  # it has no types

    rows: list[dict[str, Any]] = pyarrow.parquet.read_table(file).to_pylist()
    return rows


def test_no_cell_of_csv_is_a_formula(call: Call, database: str, store: Store, tmp_path: Path) -> None:
    """What a visitor asks may begin with anything; a spreadsheet shows it, and computes nothing."""
    write(store, [0.5], question="=1+1", answer="@SUM(A1)")
    call("export", str(tmp_path / "flat.csv"))
    (row,) = _read(tmp_path / "flat.csv")

    assert (row["question"], row["answer"], row["value"]) == ("'=1+1", "'@SUM(A1)", "0.5")


@given(st.text(st.characters() | st.sampled_from("=\t\x1b\x9b\u202e ")))
def test_a_cell_never_begins_as_a_formula(text: str) -> None:
    """Whatever blanks stand before it; other text stays as it is, but for what a terminal would obey."""
    shown = cell(text)
    obeyed = {one for one in text if unicodedata.category(one) == "Cc"} - set("\t\n\r") | {"\u202d", "\u202e"}
    seen = "".join("\ufffd" if one in obeyed else one for one in text)
    assert shown.lstrip(" \n")[:1] not in set("=+-@\t\r")
    assert shown in {seen, f"'{seen}"}


@pytest.mark.parametrize("before", [" ", "\n", "\ufeff", "\u200b", "\u2066", "\u00a0", "\u2028 "])
def test_what_is_not_seen_does_not_hide_a_formula(before: str) -> None:
    """A program that drops it would compute what follows."""
    assert cell(f"{before}=1+1").startswith("'")


def test_a_data_set_comes_in_to_be_scored(call: Call, database: str, store: Store, tmp_path: Path) -> None:
    """Each row is a new exchange that waits for the sampler; a flat export is refused, as it lacks half of what was."""
    rows = tmp_path / "faq.csv"
    rows.write_text('id,question,answer,contexts\nr1,How?,So.,"[""one"", ""two""]"\nr2,Why?,Therefore.,[]\n')
    ended = call("import", str(rows))
    again = call("import", str(rows))
    found = {one.id: one for one in store.unsampled(10)}
    write(store, [0.5])
    call("export", str(tmp_path / "flat.csv"))
    flat = call("import", str(tmp_path / "flat.csv"))

    assert (ended.code, ended.out) == (0, f"exchanges read from {rows}: 2; those that are new wait to be scored\n")
    assert again.code == 0
    assert found.keys() == {"r1", "r2"}
    assert [context.text for context in found["r1"].contexts] == ["one", "two"]
    assert {one.route for one in found.values()} == {"faq"}
    assert 0 < found["r1"].sampling_key < 1
    assert flat.code == 1
    assert "export as JSONL" in flat.err


@pytest.mark.parametrize(("ending", "option"), [("csv", ["--skip-bad"]), ("jsonl", ["--columns", "question=q"])])
def test_an_option_that_changes_nothing_is_refused(
    call: Call, store: Store, tmp_path: Path, ending: str, option: list[str]
) -> None:
    """Broken lines are left out of exports, and columns are named for data sets; else nobody would know."""
    write(store, [0.5])
    file = tmp_path / f"all.{ending}"
    call("export", str(file))

    assert call("import", str(file), *option).code == 2


def test_a_data_set_may_have_versions(call: Call, store: Store, tmp_path: Path) -> None:
    """A column of that name makes no export of it."""
    rows = tmp_path / "faq.jsonl"
    rows.write_text('{"version": 3, "question": "How?", "answer": "So."}\n')
    assert call("import", str(rows)).out == f"exchanges read from {rows}: 1; those that are new wait to be scored\n"
    assert [one.question for one in store.unsampled(10)] == ["How?"]


def test_a_reader_that_goes_away_ends_an_export_quietly(database: str, store: Store) -> None:
    """As with `germane export | head`: no traceback."""
    write(store, [0.5] * 3, question="long " * 40_000)
    command = [sys.executable, "-m", "germane", "export", "-"]
    unbuffered = {**os.environ, "PYTHONUNBUFFERED": "1"}  # as in many containers
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=unbuffered) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.read(10)
        process.stdout.close()
        assert (process.stderr.read(), process.wait(60)) == (b"", 1)


def test_a_full_disk_is_told(database: str, store: Store) -> None:
    """On stdout as in a file: one sentence, no traceback."""
    write(store, [0.5])
    with open("/dev/full", "wb") as disk:  # noqa: PTH123 - it is no file
        command = [sys.executable, "-m", "germane", "export"]
        ended = subprocess.run(command, stdout=disk, stderr=subprocess.PIPE, check=False)
    assert ended.returncode == 1
    assert ended.stderr == b"germane: standard output cannot be written: No space left on device\n"


def test_a_named_pipe_stays_a_pipe(database: str, store: Store, tmp_path: Path) -> None:
    """What is no file is written to, and nothing is put in its place."""
    write(store, [0.5])
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    command = [sys.executable, "-m", "germane", "export", str(pipe), "--format", "jsonl"]
    with subprocess.Popen(command, stderr=subprocess.DEVNULL) as process:
        lines = pipe.read_bytes().splitlines()
        assert process.wait(60) == 0
    assert len(lines) == 1
    assert pipe.is_fifo()


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_a_flat_export_may_go_through_a_pipe(kind: str, database: str, store: Store) -> None:
    """Neither needs a file that it can go back in."""
    if kind == "parquet":
        pytest.importorskip("pyarrow", reason="needs germane[pandas]")
    write(store, [0.5])
    command = [sys.executable, "-m", "germane", "export", "--format", kind]
    ended = subprocess.run(command, capture_output=True, check=True)

    assert ended.stdout.startswith(b"PAR1" if kind == "parquet" else b"exchange_id,trace_id,")
