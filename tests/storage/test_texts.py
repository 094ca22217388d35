"""Texts and ids of people: deletion and retention reach every column that can contain them."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final

import pytest
from sqlalchemy import JSON, LargeBinary, Text, insert, select
from tests.databases import POSTGRESQL_IS_THOROUGH
from tests.receiver.messages import chain, log_record, log_request, model_call, span, trace_request
from tests.storage.test_received_spans import LEASE, MAX_WAIT

from germane.annotation import Feedback
from germane.cli.commands.doctor.watching import check_receiving
from germane.exchange import Context, Exchange, Message
from germane.otlp import compress_request
from germane.storage import ExportSelection, OutgoingRequest, PruneResult, ReceivedItem, TraceOutcome, TrackingStore
from germane.storage.db.models import metadata
from germane.storage.db.tables import score, scoring_task
from germane.testing import Clock, transaction

Make = Callable[..., Exchange]
EXPORTED: Final = {
    "exchange.question", "exchange.answer", "exchange.contexts", "exchange.history", "exchange.error",
    "exchange.session", "exchange.user", "exchange.attributes", "scoring_task.error", "score.explanation",
    "score.details", "feedback.comment", "feedback.user",
}  # fmt: skip
"""Columns with texts or ids of people that an export contains."""
WAITING: Final = {"received_span.payload", "delivery.body", "delivery.payload"}
"""Columns with texts that wait for a process, which the doctor reports."""
KEPT_WITHOUT_TEXT: Final = {"exchange.session", "exchange.user", "exchange.attributes", "feedback.user"}
"""Columns that are deleted with their row, but not erased earlier."""
WITHOUT_TEXT: Final = {
    "anchor": "exchange_id scorer fingerprint",
    "anchor_score": "cause fingerprint judge reason",
    "alert": "id key rule type labels state severity cause message fingerprint body acknowledged_by resolve_reason",
    "alert_event": "id alert_id type before after detail",
    "archived_day": "location state manifest dimensions",
    "archived_lowest": "dimension service route scorer fingerprint entries",
    "baseline": "service scorer fingerprint scope status reason numbers model prompt_version accepted_by",
    "budget": "day",
    "calibration": "embedder scorer fingerprint",
    "delivery": "kind target order_keys status lease_owner error trace_id span_id exchange_id",
    "detector": "rule service scorer parameters state",
    "detector_input": "service route scorer fingerprint exchange_id",
    "exchange": "id trace_id span_id service route model prompt_version status sampling_reason span_holder",
    "feedback": "id exchange_id wave",
    "history_run": "id kind selection",
    "job": "process name runs",
    "label_draw": "wave exchange_id scorer fingerprint service route state settled_by",
    "lease": "name owner cursor",
    "marker": "id name service attributes",
    "partition": "run_id first_id last_id lease_owner error checksum remaining",
    "rate_limit": "name",
    "received_span": "trace_id options key service scope",
    "received_trace": "trace_id options lease_owner span_keys",
    "rollup": "dimension service route scorer fingerprint label histogram",
    "rollup_count": "dimension service route scorer outcome reason",
    "rollup_dimension": "name",
    "rollup_proxy": "dimension service route",
    "saved_view": "name path created_by",
    "score": "exchange_id scorer fingerprint service route label judge embedder",
    "scoring_task": "exchange_id scorer fingerprint state reason lease_owner scored_as",
    "silence": "id matchers created_by comment",
    "tally": "service route scorer process outcome reason",
    "unreadable_trace": "trace_id service scope reason spans",
    "watched_trace": "service scope outcome",
    "worker": "id host service version scorers settings problem",
}
"""Columns with ids, names, numbers, and what operators write."""


def test_each_column_that_can_contain_text_is_known_to_contain_some_or_none() -> None:
    """A new column with texts of people belongs to the columns above that the other tests fill and search."""
    can_contain_text = {
        f"{table.name}.{column.name}"
        for table in metadata.sorted_tables
        for column in table.columns
        if isinstance(getattr(column.type, "impl", column.type), (Text, JSON, LargeBinary))
    }
    without = {f"{table}.{column}" for table, columns in WITHOUT_TEXT.items() for column in columns.split()}

    assert can_contain_text == EXPORTED | WAITING | without
    assert not (EXPORTED | WAITING) & without


def columns_with(store: TrackingStore, text: str) -> set[str]:
    """Return the columns that contain a text, in any row of any table."""
    found = set()
    with transaction(store, read_only=True) as connection:
        for table in metadata.sorted_tables:
            for row in connection.execute(select(table)).mappings():
                for name, value in row.items():
                    content = value if isinstance(value, bytes) else json.dumps(value, default=str).encode()
                    with suppress(OSError):
                        content = gzip.decompress(content)
                    if text.encode() in content:
                        found.add(f"{table.name}.{name}")
    return found


def queue(*messages: Any, **given: Any) -> OutgoingRequest:
    """Return a request to be forwarded."""
    signal = "traces" if hasattr(messages[0], "resource_spans") else "logs"
    body = b"".join(message.SerializeToString() for message in messages)
    return OutgoingRequest(signal, compress_request(body), **given)  # type: ignore[arg-type]  # one of the two


def item(part: Any) -> ReceivedItem:
    """Return a span as the receiver stages it."""
    ids = part.trace_id.hex(), part.span_id.hex()
    return ReceivedItem(*ids, False, "shop", "scope", part.SerializeToString(), 1.0)


def ask(store: TrackingStore, clock: Clock, make: Make, person: str) -> None:
    """Fill all columns that contain a person's texts or id."""
    told = {"user.id": person, "session.id": person, "tenant": person}
    answered = chain(person, "Yes.", attributes=told)
    # The trace of an answer that is waiting for its scores, after all other spans of its trace were forwarded.
    ids = {"trace_id": answered.trace_id.hex(), "span_id": answered.span_id.hex()}
    held = queue(trace_request(chain(person, "Yes.", trace_id=answered.trace_id)), **ids, max_delay=99.0)
    store.received.stage([item(answered)], max_wait=MAX_WAIT, requests=[held], target="there")
    clock.advance(seconds=2)
    (trace,) = store.received.claim("me", limit=9, max_size=2**20, lease=LEASE)
    exchange = make(
        **ids, question=person, answer=person, contexts=(Context(person, None, None),), error=person, user=person,
        history=(Message("user", person),), session=person, attributes={"tenant": person}, started_at=clock(),
    )  # fmt: skip
    store.received.complete("me", [TraceOutcome(trace, exchange)], max_span_delay=99.0)
    assert store.forwarding.attach(exchange.id, {"explanation": person})
    of_exchange = {"exchange_id": exchange.id, "scorer": "s", "fingerprint": "f"}
    of_task = {"state": "failed", "error": person, "claims": 1, "first_pending_at": clock()}
    of_score = {"service": "shop", "route": "ask", "started_at": clock(), "value": 0.5, "details": {"claim": person}}
    with transaction(store) as connection:
        connection.execute(insert(scoring_task).values(**of_exchange, **of_task))
        connection.execute(insert(score).values(**of_exchange, **of_score, explanation=person))
    label = Feedback(id=person, exchange_id=exchange.id, score=0.0, user=person, comment=person, created_at=clock())
    store.labels.add_feedback([label])


def receive(store: TrackingStore, *persons: str) -> None:
    """Stage a trace of each person. Only its first span names the person. Its parts are in several requests."""
    traces = []
    for person in persons:
        root = chain("Why?", "So.", attributes={"user.id": person, "metadata": json.dumps({"session_id": person})})
        traces.append((root, model_call(person, person, parent=root), span(name="ping", parent=root)))
    staged = [item(part) for trace in traces for part in trace]
    roots, calls, pings = ([trace_request(trace[place]) for trace in traces] for place in range(3))
    logs = [log_request(log_record(trace[0], "", {"content": who})) for trace, who in zip(traces, persons, strict=True)]
    requests = [*map(queue, calls), queue(*calls, *pings), queue(*logs), queue(*roots)]
    store.received.stage(staged, max_wait=MAX_WAIT, requests=requests, target="there")


@POSTGRESQL_IS_THOROUGH
@pytest.mark.parametrize("by", ["user", "session", "attribute"])
def test_deletion_reaches_every_column_with_a_text_and_leaves_others_alone(
    store: TrackingStore, clock: Clock, make: Make, by: str
) -> None:
    """Also spans that do not name the person, but belong to a trace in which another span does."""
    for person in ("zebra", "gnu"):
        ask(store, clock, make, person)
    if by != "attribute":  # only exchanges of this process have attributes
        receive(store, "zebra", "gnu", "zebra")
    before = columns_with(store, "zebra")
    assert before >= EXPORTED | {"delivery.body", "delivery.payload"}
    assert before >= EXPORTED | WAITING or by == "attribute"

    subject: dict[str, Any] = {by: ("tenant", "zebra") if by == "attribute" else "zebra"}
    waiting = {} if by == "attribute" else {"traces": 2}
    expected = PruneResult(exchanges=1, scores=1, feedback=1, requests=1 if by == "attribute" else 6, **waiting)
    assert store.retention.forget(**subject, dry_run=True) == expected
    assert columns_with(store, "zebra") == before
    assert store.retention.forget(**subject) == expected

    assert columns_with(store, "zebra") - {"feedback.id"} == set()
    assert columns_with(store, "gnu") == before
    assert store.retention.forget(**subject) == PruneResult()
    (left,) = store.forwarding.list_targets()
    assert left.requests == (1 if by == "attribute" else 5)


@POSTGRESQL_IS_THOROUGH
def test_retention_reaches_every_column_with_a_text_and_states_what_was_not_processed(
    store: TrackingStore, clock: Clock, make: Make
) -> None:
    """Texts are erased first, and later the rows are deleted. What waits for a process does not wait any longer."""
    ask(store, clock, make, "zebra")
    receive(store, "zebra")
    clock.advance(hours=1)
    [stuck, queued] = check_receiving(store)
    assert "1 received trace cannot be scored" in stuck.message
    assert "5 requests" in queued.message

    removed = store.retention.prune(texts_before=clock())
    assert (removed.traces, removed.requests) == (1, 5)
    assert columns_with(store, "zebra") - {"feedback.id"} == KEPT_WITHOUT_TEXT
    assert list(check_receiving(store)) == []
    store.retention.prune(before=clock())
    assert columns_with(store, "zebra") == set()


def test_an_export_contains_every_column_with_a_text_except_what_waits_for_a_process(
    store: TrackingStore, clock: Clock, make: Make
) -> None:
    """Spans and requests are no results. The doctor names them."""
    ask(store, clock, make, "zebra")
    exported = [json.loads(record.dump()) for record in store.transfer.load_stored(ExportSelection())]
    (line,) = exported
    parts = {"scoring_task": line["tasks"][0], "score": line["scores"][0], "feedback": line["feedback"][0]}
    parts["exchange"] = line.get("exchange", line)

    found = {
        f"{table}.{name}" for table, part in parts.items() for name, value in part.items() if "zebra" in str(value)
    }
    assert found >= EXPORTED
