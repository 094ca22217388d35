"""Notifications in the outbox: their content, their order per alert, and resending them."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from tests.deliveries import BUSY, LEASE, REFUSED, SENT, Courier, due_channels
from tests.storage.conftest import NOON
from tests.storage.test_query_plans import postgresql_scans, record_statements, sqlite_scans

from germane.alert import Alert, AlertChange, AlertEvent, Notification, alert_key
from germane.storage import (
    NOTIFICATION,
    AlertTransaction,
    OutgoingRequest,
    QueueStatus,
    TrackingStore,
    forwarding_queue,
)
from germane.testing import Clock, transaction


def make_alert(route: str = "docs", **given: Any) -> Alert:
    labels = {"service": "shop", "scorer": "answer_relevancy", "route": route}
    fields = {"id": f"a-{route}", "rule": "drop", "type": "drop", "state": "firing", "starts_at": NOON, **given}
    return Alert(key=alert_key("drop", labels), labels=labels, evaluated_at=NOON, **fields)


def make_notification(id: str = "n1", *alerts: Alert, channel: str = "oncall", after: float = 0, **given: Any) -> Any:
    """Return a notification created the given number of seconds after noon."""
    included = alerts or (make_alert(),)
    return Notification(
        id=id, channel=channel, idempotency_key=f"key-{id}", type=given.pop("type", "firing"), alerts=included,
        event_ids=tuple(f"e-{alert.id}" for alert in included), created_at=NOON + timedelta(seconds=after), **given,
    )  # fmt: skip


def enqueue(store: TrackingStore, *notifications: Notification) -> None:
    assert store.alerts.commit(AlertTransaction(notifications=notifications))


def test_notification_round_trips_with_its_alerts(store: TrackingStore) -> None:
    """A claimed notification has its alerts, its idempotency key and the attempt number."""
    written = make_notification("n1", make_alert(message="worse \ud83d\ude00", value=0.4), make_alert("faq"))
    enqueue(store, written)

    claimed = Courier(store).claim()

    assert claimed is not None
    assert (claimed.id, claimed.idempotency_key, claimed.type, claimed.attempt) == ("n1", "key-n1", "firing", 1)
    assert [alert.route for alert in claimed.alerts] == ["docs", "faq"]
    assert claimed.alerts[0].message == "worse \U0001f600"
    assert (claimed.event_ids, claimed.created_at) == (written.event_ids, NOON)


def test_notification_is_rolled_back_with_its_transaction(store: TrackingStore) -> None:
    """A rejected transaction enqueues no notification."""
    event = AlertEvent(id="e", alert_id="a-docs", at=NOON, type="fired", after="firing")
    change = AlertChange(alert=make_alert(), event=event, notify=True)
    assert not store.alerts.commit(
        AlertTransaction(holder=("watcher", "nobody"), changes=[change], notifications=[make_notification()])
    )

    assert due_channels(store, ["oncall"]) == set()


def test_each_channel_claims_only_its_own_notifications(store: TrackingStore) -> None:
    """A process claims notifications only for the channels it names."""
    enqueue(store, make_notification("n1"), make_notification("n2", channel="log"))

    assert due_channels(store, ["oncall", "log", "other"]) == {"oncall", "log"}
    assert due_channels(store, ["log"]) == {"log"}
    assert due_channels(store, []) == set()
    assert Courier(store, "other").claim() is None
    assert Courier(store, "log").claim() is not None
    assert due_channels(store, ["log"]) == set()


def test_status_and_error_are_stored_with_each_attempt(store: TrackingStore, clock: Clock) -> None:
    """A failure waits for its retry; a later success replaces it."""
    enqueue(store, make_notification())
    assert Courier(store).deliver(BUSY) == "n1"
    (record,) = store.notifications.search(channel="oncall")
    assert (record.status, record.http_status, record.error, record.settled_at) == ("waiting", 503, "status 503", None)

    clock.advance(seconds=5)
    assert Courier(store).deliver(SENT) == "n1"
    (record,) = store.notifications.search(status="sent")
    assert (record.http_status, record.error, record.settled_at) == (200, None, clock.now)


def test_notifications_about_one_alert_are_delivered_in_order(store: TrackingStore, clock: Clock) -> None:
    """A later notification waits for an earlier one about the same alert; other alerts are not delayed."""
    resolved = make_alert(state="resolved", resolved_at=NOON)
    enqueue(store, make_notification("n1"), make_notification("n2", resolved, after=1, type="resolved"))
    enqueue(store, make_notification("n3", make_alert("faq"), after=2))
    courier = Courier(store)
    assert courier.deliver(BUSY) == "n1"
    assert [courier.deliver(), courier.deliver()] == ["n3", None]

    clock.advance(seconds=5)
    assert [courier.deliver(), courier.deliver()] == ["n1", "n2"]


def test_old_undelivered_notifications_are_resent_only_by_id(store: TrackingStore, clock: Clock) -> None:
    """After a week, an alert is outdated unless somebody asks for it."""
    enqueue(store, make_notification("n0"))
    Courier(store).deliver(REFUSED)
    clock.advance(days=8)

    assert store.outbox.list_queues(NOTIFICATION) == []
    assert store.notifications.resend(channel="oncall") == 0
    assert store.notifications.resend(ids=["n0"]) == 1


def test_undelivered_notifications_can_be_resent(store: TrackingStore, clock: Clock) -> None:
    """Resending by channel or ID resets the retries; sent notifications are not sent again."""
    enqueue(store, *(make_notification(f"n{number}", make_alert(f"r{number}")) for number in range(4)))
    enqueue(store, make_notification("other", channel="mail"))
    courier = Courier(store)
    for number in range(4):
        courier.deliver(REFUSED if number else SENT)
    clock.advance(days=2)

    assert store.notifications.resend(channel="mail") == 0
    assert store.notifications.resend(ids=["n1", "n0"]) == 1
    assert store.notifications.resend(channel="oncall") == 2
    claimed = courier.claim()
    assert claimed is not None
    assert (claimed.id, claimed.attempt, claimed.idempotency_key) == ("n1", 1, "key-n1")
    assert courier.record(BUSY) == "waiting"


def test_channel_queue_reports_waiting_and_undelivered_notifications(store: TrackingStore, clock: Clock) -> None:
    """Each channel has counts, the waiting time and the latest errors. Old failures are omitted."""
    enqueue(store, make_notification("n1"), make_notification("n2", make_alert("faq"), after=60))
    enqueue(store, make_notification("n3", channel="mail"))
    Courier(store).deliver(BUSY)
    Courier(store, "mail").deliver(REFUSED)

    assert store.outbox.list_queues(NOTIFICATION) == [
        QueueStatus(target="mail", undelivered=1, last_undelivered_at=NOON, last_undelivered_error="status 400"),
        QueueStatus(target="oncall", waiting=2, waiting_since=NOON, retry_error="status 503"),
    ]
    clock.advance(days=8)
    assert [queue.target for queue in store.outbox.list_queues(NOTIFICATION)] == ["oncall"]


def test_every_delivery_query_uses_an_index(store: TrackingStore, clock: Clock) -> None:
    """Sent notifications do not slow down polling."""

    def work() -> None:
        enqueue(store, make_notification("n1"), make_notification("n2", make_alert("faq")))
        due_channels(store, ["oncall", "log"])
        courier = Courier(store)
        for outcome in (SENT, REFUSED):
            courier.claim()
            assert courier.item is not None
            store.outbox.renew("me", [courier.item.id], lease=LEASE)
            store.outbox.release("me", [courier.item.id])
            courier.deliver(outcome)
        clock.advance(days=2)
        store.outbox.claim(courier.queue, "me", lease=LEASE)
        requests = [OutgoingRequest("traces", b"body", "a" * 32, "b" * 16)]
        store.received.stage([], max_wait=1.0, requests=requests, target="there")
        (request,) = store.outbox.claim(forwarding_queue("there"), "me", lease=LEASE)
        store.outbox.record_attempt(forwarding_queue("there"), "me", {request.id: SENT})
        store.forwarding.attach("e", {"score": 0.5})
        store.forwarding.measure()
        store.notifications.search(status="undelivered", channel="oncall", since=clock.now)
        store.outbox.list_queues(NOTIFICATION)
        store.notifications.resend(channel="oncall", ids=["n2"])
        store.notifications.resend()

    scans = {}
    for shape, (statement, parameters) in record_statements(store, work).items():
        with transaction(store, read_only=True) as connection:
            on_sqlite = connection.dialect.name == "sqlite"
            scans[shape] = (sqlite_scans if on_sqlite else postgresql_scans)(connection, statement, parameters)

    assert len(scans) >= 15
    assert {shape: steps for shape, steps in scans.items() if steps} == {}


def test_resent_notifications_keep_their_order(store: TrackingStore, clock: Clock) -> None:
    """Otherwise, an incident could be resolved before it is opened."""
    courier = Courier(store)
    for number in range(9, 0, -1):  # IDs do not reflect the order
        enqueue(store, make_notification(f"n{number}", after=9 - number))
        courier.deliver(REFUSED)
    clock.advance(days=8)
    assert store.notifications.resend() == 0
    assert store.notifications.resend(ids=[f"n{number}" for number in range(1, 10)]) == 9

    claimed = []
    while (name := courier.deliver()) is not None:
        claimed.append(name)
        clock.advance(seconds=1)

    assert claimed == [f"n{number}" for number in range(9, 0, -1)]


def test_superseded_notifications_are_not_resent(store: TrackingStore) -> None:
    """A channel that received the resolution does not get the firing notification, unless it has other alerts."""
    resolved = make_alert(state="resolved", resolved_at=NOON)
    enqueue(store, make_notification("n1"), make_notification("n2", make_alert(), make_alert("faq"), after=1))
    enqueue(store, make_notification("n3", channel="mail"), make_notification("n4", resolved, after=2, type="resolved"))
    for channel, name in (("oncall", "n1"), ("oncall", "n2"), ("mail", "n3"), ("oncall", "n4")):
        assert Courier(store, channel).deliver(SENT if name == "n4" else REFUSED) == name

    assert store.notifications.resend(ids=["n1"]) == 0
    assert store.notifications.resend() == 2
    assert {record.notification.id for record in store.notifications.search(status="waiting")} == {"n2", "n3"}


def test_notifications_are_not_resent_after_a_resolution_that_waits(store: TrackingStore) -> None:
    """The channel would be told of the resolution first, and then that the alert is firing."""
    resolved = make_alert(state="resolved", resolved_at=NOON)
    enqueue(store, make_notification("n1"))
    assert Courier(store).deliver(REFUSED) == "n1"
    enqueue(store, make_notification("n2", resolved, after=1, type="resolved"))

    assert store.notifications.resend() == 0
