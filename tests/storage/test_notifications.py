"""The notification outbox: exclusive claims, retries, and delivery in order."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from tests.storage.conftest import NOON
from tests.storage.test_query_plans import postgresql_scans, record_statements, sqlite_scans

from germane.alert import Alert, AlertChange, AlertEvent, Notification, alert_key
from germane.storage import AlertTransaction, ChannelQueue, DeliveryOutcome, TrackingStore
from germane.testing import Clock, transaction

LEASE = timedelta(seconds=60)
SENT = DeliveryOutcome(http_status=200)
RETRYABLE_FAILURE = DeliveryOutcome(http_status=503, error="status 503", retry_after=timedelta(seconds=5))
PERMANENT_FAILURE = DeliveryOutcome(http_status=400, error="status 400")


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

    claimed = store.notifications.claim("oncall", "me", lease=LEASE)

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

    assert store.notifications.due_channels(["oncall"]) == set()


def test_each_channel_claims_only_its_own_notifications(store: TrackingStore) -> None:
    """A process claims notifications only for the channels it names."""
    enqueue(store, make_notification("n1"), make_notification("n2", channel="log"))

    assert store.notifications.due_channels(["oncall", "log", "other"]) == {"oncall", "log"}
    assert store.notifications.due_channels(["log"]) == {"log"}
    assert store.notifications.due_channels([]) == set()
    assert store.notifications.claim("other", "me", lease=LEASE) is None
    assert store.notifications.claim("log", "me", lease=LEASE) is not None
    assert store.notifications.due_channels(["log"]) == set()


def test_retryable_failure_is_retried_after_the_requested_delay(store: TrackingStore, clock: Clock) -> None:
    """Status and error are stored until the next attempt."""
    enqueue(store, make_notification())
    store.notifications.claim("oncall", "me", lease=LEASE)
    assert store.notifications.record_attempt("n1", "me", RETRYABLE_FAILURE) == "waiting"
    (record,) = store.notifications.search(channel="oncall")
    assert (record.http_status, record.error, record.settled_at) == (503, "status 503", None)

    clock.advance(seconds=4.9)
    assert store.notifications.claim("oncall", "me", lease=LEASE) is None
    clock.advance(seconds=0.1)
    assert store.notifications.claim("oncall", "me", lease=LEASE) is not None
    assert store.notifications.record_attempt("n1", "me", SENT) == "sent"
    (record,) = store.notifications.search(status="sent")
    assert (record.http_status, record.error, record.settled_at) == (200, None, clock.now)


def test_permanent_failures_and_expired_retries_are_marked_undelivered(store: TrackingStore, clock: Clock) -> None:
    """Retryable failures are retried for a day; permanent ones are not retried."""
    enqueue(store, make_notification("n1"), make_notification("n2", make_alert("faq")))
    store.notifications.claim("oncall", "me", lease=LEASE)
    assert store.notifications.record_attempt("n1", "me", PERMANENT_FAILURE) == "undelivered"
    store.notifications.claim("oncall", "me", lease=LEASE)
    clock.advance(hours=24, seconds=-1)
    assert store.notifications.record_attempt("n2", "me", RETRYABLE_FAILURE) == "waiting"
    clock.advance(seconds=5)
    store.notifications.claim("oncall", "me", lease=LEASE)
    assert store.notifications.record_attempt("n2", "me", RETRYABLE_FAILURE) == "undelivered"

    assert store.notifications.due_channels(["oncall"]) == set()
    assert store.notifications.list_channel_queues() == [
        ChannelQueue(
            channel="oncall", undelivered=2, last_undelivered_at=clock.now, last_undelivered_error="status 503"
        ),
    ]


def test_notifications_about_one_alert_are_delivered_in_order(store: TrackingStore, clock: Clock) -> None:
    """A later notification waits for an earlier one about the same alert; other alerts are not delayed."""
    resolved = make_alert(state="resolved", resolved_at=NOON)
    enqueue(store, make_notification("n1"), make_notification("n2", resolved, after=1, type="resolved"))
    enqueue(store, make_notification("n3", make_alert("faq"), after=2))
    store.notifications.claim("oncall", "me", lease=LEASE)
    store.notifications.record_attempt("n1", "me", RETRYABLE_FAILURE)

    other = store.notifications.claim("oncall", "me", lease=LEASE)
    assert other is not None
    assert other.id == "n3"
    assert store.notifications.claim("oncall", "me", lease=LEASE) is None

    clock.advance(seconds=5)
    for expected in ("n1", "n2"):
        claimed = store.notifications.claim("oncall", "me", lease=LEASE)
        assert claimed is not None
        assert claimed.id == expected
        store.notifications.record_attempt(claimed.id, "me", SENT)


def test_released_notification_is_due_immediately(store: TrackingStore) -> None:
    """A stopping process does not keep notifications until its lease expires."""
    enqueue(store, make_notification("n1"), make_notification("n2", make_alert("faq")))
    store.notifications.claim("oncall", "me", lease=LEASE)
    store.notifications.claim("oncall", "other", lease=LEASE)

    assert store.notifications.release("me") == 1
    assert store.notifications.release("me") == 0
    claimed = store.notifications.claim("oncall", "third", lease=LEASE)
    assert claimed is not None
    assert (claimed.id, claimed.attempt) == ("n1", 2)


def test_undelivered_notifications_can_be_resent(store: TrackingStore, clock: Clock) -> None:
    """Resending by channel or ID resets the retries; sent notifications are not sent again."""
    enqueue(store, *(make_notification(f"n{number}", make_alert(f"r{number}")) for number in range(4)))
    enqueue(store, make_notification("other", channel="mail"))
    for number in range(4):
        store.notifications.claim("oncall", "me", lease=LEASE)
        store.notifications.record_attempt(f"n{number}", "me", PERMANENT_FAILURE if number else SENT)
    clock.advance(days=2)

    assert store.notifications.resend(channel="mail") == 0
    assert store.notifications.resend(ids=["n1", "n0"]) == 1
    assert store.notifications.resend(channel="oncall", max_age=timedelta(days=1)) == 0
    assert store.notifications.resend(channel="oncall") == 2
    claimed = store.notifications.claim("oncall", "me", lease=LEASE)
    assert claimed is not None
    assert (claimed.id, claimed.attempt, claimed.idempotency_key) == ("n1", 1, "key-n1")
    assert store.notifications.record_attempt("n1", "me", RETRYABLE_FAILURE) == "waiting"


def test_setting_the_clock_back_does_not_delay_notifications(store: TrackingStore, clock: Clock) -> None:
    """Leases and retry times far in the future are ignored."""
    clock.advance(days=3)
    enqueue(store, make_notification())
    store.notifications.claim("oncall", "me", lease=LEASE)
    clock.advance(days=-3)

    assert store.notifications.due_channels(["oncall"]) == {"oncall"}
    assert store.notifications.claim("oncall", "other", lease=LEASE) is not None


def test_channel_queue_reports_waiting_and_undelivered_notifications(store: TrackingStore, clock: Clock) -> None:
    """Each channel has counts, the waiting time and the latest errors. Old failures are omitted."""
    enqueue(store, make_notification("n1"), make_notification("n2", make_alert("faq"), after=60))
    enqueue(store, make_notification("n3", channel="mail"))
    store.notifications.claim("oncall", "me", lease=LEASE)
    store.notifications.record_attempt("n1", "me", RETRYABLE_FAILURE)
    store.notifications.claim("mail", "me", lease=LEASE)
    store.notifications.record_attempt("n3", "me", PERMANENT_FAILURE)

    assert store.notifications.list_channel_queues() == [
        ChannelQueue(channel="mail", undelivered=1, last_undelivered_at=NOON, last_undelivered_error="status 400"),
        ChannelQueue(channel="oncall", waiting=2, waiting_since=NOON, retry_error="status 503"),
    ]
    clock.advance(days=8)
    assert [channel_queue.channel for channel_queue in store.notifications.list_channel_queues()] == ["oncall"]


def test_every_notification_query_uses_an_index(store: TrackingStore, clock: Clock) -> None:
    """Sent notifications do not slow down polling."""

    def work() -> None:
        enqueue(store, make_notification("n1"), make_notification("n2", make_alert("faq")))
        store.notifications.due_channels(["oncall", "log"])
        for name, outcome in {"n1": SENT, "n2": PERMANENT_FAILURE}.items():
            store.notifications.claim("oncall", "me", lease=LEASE)
            store.notifications.renew_lease(name, "me", lease=LEASE)
            store.notifications.record_attempt(name, "me", outcome)
        store.notifications.release("me")
        store.notifications.search(status="undelivered", channel="oncall", since=clock.now)
        store.notifications.list_channel_queues()
        store.notifications.resend(channel="oncall", ids=["n2"])
        store.notifications.resend()

    scans = {}
    for shape, (statement, parameters) in record_statements(store, work).items():
        with transaction(store, read_only=True) as connection:
            on_sqlite = connection.dialect.name == "sqlite"
            scans[shape] = (sqlite_scans if on_sqlite else postgresql_scans)(connection, statement, parameters)

    assert len(scans) >= 10
    assert {shape: steps for shape, steps in scans.items() if steps} == {}


def test_expired_notifications_are_marked_undelivered(store: TrackingStore, clock: Clock) -> None:
    """A channel that is configured again after several weeks does not send outdated notifications."""
    enqueue(store, make_notification("n1"), make_notification("n2", make_alert("faq")))
    store.notifications.claim("oncall", "gone", lease=LEASE)
    store.notifications.record_attempt("n1", "gone", RETRYABLE_FAILURE)
    clock.advance(days=20)
    enqueue(store, make_notification("n3"))  # created by a host whose clock is twenty days behind

    claimed = store.notifications.claim("oncall", "me", lease=LEASE)

    assert claimed is not None
    assert claimed.id == "n3"
    undelivered_errors = {
        record.notification.id: (record.error, record.settled_at)
        for record in store.notifications.search(status="undelivered")
    }
    assert undelivered_errors == {
        "n1": ("status 503", clock.now),
        "n2": ("no process attempted delivery in time", clock.now),
    }


def test_resent_notifications_keep_their_order(store: TrackingStore, clock: Clock) -> None:
    """Otherwise, an incident could be resolved before it is opened."""
    for number in range(9, 0, -1):  # IDs do not reflect the order
        enqueue(store, make_notification(f"n{number}", after=9 - number))
        store.notifications.claim("oncall", "me", lease=LEASE)
        store.notifications.record_attempt(f"n{number}", "me", PERMANENT_FAILURE)
    clock.advance(days=8)
    assert store.notifications.resend() == 0
    assert store.notifications.resend(ids=[f"n{number}" for number in range(1, 10)]) == 9

    claimed = []
    while (one := store.notifications.claim("oncall", "me", lease=LEASE)) is not None:
        claimed.append(one.id)
        store.notifications.record_attempt(one.id, "me", SENT)
        clock.advance(seconds=1)

    assert claimed == [f"n{number}" for number in range(9, 0, -1)]


def test_superseded_notifications_are_not_resent(store: TrackingStore) -> None:
    """A channel that received the resolution does not get the firing notification, unless it has other alerts."""
    resolved = make_alert(state="resolved", resolved_at=NOON)
    enqueue(store, make_notification("n1"), make_notification("n2", make_alert(), make_alert("faq"), after=1))
    enqueue(store, make_notification("n3", channel="mail"), make_notification("n4", resolved, after=2, type="resolved"))
    for channel, name in (("oncall", "n1"), ("oncall", "n2"), ("mail", "n3"), ("oncall", "n4")):
        assert store.notifications.claim(channel, "me", lease=LEASE)
        store.notifications.record_attempt(name, "me", SENT if name == "n4" else PERMANENT_FAILURE)

    assert store.notifications.resend(ids=["n1"]) == 0
    assert store.notifications.resend() == 2
    assert {record.notification.id for record in store.notifications.search(status="waiting")} == {"n2", "n3"}


def test_notifications_are_not_resent_after_a_resolution_that_waits(store: TrackingStore) -> None:
    """The channel would be told of the resolution first, and then that the alert is firing."""
    resolved = make_alert(state="resolved", resolved_at=NOON)
    enqueue(store, make_notification("n1"))
    assert store.notifications.claim("oncall", "me", lease=LEASE)
    store.notifications.record_attempt("n1", "me", PERMANENT_FAILURE)
    enqueue(store, make_notification("n2", resolved, after=1, type="resolved"))

    assert store.notifications.resend() == 0
