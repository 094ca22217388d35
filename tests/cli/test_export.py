"""Tests of `germane export` and `germane import`."""

from __future__ import annotations

import csv
import gc
import json
import os
import re
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
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tests.cases import each
from tests.cli.conftest import an_exchange, write
from tests.exports import dump_record, load_records

from germane import sanitize
from germane.annotation import Feedback, Marker, RecordedScore
from germane.errors import UsageError
from germane.exchange import Context, Message
from germane.sanitize import clean_text
from germane.score import UnscoredReason
from germane.storage import ExportSelection, SamplingDecision, TrackingStore
from germane.storage.transfer.record import COLUMNS, AlertingRow, ExchangeRecord, parse_line
from germane.testing import Clock, transaction

Call = Callable[..., Any]
NASTY = '=HYPERLINK("http://evil")\n<script>\u202e\0 "quoted", with; commas'


DRAW = {
    "wave": "w1", "scorer": "a", "fingerprint": "f", "since": "2026-01-01T00:00:00Z", "until": "2026-01-02T00:00:00Z",
    "drawn_at": "2026-01-02T00:00:00Z", "service": "s", "route": "r", "probability": 0.5, "position": 1,
    "state": "open",
}  # fmt: skip
"""An answer's place in a wave, as in an export."""


@pytest.fixture
def full(database_url: str) -> Iterator[TrackingStore]:
    """A database of either kind with rows of every kind."""
    with closing(TrackingStore(database_url)) as store:
        store.migrate()
        write(
            store, [0.9, 0.2, UnscoredReason.JUDGE_TIMEOUT], details={"questions": [{"text": NASTY, "similarity": 0.5}]}
        )
        write(store, [0.4], fingerprint="f2", route="docs", embedder="mini", contexts=(Context(NASTY, "c1", 0.7),))
        write(
            store, [0.7], scorer="faithfulness", history=(Message("user", "Hello"),), attributes={"tenant": "ä", "n": 3}
        )
        (labelled, skipped, waiting, _) = exchanges = [an_exchange(question=NASTY, route="docs") for _ in range(4)]
        store.exchanges.add(exchanges)
        store.sampling.assign_tasks(
            [SamplingDecision(labelled.id, 0.25, "sampled"), SamplingDecision(waiting.id, 0.5, "sampled")],
            {"late": "f1"},
        )
        store.sampling.assign_tasks(
            [SamplingDecision(skipped.id, 0.25, "not_sampled", {"late": UnscoredReason.NOT_SAMPLED})], {"late": "f1"}
        )
        now = datetime.now(UTC)
        store.exchanges.record_scores([RecordedScore(exchange_id=labelled.id, name="mine", value=0.5, recorded_at=now)])
        store.labels.add_feedback(
            [Feedback(id="l1", exchange_id=labelled.id, score=0.0, comment=NASTY, created_at=now)]
        )
        store.exchanges.count_dropped({("shop", "ask"): 7}, ["answer_relevancy"])
        store.trends.add_markers(
            [Marker(id="m1", name=NASTY, service="shop", at=now, attributes={"by": NASTY, "n": [1]})]
        )
        yield store


@pytest.fixture
def url(database_url: str, tmp_path: Path, request: pytest.FixtureRequest) -> str:
    """An empty database of the other kind, with tables."""
    if database_url.startswith("sqlite"):
        server = request.getfixturevalue("postgresql")
        url: str = server.url(server.create())
    else:
        url = f"sqlite:///{tmp_path / 'other.db'}"
    with closing(TrackingStore(url)) as store:
        store.migrate()
    return url


def visible_data(store: TrackingStore) -> dict[str, Any]:
    """Return everything in a database that commands and pages show."""
    since = datetime.now(UTC) - timedelta(days=1)
    until = since + timedelta(days=2)
    bucket = timedelta(hours=24)
    return {
        "summary": store.trends.summary(),
        "coverage": store.trends.coverage(),
        "trend": [store.trends.over_time(scorer=name, bucket=bucket, since=since, until=until) for name in _SCORERS],
        "worst": store.answers.worst(limit=100),
        "exchanges": sorted(store.answers.list_exchanges(), key=lambda one: one.id),
        "feedback": store.labels.list_feedback(),
        "marks": store.trends.list_markers(),
        "outstanding": store.backlog.load_outstanding(),
        "counts": replace(store.answers.counts(), oldest_pending_at=None),
        "unsampled": store.sampling.list_undecided(10),
    }


_SCORERS = ("answer_relevancy", "faithfulness", "late", "mine")


@pytest.mark.slow
def test_importing_an_export_twice_restores_it_once(
    call: Call, full: TrackingStore, url: str, database_url: str, tmp_path: Path
) -> None:
    """Trends, summaries, coverage, worst answers and backlog are equal on the other kind of database."""
    file = str(tmp_path / "all.jsonl")
    assert call("export", file, "--database", database_url).err == f"Wrote 9 exchanges to {file}.\n"
    first = call("import", file, "--database", url)
    again = call("import", file, "--database", url)
    home = call("import", file, "--database", database_url)

    assert first.out == "exchanges read: 9, new: 9; new tasks: 9\n"
    assert again.out == home.out == "exchanges read: 9, new: 0; new tasks: 0\n"
    with closing(TrackingStore(url)) as other:
        assert visible_data(other) == visible_data(full)
        assert [
            one.seen for one in other.trends.coverage() if one.scorer == "answer_relevancy" and one.route == "ask"
        ] == [10]
    assert not list(tmp_path.glob("*.part"))


def test_counts_are_consistent_after_an_import(
    call: Call, full: TrackingStore, url: str, database_url: str, tmp_path: Path
) -> None:
    """For every route and scorer, seen = scored + skipped + failed + pending."""
    call("export", str(tmp_path / "all.jsonl"), "--database", database_url)
    call("import", str(tmp_path / "all.jsonl"), "--database", url)
    with closing(TrackingStore(url)) as other:
        covered = other.trends.coverage()

    assert covered
    for one in covered:
        assert one.seen == one.scored + sum(one.skipped.values()) + sum(one.failed.values()) + one.pending


@pytest.mark.slow
def test_export_and_import_can_be_connected_by_a_pipe(full: TrackingStore, url: str, database_url: str) -> None:
    """Export writes to standard output by default, and import reads from standard input with a dash."""
    germane = [sys.executable, "-m", "germane"]
    exported = subprocess.run([*germane, "export", "--database", database_url], capture_output=True, check=True)
    command = [*germane, "import", "-", "--database", url]
    imported = subprocess.run(command, input=exported.stdout, capture_output=True, check=True)

    assert imported.stdout == b"exchanges read: 9, new: 9; new tasks: 9\n"


def test_an_export_can_be_filtered(call: Call, database: str, store: TrackingStore, tmp_path: Path) -> None:
    """The export can be filtered by time, route and scorer."""
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


def test_a_paged_export_contains_every_exchange_exactly_once(store: TrackingStore) -> None:
    """This includes exchanges with equal times on two pages."""
    moment = datetime.now(UTC)
    exchanges = [an_exchange(started_at=moment + timedelta(seconds=number // 4)) for number in range(20)]
    store.exchanges.add(exchanges)
    found, page = list[str](), store.transfer.load_stored(ExportSelection(), limit=3)
    while page:
        found += [record.id for record in page]
        page = store.transfer.load_stored(ExportSelection(), after=page[-1], limit=3)

    assert sorted(found) == sorted(exchange.id for exchange in exchanges)


def test_an_invalid_line_is_reported_with_its_number(
    call: Call, database: str, store: TrackingStore, tmp_path: Path
) -> None:
    """The import stops at that line, unless invalid lines are skipped. A corrected file is imported completely."""
    write(store, [0.1, 0.2, 0.3])
    file, other = tmp_path / "all.jsonl", f"sqlite:///{tmp_path / 'other.db'}"
    call("export", str(file))
    call("db", "upgrade", "--database", other)
    lines = file.read_text().splitlines()
    broken = json.loads(lines[1])
    broken["exchange"]["sampling_key"] = 2
    file.write_text("\n".join([lines[0], json.dumps(broken), lines[2]]))
    refused = call("import", str(file), "--database", other)
    with closing(TrackingStore(other)) as target:
        assert target.answers.counts().captured == 1
    skipped = call("import", str(file), "--skip-bad", "--database", other)
    file.write_text("\n".join(lines))

    why = f"{file}, line 2: exchange.sampling_key = 2.0 must be above 0 and at most 1"
    assert (refused.code, refused.out) == (1, "")
    assert refused.err.startswith(f"germane: {why}. ")
    assert (skipped.code, skipped.err) == (0, f"skipped: {why}\n")
    assert skipped.out == "exchanges read: 2, new: 1; new tasks: 1\n"
    assert call("import", str(file), "--database", other).out == "exchanges read: 3, new: 1; new tasks: 1\n"


@pytest.mark.slow
@each(
    ("change", "why"),
    [
        ({"version": 1}, "unsupported version 1: this version of germane reads version 2"),
        ({"version": 3}, "unsupported version 3"),
        ({"exchange": None}, "exchange is missing or not an object"),
        ({"more": 1}, "unknown part 'more'"),
        ({"tasks": 1}, "tasks is not a list"),
        ({"exchange": {"id": ""}}, "exchange.id is empty"),
        ({"exchange": {"id": 3}}, "exchange.id = 3 is not text"),
        ({"exchange": {"id": "x" * 501}}, "exchange.id is longer than 500 characters"),
        ({"exchange": {"started_at": "2026-01-01T00:00:00"}}, "exchange.started_at .* time zone"),
        ({"exchange": {"started_at": "0001-01-01T00:00:00Z"}}, "exchange.started_at .* after 1969"),
        ({"exchange": {"started_at": "9999-12-31T23:59:59Z"}}, "exchange.started_at .* after 1969"),
        ({"exchange": {"duration": "long"}}, "exchange.duration = 'long' is not a finite number"),
        ({"exchange": {"contexts": ["text"]}}, "exchange.contexts is not a list of objects"),
        ({"exchange": {"history": [{}]}}, "exchange.history is not a list of objects"),
        ({"exchange": {"attributes": []}}, "exchange.attributes = .* is not an object"),
        ({"exchange": {"secret": 1}}, "unknown column exchange.secret"),
        ({"task": {"state": "lost"}}, "task.state = 'lost' is not one of"),
        ({"task": {"state": "failed", "reason": "not_sampled"}}, "task.reason = 'not_sampled' is not a reason"),
        ({"task": {"state": "pending"}}, "a score has no matching task in state 'done'"),
        ({"task": {"state": "pending"}, "scores": []}, "a pending task has no due_at"),
        ({"task": {"claims": 2**31}}, "task.claims = 2147483648 is not an integer from 0"),
        ({"task": {"claims": -1}}, "task.claims = -1 is not an integer from 0"),
        ({"exchange": {"sampling_probability": 1e-300}}, "exchange.sampling_probability = 1e-300 must be from 1e-12"),
        ({"exchange": {"capture_probability": -0.5}}, "exchange.capture_probability = -0.5 must be from 1e-12 to 1"),
        ({"exchange": {"proxy_probability": float("nan")}}, "proxy_probability = nan is not a finite number"),
        ({"score": {"sampling_probability": 0}}, "score.sampling_probability = 0.0 must be from 1e-12 to 1"),
        ({"score": {"value": 7}}, "score.value = 7.0 must be from -1 to 1"),
        ({"score": {"input_tokens": 2**62}}, "score.input_tokens = .* is not an integer from 0"),
        (
            {"feedback": [{"id": "l1", "score": 2, "created_at": "2026-01-01T00:00:00Z"}]},
            "feedback.score = 2.0 must be from 0 to 1",
        ),
        ({"draws": [{**DRAW, "probability": 0}]}, "draw.probability = 0.0 must be from 1e-12 to 1"),
        ({"draws": [{**DRAW, "state": "lost"}]}, "draw.state = 'lost' is not a state of a drawn answer"),
        ({"draws": [{**DRAW, "exchange_id": "other"}]}, "unknown column draw.exchange_id"),
    ],
)
def test_invalid_content_of_an_export_is_rejected(change: dict[str, Any], why: str, store: TrackingStore) -> None:
    """Lines are checked before anything is written."""
    write(store, [0.5])
    line = json.loads(store.transfer.load_stored(ExportSelection())[0].dump())
    for name, value in change.items():
        if name in {"task", "score"}:
            line[f"{name}s"][0] |= value
        else:
            line[name] = line[name] | value if isinstance(value, dict) else value
    with pytest.raises(UsageError, match=why):
        parse_line(json.dumps(line))


@each("count", [-1, 2**31, 2**62, True, "7"])
def test_invalid_counts_in_an_export_are_rejected(count: Any) -> None:
    """Sums could overflow, and exchanges that have rows would be counted twice."""
    names = {"minute": "2026-01-01T00:00:00Z", "service": "s", "route": "r", "scorer": "", "process": "p"}
    with pytest.raises(UsageError, match="invalid count of dropped exchanges"):
        parse_line(json.dumps({"version": 2, "dropped": {**names, "reason": "queue_full", "count": count}}))
    with pytest.raises(UsageError, match="invalid count of dropped exchanges"):
        parse_line(json.dumps({"version": 2, "dropped": {**names, "reason": "not_sampled", "count": 7}}))


@each(
    "change",
    [{"id": ""}, {"name": 7}, {"name": "x" * 501}, {"service": None}, {"at": "2026-03-01"}, {"at": 7},
     {"attributes": []}, {"attributes": "x"}],
)  # fmt: skip
def test_invalid_markers_in_an_export_are_rejected(change: dict[str, Any]) -> None:
    """The error is one sentence. Valid markers are read."""
    whole = {"id": "m1", "name": "v1", "service": "shop", "at": "2026-03-01T12:00:00+00:00", "attributes": {"n": 1}}

    assert parse_line(json.dumps({"version": 2, "marker": whole})) == Marker(
        **whole | {"at": datetime(2026, 3, 1, 12, tzinfo=UTC)}  # type: ignore[arg-type]  # the types are correct
    )
    for wrong in (whole | change, change, [], None):
        with pytest.raises(UsageError, match="invalid marker"):
            parse_line(json.dumps({"version": 2, "marker": wrong}))


def test_an_export_does_not_depend_on_the_size_of_its_pages(full: TrackingStore) -> None:
    """Its lines, each of which is an exchange, contain what an import reads from them."""
    claimed = full.queue.claim_tasks("worker", {"late": "f1"}, limit=1, lease=timedelta(minutes=1))
    assert claimed
    expected = [json.loads(dump_record(record)) for record in load_records(full)]
    for size in (1, 3, 500):
        lines, page = list[str](), full.transfer.load_stored(ExportSelection(), limit=size)
        while page:
            lines += [record.dump() for record in page]
            page = full.transfer.load_stored(ExportSelection(), after=page[-1], limit=size)

        assert [json.loads(line) for line in lines] == expected
        assert not any("\x7f" in line or "\u202e" in line or "\n" in line for line in lines)


def test_a_long_export_collects_its_garbage(call: Call, full: TrackingStore, database_url: str, tmp_path: Path) -> None:
    """Each page leaves its statements in reference cycles, so that a million exchanges would fill the memory."""
    assert call("export", str(tmp_path / "all.jsonl"), "--database", database_url).code == 0

    assert gc.get_threshold()[0] <= 20_000


def test_duplicates_in_an_import_file_count_once(full: TrackingStore, url: str) -> None:
    """This covers repeated lines, even in one transaction, and repeated tasks in a line."""
    lines = [json.loads(record.dump()) for record in full.transfer.load_stored(ExportSelection())]
    twice = [parse_line(json.dumps(line | {"tasks": line.get("tasks", []) * 2})) for line in lines * 2]
    with closing(TrackingStore(url)) as other:
        restored = other.transfer.restore_records([one for one in twice if isinstance(one, ExchangeRecord)])
        seen = {(one.scorer, one.route): one.seen for one in other.trends.coverage()}

    dropped = {("answer_relevancy", "ask"): 7}
    assert (restored.exchanges, restored.tasks) == (9, 9)
    assert seen == {
        key: one.seen - dropped.get(key, 0) for one in full.trends.coverage() for key in [(one.scorer, one.route)]
    }


def test_import_does_not_change_existing_exchanges(store: TrackingStore) -> None:
    """Route, service and time are kept, and erased texts are not restored."""
    write(store, [0.5])
    store.retention.prune(texts_before=datetime.now(UTC))
    (before,) = load_records(store)
    score = {**before.scores[0], "scorer": "theirs", "explanation": "A text.", "details": {"n": 1, "quote": "A text."}}
    claims = {"route": "other", "service": "theirs", "question": "?", "started_at": datetime(2020, 1, 1, tzinfo=UTC)}
    foreign = ExchangeRecord({**before.exchange, **claims}, [{**before.tasks[0], "scorer": "theirs"}], [score])

    assert store.transfer.restore_records([foreign]).tasks == 1
    (after,) = load_records(store)
    imported = next(one for one in after.scores if one["scorer"] == "theirs")
    assert after.exchange == before.exchange
    assert (imported["explanation"], imported["details"]) == (None, {"n": 1})
    assert {(one.service, one.route) for one in store.trends.coverage()} == {("shop", "ask")}


@given(st.text())
def test_exported_lines_contain_no_control_characters(text: str) -> None:
    """`germane export` may be printed to a terminal, and each record stays on one line."""
    line = dump_record(ExchangeRecord({"id": "e", "question": text + "\x9b31m\u202e\u2028\x7f"}))
    assert not any(unicodedata.category(one) in {"Cc", "Zl", "Zp"} or one in "\u202a\u202e\u2066" for one in line)
    assert json.loads(line)["exchange"]["question"] == clean_text(text + "\x9b31m\u202e\u2028\x7f")


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)


@settings(max_examples=50)
@given(data=st.data())
def test_any_import_line_is_parsed_or_rejected(data: st.DataObject) -> None:
    """Any value in any field yields a record that can be dumped again, or one error."""
    line: dict[str, Any] = {"version": 2, "exchange": {"id": "e1"}, "tasks": [{"scorer": "a"}], "feedback": []}
    columns = {"exchange": COLUMNS["exchange"], "tasks": COLUMNS["task"], "scores": COLUMNS["score"]}
    for part, known in columns.items():
        drawn = {column.name: data.draw(_JSON) for column in known if data.draw(st.booleans())}
        line[part] = drawn if part == "exchange" else [drawn]
    with suppress(UsageError):
        found = parse_line(json.dumps(line))
        assert isinstance(found, ExchangeRecord)
        again = parse_line(dump_record(found))
        assert isinstance(again, ExchangeRecord)
        assert dump_record(again) == dump_record(found)


def test_parsing_and_exporting_a_line_again_yields_the_same_line(full: TrackingStore) -> None:
    """A round trip changes nothing."""
    for record in full.transfer.load_stored(ExportSelection()):
        again = parse_line(record.dump())
        assert isinstance(again, ExchangeRecord)
        assert dump_record(again) == record.dump()


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_a_flat_export_equals_the_answers_view(
    kind: str, call: Call, database: str, store: TrackingStore, tmp_path: Path
) -> None:
    """There is one row per exchange and scorer, with the same fingerprint, state and weight."""
    if kind == "parquet":
        pytest.importorskip("pyarrow", reason="needs germane[pandas]")
    write(store, [0.9, UnscoredReason.JUDGE_TIMEOUT])
    write(store, [0.4], fingerprint="f2", route="docs")
    store.exchanges.add([an_exchange()])  # without a sampling decision, it has no row
    file = tmp_path / f"flat.{kind}"
    assert call("export", str(file)).err == f"Wrote 3 rows for 4 exchanges to {file}.\n"
    with transaction(store, read_only=True) as connection:
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
    import pyarrow.parquet  # type: ignore[import-untyped]  # pyarrow has no types

    rows: list[dict[str, Any]] = pyarrow.parquet.read_table(file).to_pylist()
    return rows


def test_csv_cells_are_never_formulas(call: Call, database: str, store: TrackingStore, tmp_path: Path) -> None:
    """Spreadsheets show captured text instead of evaluating it."""
    write(store, [0.5], question="=1+1", answer="@SUM(A1)")
    call("export", str(tmp_path / "flat.csv"))
    (row,) = _read(tmp_path / "flat.csv")

    assert (row["question"], row["answer"], row["value"]) == ("'=1+1", "'@SUM(A1)", "0.5")


@given(st.text(st.characters() | st.sampled_from("=\t\x1b\x9b\u202e ")))
@example("\n\t")
def test_no_csv_cell_starts_like_a_formula_for_any_text(text: str) -> None:
    """Leading whitespace makes no difference. Other text is unchanged except for control characters."""
    shown = sanitize.csv_cell(text)
    obeyed = {one for one in text if unicodedata.category(one) == "Cc"} - set("\t\n\r") | {"\u202d", "\u202e"}
    seen = "".join("\ufffd" if one in obeyed else one for one in text)
    assert shown.lstrip(" \n")[:1] not in set("=+-@\t\r")
    assert shown in {seen, f"'{seen}"}


@each("before", [" ", "\n", "\ufeff", "\u200b", "\u2066", "\u00a0", "\u2028 "])
def test_invisible_characters_do_not_hide_a_csv_formula(before: str) -> None:
    """A program that drops them would evaluate the formula that follows."""
    assert sanitize.csv_cell(f"{before}=1+1").startswith("'")


def test_rows_of_a_data_set_are_imported_for_scoring(
    call: Call, database: str, store: TrackingStore, tmp_path: Path
) -> None:
    """Each row is a new exchange. Flat exports are rejected, because they are incomplete."""
    rows = tmp_path / "faq.csv"
    rows.write_text('id,question,answer,contexts\nr1,How?,So.,"[""one"", ""two""]"\nr2,Why?,Therefore.,[]\n')
    ended = call("import", str(rows))
    again = call("import", str(rows))
    listed = {one.id: one for one in store.sampling.list_undecided(10)}
    write(store, [0.5])
    call("export", str(tmp_path / "flat.csv"))
    flat = call("import", str(tmp_path / "flat.csv"))

    assert (ended.code, ended.out) == (0, f"Read 2 exchanges from {rows}. New exchanges will be sampled and scored.\n")
    assert (again.code, again.out.split(".csv. ")[1].split(". ")[0]) == (0, "2 were imported before")
    assert listed.keys() == {"r1", "r2"}
    assert [context.text for context in listed["r1"].contexts] == ["one", "two"]
    assert {one.route for one in listed.values()} == {"faq"}
    assert 0 < listed["r1"].sampling_key < 1
    assert flat.code == 1
    assert "export as JSONL" in flat.err


@pytest.mark.parametrize(("ending", "option"), [("csv", ["--skip-bad"]), ("jsonl", ["--columns", "question=q"])])
def test_export_options_without_effect_are_rejected(
    call: Call, store: TrackingStore, tmp_path: Path, ending: str, option: list[str]
) -> None:
    """--skip-bad applies to exports, and --columns to data sets."""
    write(store, [0.5])
    file = tmp_path / f"all.{ending}"
    call("export", str(file))

    assert call("import", str(file), *option).code == 2


def test_a_data_set_can_have_a_version_column(call: Call, store: TrackingStore, tmp_path: Path) -> None:
    """Such a column does not make it an export."""
    rows = tmp_path / "faq.jsonl"
    rows.write_text('{"version": 3, "question": "How?", "answer": "So."}\n')
    assert call("import", str(rows)).out == f"Read 1 exchange from {rows}. New exchanges will be sampled and scored.\n"
    assert [one.question for one in store.sampling.list_undecided(10)] == ["How?"]


@pytest.mark.slow
def test_a_closed_pipe_ends_an_export_without_an_error(database: str, store: TrackingStore) -> None:
    """`germane export | head` prints no traceback."""
    write(store, [0.5] * 3, question="long " * 40_000)
    command = [sys.executable, "-m", "germane", "export", "-"]
    unbuffered = {**os.environ, "PYTHONUNBUFFERED": "1"}  # as in many containers
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=unbuffered) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.read(10)
        process.stdout.close()
        assert (process.stderr.read(), process.wait(60)) == (b"", 1)


@pytest.mark.slow
def test_a_full_disk_during_an_export_is_reported(database: str, store: TrackingStore) -> None:
    """The error is one sentence without a traceback, for standard output and for a file."""
    write(store, [0.5])
    with open("/dev/full", "wb") as disk:  # noqa: PTH123 - not a regular file
        command = [sys.executable, "-m", "germane", "export"]
        ended = subprocess.run(command, stdout=disk, stderr=subprocess.PIPE, check=False)
    assert ended.returncode == 1
    assert ended.stderr == b"germane: cannot write standard output: No space left on device\n"


@pytest.mark.slow
def test_a_named_pipe_is_not_replaced_by_an_export(database: str, store: TrackingStore, tmp_path: Path) -> None:
    """Only regular files are replaced."""
    write(store, [0.5])
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    command = [sys.executable, "-m", "germane", "export", str(pipe), "--format", "jsonl"]
    with subprocess.Popen(command, stderr=subprocess.DEVNULL) as process:
        lines = pipe.read_bytes().splitlines()
        assert process.wait(60) == 0
    assert len(lines) == 1
    assert pipe.is_fifo()


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_flat_export_works_in_a_pipe(kind: str, database: str, store: TrackingStore) -> None:
    """No format needs a seekable file."""
    if kind == "parquet":
        pytest.importorskip("pyarrow", reason="needs germane[pandas]")
    write(store, [0.5])
    command = [sys.executable, "-m", "germane", "export", "--format", kind]
    ended = subprocess.run(command, capture_output=True, check=True)

    assert ended.stdout.startswith(b"PAR1" if kind == "parquet" else b"exchange_id,trace_id,")


SCORED_ROWS = [
    {"question": "How do I pay?", "answer": "By card.", "answer_relevancy": 0.8, "tier": "gold"},
    {"question": "Where are you?", "answer": "In the port.", "scores": {"answer_relevancy": 0.1, "house": -1}},
    {"question": "When do you open?", "answer": "At nine.", "answer_relevancy": None},
]


@pytest.mark.parametrize("suffix", ["jsonl", "csv"])
def test_score_columns_are_imported_as_scores(
    call: Call, store: TrackingStore, database_url: str, tmp_path: Path, suffix: str
) -> None:
    """The scores have their own fingerprint. Their scorers do not score the rows again, but other scorers do."""
    store_url, file = database_url, tmp_path / f"rated.{suffix}"
    if suffix == "jsonl":
        file.write_text("".join(json.dumps(row) + "\n" for row in SCORED_ROWS))
    else:
        columns = ("question", "answer", "answer_relevancy", "scores", "tier")
        with file.open("w", newline="") as lines:
            writer = csv.DictWriter(lines, columns)
            writer.writeheader()
            for row in SCORED_ROWS:
                nested = json.dumps(row["scores"]) if "scores" in row else ""
                writer.writerow({**row, "scores": nested})
    call("db", "upgrade", "--database", store_url)

    ended = call("import", str(file), "--database", store_url)

    assert (ended.code, ended.out.split(". ")[0]) == (0, f"Read 3 exchanges with 3 scores from {file}")
    with closing(TrackingStore(store_url)) as target:
        exchanges = {exchange.question: exchange for exchange in target.answers.list_exchanges()}
        assert exchanges["How do I pay?"].attributes == {"tier": "gold"}
        scores = target.answers.get_scores([exchange.id for exchange in exchanges.values()])
        values = {(question, score.scorer, score.fingerprint): score.value
                  for question, exchange in exchanges.items() for score in scores.get(exchange.id, [])}  # fmt: skip
        assert values == {
            ("How do I pay?", "answer_relevancy", "external"): 0.8,
            ("Where are you?", "answer_relevancy", "external"): 0.1,
            ("Where are you?", "house", "external"): -1.0,
        }
        target.sampling.assign_tasks(
            [SamplingDecision(exchange.id, 1.0, "sampled") for exchange in exchanges.values()],
            {"answer_relevancy": "f1", "faithfulness": "f2"},
        )
        claims = target.queue.claim_tasks(
            "me", {"answer_relevancy": "f1", "faithfulness": "f2"}, limit=9, lease=timedelta(minutes=1)
        )
        tasks = {(claim.exchange.question, task.scorer) for claim in claims for task in claim.tasks}
    assert tasks == {
        ("When do you open?", "answer_relevancy"),
        *((question, "faithfulness") for question in exchanges),
    }


def test_score_columns_can_be_ignored(call: Call, database: str, store: TrackingStore, tmp_path: Path) -> None:
    """In this case, all rows are scored, and the columns become attributes."""
    file = tmp_path / "rated.jsonl"
    file.write_text(json.dumps(SCORED_ROWS[0]) + "\n")

    ended = call("import", "--ignore-scores", str(file))

    assert (ended.code, ended.out) == (0, f"Read 1 exchange from {file}. New exchanges will be sampled and scored.\n")
    (exchange,) = store.answers.list_exchanges()
    assert exchange.attributes == {"tier": "gold", "answer_relevancy": 0.8}
    assert store.answers.get_scores([exchange.id]) == {}


@pytest.mark.parametrize(
    ("row", "problem"),
    [
        ({"answer_relevancy": 7}, "has the score answer_relevancy = 7, which is not a number from -1 to 1"),
        ({"faithfulness": "good"}, "has the score faithfulness = 'good', which is not a number"),
        ({"scores": [1]}, "has a scores cell that is not a JSON object mapping scorer names to numbers"),
        ({"scores": "{"}, "has a scores cell that is not a JSON object mapping scorer names to numbers"),
    ],
)
def test_an_invalid_score_column_is_reported(
    call: Call, database: str, store: TrackingStore, tmp_path: Path, row: dict[str, Any], problem: str
) -> None:
    """The message names the row, the problem and the fix. Nothing is imported."""
    file = tmp_path / "rated.jsonl"
    file.write_text(json.dumps({"question": "How?", "answer": "So.", **row}) + "\n")

    ended = call("import", str(file))

    assert (ended.code, ended.out) == (1, "")
    assert f"{file}, line 1 {problem}" in ended.err
    assert "--ignore-scores. Nothing was imported" in ended.err
    assert store.answers.list_exchanges() == []


@pytest.mark.parametrize("suffix", ["csv", "jsonl"])
@pytest.mark.parametrize("bad", [pytest.param(3, marks=pytest.mark.slow), 700])
def test_nothing_is_imported_from_a_file_with_an_invalid_row(
    call: Call, database: str, store: TrackingStore, tmp_path: Path, bad: int, suffix: str
) -> None:
    """Importing the corrected file, even twice, adds each row once."""
    rows = [
        {"question": f"{number % 5}?", "answer": "So.", "faithfulness": "7" if number == bad else "0.5"}
        for number in range(1, 1001)
    ]
    file = tmp_path / f"rated.{suffix}"

    def save() -> None:
        if suffix == "jsonl":
            file.write_text("".join(json.dumps(row) + "\n" for row in rows))
            return
        with file.open("w", newline="") as lines:
            writer = csv.DictWriter(lines, list(rows[0]))
            writer.writeheader()
            writer.writerows(rows)

    save()
    refused = call("import", str(file))
    left = store.answers.counts()
    rows[bad - 1]["faithfulness"] = "0.5"
    save()
    first, again = call("import", str(file)), call("import", str(file))

    assert (refused.code, refused.out, left.captured, left.scores) == (1, "", 0, 0)
    assert f"{file}, line {bad + (suffix == 'csv')} has the score faithfulness = '7', which is not" in refused.err
    assert refused.err.endswith("import without scores: --ignore-scores. Nothing was imported\n")
    assert first.out.startswith(f"Read 1000 exchanges with 1000 scores from {file}. New")
    assert "1000 were imported before" in again.out
    assert (store.answers.counts().captured, store.answers.counts().scores) == (1000, 1000)


def test_an_interrupted_import_can_be_repeated(call: Call, database: str, store: TrackingStore, tmp_path: Path) -> None:
    """Rows that were already written are not added again. If the file is written again, its rows are new exchanges."""
    file = tmp_path / "faq.jsonl"
    line = json.dumps({"question": "How?", "answer": "So.", "faithfulness": 0.5}) + "\n"
    file.write_text(line * 700)
    with transaction(store) as connection:  # the disk is full after the first page
        connection.exec_driver_sql(
            "CREATE TRIGGER full BEFORE INSERT ON exchange WHEN (SELECT count(*) FROM exchange) >= 500 "
            "BEGIN SELECT RAISE(ABORT, 'full'); END"
        )
    interrupted = call("import", str(file))
    assert (interrupted.code, store.answers.counts().captured) == (1, 500)
    with transaction(store) as connection:
        connection.exec_driver_sql("DROP TRIGGER full")

    assert "500 were imported before" in call("import", str(file)).out
    assert (store.answers.counts().captured, store.answers.counts().scores) == (700, 700)
    os.utime(file, (1, 1))
    assert "before" not in call("import", str(file)).out
    assert store.answers.counts().captured == 1400


@pytest.mark.parametrize(
    ("ids", "problem"),
    [
        (["3", "3"], "line 3 has the id '3' of an earlier row."),
        (["3", "1"], "line 3 has the id '1' of a stored exchange with a different question or answer."),
    ],
)
def test_an_id_of_another_exchange_is_rejected(
    call: Call, database: str, store: TrackingStore, tmp_path: Path, ids: list[str], problem: str
) -> None:
    """Importing an unrelated file never overwrites the scores of earlier exchanges. The message says how to fix it."""
    first, second = tmp_path / "first.csv", tmp_path / "second.csv"
    first.write_text("id,question,answer,faithfulness\n1,What is A?,One,0.9\n2,What is B?,Two,0.8\n")
    second.write_text(
        f"id,number,question,answer,faithfulness\n{ids[0]},7,Why?,So.,0.1\n{ids[1]},8,What is A?,No idea,0.2\n"
    )
    call("import", str(first))

    rejected = call("import", str(second))

    assert (rejected.code, rejected.out) == (1, "")
    assert f"{second}, {problem} An id identifies one exchange in the whole database" in rejected.err
    assert rejected.err.endswith("remove the column to have ids generated. Nothing was imported\n")
    scores = store.answers.get_scores(["1", "2", "3"])
    assert {id_: [score.value for score in given] for id_, given in scores.items()} == {"1": [0.9], "2": [0.8]}
    assert call("import", str(second), "--columns", "id=number").out.startswith("Read 2 exchanges with 2 scores")
    assert store.answers.get_exchanges(["7", "8"]).keys() == {"7", "8"}


def test_the_same_exchanges_can_be_imported_with_other_scores(
    call: Call, database: str, store: TrackingStore, tmp_path: Path
) -> None:
    """They are recognized by id, question and answer, even if the text has been erased or contains a NUL character."""
    file = tmp_path / "rated.jsonl"
    row = {"id": "1", "question": "How\0?", "answer": "So.", "faithfulness": 0.1}
    file.write_text(json.dumps(row))
    call("import", str(file))
    file.write_text(json.dumps(row | {"faithfulness": 0.2}))
    again = call("import", str(file))
    store.sampling.assign_tasks([SamplingDecision("1", 1.0, "sampled")], {})
    assert store.retention.prune(texts_before=datetime.now(UTC)).texts == 1
    file.write_text(json.dumps(row | {"faithfulness": 0.3}))

    erased = call("import", str(file))

    for ended in (again, erased):
        assert (ended.code, ended.out.split(".jsonl. ")[1].split(". ")[0]) == (0, "1 was imported before"), ended.err
    assert [score.value for score in store.answers.get_scores(["1"])["1"]] == [0.3]


@pytest.mark.parametrize("has_text", [True, False])
def test_importing_archived_rows_again_changes_nothing(
    call: Call, database: str, store: TrackingStore, tmp_path: Path, has_text: bool
) -> None:
    """Each exchange and each score is stored once, in the database or in the archive."""
    file = tmp_path / "rated.csv"
    file.write_text("id,question,answer,faithfulness\nr1,How?,So.,0.5\n,Why?,Therefore.,0.7\n")
    call("import", str(file))
    exchanges = store.answers.list_exchanges()
    store.sampling.assign_tasks([SamplingDecision(exchange.id, 1.0, "sampled") for exchange in exchanges], {})
    store.rollups.update()
    clock = Clock(datetime.now(UTC) + timedelta(days=2))
    with closing(TrackingStore(database, clock=clock)) as later:
        assert later.archive.archive_days(str(tmp_path / "archive"), before=clock.now, has_text=has_text)
    ids = [exchange.id for exchange in exchanges]
    before = (store.answers.list_exchanges(), store.answers.get_scores(ids), store.trends.summary())

    ended = call("import", str(file))

    assert (ended.code, ended.out.split(".csv. ")[1].split(". ")[0]) == (0, "2 were imported before"), ended.err
    store.rollups.update()
    assert (store.answers.list_exchanges(), store.answers.get_scores(ids), store.trends.summary()) == before
    assert (len(before[0]), len(before[1]), store.answers.counts().captured) == (2, 2, 0)


MISSING = ("", " ", "nan", "NaN", "null", "None", "NA", "<NA>", "N/A", None, float("nan"))


@pytest.mark.parametrize("column", ["faithfulness", "scores", "nested"])
@pytest.mark.parametrize("suffix", ["csv", "jsonl"])
def test_missing_values_are_not_imported_as_scores(
    call: Call, database: str, store: TrackingStore, tmp_path: Path, column: str, suffix: str
) -> None:
    """Data frames write missing scores as NaN, null or empty cells. The row is imported without that score."""
    rows: list[dict[str, Any]] = [
        {"question": f"Is it {cell!r}?", "answer": "So.", "answer_relevancy": 0.5}
        | ({"scores": {"tone": cell}} if column == "nested" else {column: cell})
        for cell in MISSING
    ]
    file = tmp_path / f"rated.{suffix}"
    if suffix == "csv":
        cells = [[json.dumps(value) if isinstance(value, dict) else value for value in row.values()] for row in rows]
        with file.open("w", newline="") as lines:
            csv.writer(lines).writerows([list(rows[0]), *cells])
    else:
        file.write_text("".join(json.dumps(row) + "\n" for row in rows))

    ended = call("import", str(file))

    assert (ended.code, ended.out.split(" from ")[0]) == (0, "Read 11 exchanges with 11 scores"), ended.err
    scores = store.answers.get_scores([one.id for one in store.answers.list_exchanges()])
    found = {one.question: [score.scorer for score in scores[one.id]] for one in store.answers.list_exchanges()}
    assert found == {f"Is it {cell!r}?": ["answer_relevancy"] for cell in MISSING}


SOON, LATER = "2026-03-01T12:00:00.250000+00:00", "2026-03-01T13:00:00+00:00"
ALERTING = {
    "baseline": [
        {"service": "shop", "scorer": "answer_relevancy", "fingerprint": "f1", "scope": "route", "version": version,
         "status": "active" if version == 2 else "replaced", "reason": "learned", "since": SOON, "until": LATER,
         "n": 200, "mean": 0.75, "deviation": None, "numbers": {"b": [1e-05, 2], "a": {"d": 1.0, "c": "\u00fc"}},
         "created_at": LATER}
        for version in (1, 2)
    ],
    "alert": [
        {"id": f"a{number}", "key": "k", "rule": "drop", "type": "drop", "labels": {"service": "shop", "route": "ask"},
         "state": "resolved" if number else "firing", "severity": "critical", "message": "Fell | \u2028 sharply",
         "body": {"n": number}, "starts_at": SOON, "evaluated_at": LATER}
        for number in (0, 1)
    ],
    "alert_event": [
        {"id": f"e{number}", "alert_id": "a0", "at": SOON, "type": "state", "before": None, "after": "firing",
         "detail": {}}
        for number in (2, 1)
    ],
    "silence": [
        {"id": "s1", "matchers": {"route": "ask"}, "starts_at": SOON, "ends_at": LATER, "created_by": "ann"}
    ],
    "saved_view": [
        {"name": f"Low \u202e {number}", "path": "/answers?low=1", "created_at": SOON, "created_by": None}
        for number in (1, 2)
    ],
}  # fmt: skip


def alerting_rows() -> list[AlertingRow]:
    """Return baselines, alerts with events, a silence and saved views."""
    lines = (json.dumps({"version": 2, part: row}) for part, rows in ALERTING.items() for row in rows)
    return [row for row in map(parse_line, lines) if isinstance(row, AlertingRow)]


def test_exporting_imported_data_yields_a_byte_identical_file(
    call: Call, full: TrackingStore, url: str, database_url: str, tmp_path: Path
) -> None:
    """It goes through the other kind of database, with baselines, alerts, events, silences and views."""
    full.transfer.restore_alerting(alerting_rows())
    first, second = tmp_path / "first.jsonl", tmp_path / "second.jsonl"

    call("export", str(first), "--database", database_url)
    call("import", str(first), "--database", url)
    call("import", str(first), "--database", url)
    call("export", str(second), "--database", url)

    parts = [next(name for name in json.loads(line) if name != "version") for line in first.read_text().splitlines()]
    assert [part for part in parts if part in ALERTING] == [part for part, rows in ALERTING.items() for _ in rows]
    assert first.read_bytes() == second.read_bytes()


def test_restored_alerts_never_replace_existing_ones(store: TrackingStore, call: Call, database: str) -> None:
    """An open alert with the same key and the versions of a baseline are kept."""
    rows = alerting_rows()
    newer = [replace(row, values={**row.values, "version": 7}) for row in rows if row.part == "baseline"]
    other = [replace(row, values={**row.values, "id": "other"}) for row in rows if row.values.get("id") == "a0"]
    orphan = [replace(row, values={**row.values, "alert_id": "other"}) for row in rows if row.values.get("id") == "e1"]
    store.transfer.restore_alerting([*newer[:1], *(row for row in rows if row.part == "alert")])

    store.transfer.restore_alerting([*rows, *other, *orphan])

    stored = store.transfer.load_alerting(ExportSelection())
    assert [row.values["version"] for row in stored if row.part == "baseline"] == [7]
    assert [row.values["id"] for row in stored if row.part == "alert"] == ["a0", "a1"]
    assert [row.values["id"] for row in stored if row.part == "alert_event"] == ["e1", "e2"]


def test_export_of_one_route_contains_no_alerting_data(
    call: Call, database: str, store: TrackingStore, tmp_path: Path
) -> None:
    """Such data would be incomplete. A time window limits alerts and silences, but not baselines."""
    store.transfer.restore_alerting(alerting_rows())

    def parts(*options: str) -> set[str]:
        lines = call("export", str(tmp_path / "some.jsonl"), *options) and (tmp_path / "some.jsonl").read_text()
        return {name for line in lines.splitlines() for name in json.loads(line)} - {"version"}

    assert parts() == set(ALERTING)
    assert parts("--route", "ask") == parts("--scorer", "answer_relevancy") == set()
    assert parts("--since", "2026-03-02T00:00:00Z") == {"baseline"}


@each(
    ("part", "change", "problem"),
    [
        ("silence", {"matchers": []}, "silence.matchers = [] is not an object"),
        ("alert", {"starts_at": "soon"}, "alert.starts_at = 'soon' is not an ISO 8601 time"),
        ("saved_view", {"name": "x" * 501}, "saved_view.name is longer than 500 characters"),
        ("saved_view", {"path": None}, "saved_view.path"),
        ("alert", {"id": "x" * 501}, "alert.id is longer than 500 characters"),
        ("baseline", {"extra": 1}, "unknown column baseline.extra"),
    ],
)
def test_invalid_alerting_lines_are_reported(part: str, change: dict[str, Any], problem: str) -> None:
    """The error names the part and the column."""
    with pytest.raises(UsageError, match=re.escape(problem)):
        parse_line(json.dumps({"version": 2, part: {**ALERTING[part][0], **change}}))
