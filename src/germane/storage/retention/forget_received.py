"""Deletion of one user's, session's or tenant's received spans, and of their copies that wait to be forwarded."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

from sqlalchemy import delete, select, update

from germane.exchange import FORWARDING
from germane.otlp import read_item, read_request, without_traces
from germane.recognizers import NAME_LENGTH, SESSION, USER, SpanData, find_attribute
from germane.storage.db.batches import PruneResult
from germane.storage.db.component import StoreContext
from germane.storage.db.mappers import batched
from germane.storage.db.tables import delivery, received_span, received_trace
from germane.storage.ingest.received_spans import delete_unfinished
from germane.storage.outbox import WAITS
from germane.storage.retention.forget import DataSubject, find_exchanges

_FEW: Final = {"yield_per": 100}  # the number of rows in memory at once, which may be large
_SPANS: Final = (
    select(received_span.c.trace_id, received_span.c.is_log, received_span.c.payload)
    .order_by(*received_span.primary_key)
    .execution_options(**_FEW)
)
_REQUESTS: Final = (
    select(delivery.c.id, delivery.c.payload, delivery.c.body)
    .where(delivery.c.kind == FORWARDING, WAITS, delivery.c.body.is_not(None))
    .execution_options(**_FEW)
)
_UNFINISHED: Final = (
    select(received_trace.c.trace_id, received_trace.c.options)
    .where(received_trace.c.due_at.is_not(None))
    .order_by(*received_trace.primary_key)
)


def forget_received(context: StoreContext, subject: DataSubject, *, dry_run: bool) -> PruneResult:
    """Delete the traces of a data subject: those of its exchanges, and those with a span that names it.

    Requests keep the spans of other traces. A trace that a receiver is finishing at this moment is not stored any more.
    Call this before the exchanges are deleted, because they name traces whose spans are only in requests.

    Returns:
        The numbers of deleted traces, and of requests that were changed or deleted.
    """
    trace_ids = {row["trace_id"] for rows in find_exchanges(context.database, subject) for row in rows}
    with context.database.read() as connection:
        for row in connection.execute(_SPANS):
            if _names(subject, read_item(row.payload, is_log=row.is_log)):
                trace_ids.add(row.trace_id)
        for row in connection.execute(_REQUESTS):
            items = read_request(row.payload["signal"], row.body)
            trace_ids.update(trace_id for trace_id, attributes in items if _names(subject, attributes))
        requests = [
            row.id
            for row in connection.execute(_REQUESTS)
            if any(trace_id in trace_ids for trace_id, _ in read_request(row.payload["signal"], row.body))
        ]
    total = PruneResult(requests=len(requests))
    for ids in batched(sorted(trace_ids)):
        unfinished = _UNFINISHED.where(received_trace.c.trace_id.in_(ids))
        with context.database.read() if dry_run else context.database.write() as connection:
            traces = connection.execute(unfinished if dry_run else unfinished.with_for_update()).all()
            delete_unfinished(connection, () if dry_run else traces)
        total += PruneResult(traces=len(traces))
    for request_id in () if dry_run else requests:
        with context.database.write() as connection:
            of_request = delivery.c.id == request_id
            found = connection.execute(_REQUESTS.where(of_request).with_for_update()).all()  # unless it has been sent
            for signal, request in ((each.payload["signal"], each.body) for each in found):
                body = without_traces(signal, request, trace_ids)
                change = delete(delivery) if body is None else update(delivery).values(body=body, size=len(body))
                connection.execute(change.where(of_request))
    return total


def _names(subject: DataSubject, attributes: Mapping[str, Any]) -> bool:
    """Return whether a span or log record names the user, session or attribute value."""
    if subject.attribute is not None:
        name, value = subject.attribute
        found = attributes.get(name)
        return name in attributes and value in {str(found), json.dumps(found)}
    span = [SpanData(trace_id="", span_id="", attributes=attributes)]
    found = find_attribute(span, SESSION if subject.user is None else USER)
    return found is not None and (subject.user or subject.session) in {found[0], found[0][:NAME_LENGTH]}
