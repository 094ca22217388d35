"""What waits for channels: written with what it tells, taken by one at a time, tried again, and in order."""

from __future__ import annotations

import threading
from datetime import timedelta
from typing import Any

from tests.storage.conftest import NOON
from tests.storage.test_query_plans import postgresql_scans, recorded, sqlite_scans

from germane.alert import Alert, AlertChange, AlertEvent, Notification, alert_key
from germane.storage import AlertTransaction, ChannelQueue, DeliveryOutcome, TrackingStore
from germane.testing import Clock

LEASE = timedelta(seconds=60)
SENT = DeliveryOutcome(http_status=200)
BUSY = DeliveryOutcome(http_status=503, error="status 503", retry_after=timedelta(seconds=5))
REFUSED = DeliveryOutcome(http_status=400, error="status 400")


def an_alert(route: str = "docs", **given: Any) -> Alert:
    labels = {"service": "shop", "scorer": "answer_relevancy", "route": route}
    told = {"id": f"a-{route}", "rule": "drop", "type": "drop", "state": "firing", "starts_at": NOON, **given}
    return Alert(key=alert_key("drop", labels), labels=labels, evaluated_at=NOON, **told)


def a_notification(id: str = "n1", *alerts: Alert, channel: str = "oncall", after: float = 0, **given: Any) -> Any:
    """Return a notification that was written so many seconds after noon."""
    told = alerts or (an_alert(),)
    return Notification(
        id=id, channel=channel, idempotency_key=f"key-{id}", type=given.pop("what", "firing"), alerts=told,
        event_ids=tuple(f"e-{alert.id}" for alert in told), created_at=NOON + timedelta(seconds=after), **given,
    )  # fmt: skip


def tell(store: TrackingStore, *notifications: Notification) -> None:
    assert store.alerts.commit(AlertTransaction(notifications=notifications))


def test_a_notification_comes_as_it_was_written(store: TrackingStore) -> None:
    """With the alerts as they were, the same key, and the number of this try."""
    written = a_notification("n1", an_alert(message="worse \ud83d\ude00", value=0.4), an_alert("faq"))
    tell(store, written)

    taken = store.notifications.claim("oncall", "me", lease=LEASE)

    assert taken is not None
    assert (taken.id, taken.idempotency_key, taken.type, taken.attempt) == ("n1", "key-n1", "firing", 1)
    assert [alert.route for alert in taken.alerts] == ["docs", "faq"]
    assert taken.alerts[0].message == "worse \U0001f600"
    assert (taken.event_ids, taken.created_at) == (written.event_ids, NOON)


def test_it_is_written_with_what_it_tells_or_not_at_all(store: TrackingStore) -> None:
    """A step that comes to nothing tells nobody."""
    event = AlertEvent(id="e", alert_id="a-docs", at=NOON, type="fired", after="firing")
    change = AlertChange(alert=an_alert(), event=event, notify=True)
    assert not store.alerts.commit(
        AlertTransaction(holder=("watcher", "nobody"), changes=[change], notifications=[a_notification()])
    )

    assert store.notifications.due_channels(["oncall"]) == set()


def test_channels_are_taken_from_apart(store: TrackingStore) -> None:
    """A process is given what is for channels that it has."""
    tell(store, a_notification("n1"), a_notification("n2", channel="log"))

    assert store.notifications.due_channels(["oncall", "log", "other"]) == {"oncall", "log"}
    assert store.notifications.due_channels(["log"]) == {"log"}
    assert store.notifications.due_channels([]) == set()
    assert store.notifications.claim("other", "me", lease=LEASE) is None
    assert store.notifications.claim("log", "me", lease=LEASE) is not None
    assert store.notifications.due_channels(["log"]) == set()


def test_what_one_has_nobody_else_gets_before_the_lease_ends(store: TrackingStore, clock: Clock) -> None:
    """Who is gone holds it for no longer; who lives renews it; who has lost it settles nothing."""
    tell(store, a_notification())
    assert store.notifications.claim("oncall", "first", lease=LEASE)
    clock.advance(seconds=50)
    assert store.notifications.claim("oncall", "second", lease=LEASE) is None
    assert store.notifications.renew_lease("n1", "first", lease=LEASE)
    clock.advance(seconds=50)
    assert store.notifications.claim("oncall", "second", lease=LEASE) is None
    clock.advance(seconds=11)

    taken = store.notifications.claim("oncall", "second", lease=LEASE)

    assert taken is not None
    assert (taken.attempt, taken.idempotency_key) == (2, "key-n1")
    assert not store.notifications.renew_lease("n1", "first", lease=LEASE)
    assert store.notifications.record_attempt("n1", "first", SENT) is None
    assert store.notifications.record_attempt("n1", "second", SENT) == "sent"
    assert store.notifications.record_attempt("n1", "second", SENT) is None


def test_what_failed_is_tried_again_later(store: TrackingStore, clock: Clock) -> None:
    """After the time that was asked for, with what went wrong in its row meanwhile."""
    tell(store, a_notification())
    store.notifications.claim("oncall", "me", lease=LEASE)
    assert store.notifications.record_attempt("n1", "me", BUSY) == "waiting"
    (posted,) = store.notifications.search(channel="oncall")
    assert (posted.http_status, posted.error, posted.settled_at) == (503, "status 503", None)

    clock.advance(seconds=4.9)
    assert store.notifications.claim("oncall", "me", lease=LEASE) is None
    clock.advance(seconds=0.1)
    assert store.notifications.claim("oncall", "me", lease=LEASE) is not None
    assert store.notifications.record_attempt("n1", "me", SENT) == "sent"
    (posted,) = store.notifications.search(status="sent")
    assert (posted.http_status, posted.error, posted.settled_at) == (200, None, clock.now)


def test_a_refusal_is_the_end_and_patience_ends_too(store: TrackingStore, clock: Clock) -> None:
    """What may pass is tried for a day, what will not is not tried again."""
    tell(store, a_notification("n1"), a_notification("n2", an_alert("faq")))
    store.notifications.claim("oncall", "me", lease=LEASE)
    assert store.notifications.record_attempt("n1", "me", REFUSED) == "undelivered"
    store.notifications.claim("oncall", "me", lease=LEASE)
    clock.advance(hours=24, seconds=-1)
    assert store.notifications.record_attempt("n2", "me", BUSY) == "waiting"
    clock.advance(seconds=5)
    store.notifications.claim("oncall", "me", lease=LEASE)
    assert store.notifications.record_attempt("n2", "me", BUSY) == "undelivered"

    assert store.notifications.due_channels(["oncall"]) == set()
    assert store.notifications.list_channel_queues() == [
        ChannelQueue(
            channel="oncall", undelivered=2, last_undelivered_at=clock.now, last_undelivered_error="status 503"
        ),
    ]


def test_nobody_hears_of_the_end_of_an_alert_before_its_beginning(store: TrackingStore, clock: Clock) -> None:
    """What is about the same alert waits for what came before it; what is about others does not."""
    over = an_alert(state="resolved", resolved_at=NOON)
    tell(store, a_notification("n1"), a_notification("n2", over, after=1, what="resolved"))
    tell(store, a_notification("n3", an_alert("faq"), after=2))
    store.notifications.claim("oncall", "me", lease=LEASE)
    store.notifications.record_attempt("n1", "me", BUSY)

    other = store.notifications.claim("oncall", "me", lease=LEASE)
    assert other is not None
    assert other.id == "n3"
    assert store.notifications.claim("oncall", "me", lease=LEASE) is None

    clock.advance(seconds=5)
    for expected in ("n1", "n2"):
        taken = store.notifications.claim("oncall", "me", lease=LEASE)
        assert taken is not None
        assert taken.id == expected
        store.notifications.record_attempt(taken.id, "me", SENT)


def test_what_a_process_hands_back_is_due_at_once(store: TrackingStore) -> None:
    """A process that stops keeps nothing waiting for the end of its lease."""
    tell(store, a_notification("n1"), a_notification("n2", an_alert("faq")))
    store.notifications.claim("oncall", "me", lease=LEASE)
    store.notifications.claim("oncall", "other", lease=LEASE)

    assert store.notifications.release("me") == 1
    assert store.notifications.release("me") == 0
    taken = store.notifications.claim("oncall", "third", lease=LEASE)
    assert taken is not None
    assert (taken.id, taken.attempt) == ("n1", 2)


def test_the_dead_can_be_sent_again(store: TrackingStore, clock: Clock) -> None:
    """By channel or by id, with all their patience; what was sent stays sent."""
    tell(store, *(a_notification(f"n{number}", an_alert(f"r{number}")) for number in range(4)))
    tell(store, a_notification("other", channel="mail"))
    for number in range(4):
        store.notifications.claim("oncall", "me", lease=LEASE)
        store.notifications.record_attempt(f"n{number}", "me", REFUSED if number else SENT)
    clock.advance(days=2)

    assert store.notifications.resend(channel="mail") == 0
    assert store.notifications.resend(ids=["n1", "n0"]) == 1
    assert store.notifications.resend(channel="oncall", max_age=timedelta(days=1)) == 0
    assert store.notifications.resend(channel="oncall") == 2
    taken = store.notifications.claim("oncall", "me", lease=LEASE)
    assert taken is not None
    assert (taken.id, taken.attempt, taken.idempotency_key) == ("n1", 1, "key-n1")
    assert store.notifications.record_attempt("n1", "me", BUSY) == "waiting"


def test_what_was_dated_by_a_clock_that_was_set_back_holds_nothing_up(store: TrackingStore, clock: Clock) -> None:
    """A lease or a wait of the future ends at once."""
    clock.advance(days=3)
    tell(store, a_notification())
    store.notifications.claim("oncall", "me", lease=LEASE)
    clock.advance(days=-3)

    assert store.notifications.due_channels(["oncall"]) == {"oncall"}
    assert store.notifications.claim("oncall", "other", lease=LEASE) is not None


def test_each_is_taken_once_however_many_take(store: TrackingStore) -> None:
    """Two processes at work at once share what there is."""
    tell(store, *(a_notification(f"n{number}", an_alert(f"r{number}"), after=number) for number in range(20)))
    taken: list[str] = []

    def work(owner: str) -> None:
        while store.notifications.due_channels(["oncall"]):
            mine = store.notifications.claim("oncall", owner, lease=LEASE)
            if mine is not None:
                taken.append(mine.id)
                store.notifications.record_attempt(mine.id, owner, SENT)

    threads = [threading.Thread(target=work, args=(f"owner-{number}",)) for number in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert sorted(taken) == sorted(f"n{number}" for number in range(20))
    assert {posted.notification.attempt for posted in store.notifications.search()} == {1}


def test_a_lane_tells_what_waits_and_what_died_lately(store: TrackingStore, clock: Clock) -> None:
    """Per channel: how much, since when, and what went wrong."""
    tell(store, a_notification("n1"), a_notification("n2", an_alert("faq"), after=60))
    tell(store, a_notification("n3", channel="mail"))
    store.notifications.claim("oncall", "me", lease=LEASE)
    store.notifications.record_attempt("n1", "me", BUSY)
    store.notifications.claim("mail", "me", lease=LEASE)
    store.notifications.record_attempt("n3", "me", REFUSED)

    assert store.notifications.list_channel_queues() == [
        ChannelQueue(channel="mail", undelivered=1, last_undelivered_at=NOON, last_undelivered_error="status 400"),
        ChannelQueue(channel="oncall", waiting=2, waiting_since=NOON, retry_error="status 503"),
    ]
    clock.advance(days=8)
    assert [lane.channel for lane in store.notifications.list_channel_queues()] == ["oncall"]


def test_every_query_uses_an_index(store: TrackingStore, clock: Clock) -> None:
    """A year of notifications that were sent costs a tick nothing."""

    def work() -> None:
        tell(store, a_notification("n1"), a_notification("n2", an_alert("faq")))
        store.notifications.due_channels(["oncall", "log"])
        for name, outcome in {"n1": SENT, "n2": REFUSED}.items():
            store.notifications.claim("oncall", "me", lease=LEASE)
            store.notifications.renew_lease(name, "me", lease=LEASE)
            store.notifications.record_attempt(name, "me", outcome)
        store.notifications.release("me")
        store.notifications.search(status="undelivered", channel="oncall", since=clock.now)
        store.notifications.list_channel_queues()
        store.notifications.resend(channel="oncall", ids=["n2"])
        store.notifications.resend()

    scans = {}
    for shape, (statement, parameters) in recorded(store, work).items():
        with store._database.read() as connection:
            on_sqlite = connection.dialect.name == "sqlite"
            scans[shape] = (sqlite_scans if on_sqlite else postgresql_scans)(connection, statement, parameters)

    assert len(scans) >= 10
    assert {shape: steps for shape, steps in scans.items() if steps} == {}


def test_what_nobody_could_try_in_its_time_is_no_news_any_more(store: TrackingStore, clock: Clock) -> None:
    """A channel that is named again after weeks pages nobody for what is long over."""
    tell(store, a_notification("n1"), a_notification("n2", an_alert("faq")))
    store.notifications.claim("oncall", "gone", lease=LEASE)
    store.notifications.record_attempt("n1", "gone", BUSY)
    clock.advance(days=20)
    tell(store, a_notification("n3"))  # dated by a host whose clock is twenty days behind

    taken = store.notifications.claim("oncall", "me", lease=LEASE)

    assert taken is not None
    assert taken.id == "n3"
    dead = {
        one.notification.id: (one.error, one.settled_at) for one in store.notifications.search(status="undelivered")
    }
    assert dead == {"n1": ("status 503", clock.now), "n2": ("no process attempted delivery in time", clock.now)}


def test_what_is_sent_again_keeps_its_order(store: TrackingStore, clock: Clock) -> None:
    """Or an incident would begin after it has ended, and last for ever."""
    for number in range(9, 0, -1):  # ids say nothing of the order
        tell(store, a_notification(f"n{number}", after=9 - number))
        store.notifications.claim("oncall", "me", lease=LEASE)
        store.notifications.record_attempt(f"n{number}", "me", REFUSED)
    clock.advance(days=8)
    assert store.notifications.resend() == 0
    assert store.notifications.resend(ids=[f"n{number}" for number in range(1, 10)]) == 9

    taken = []
    while (one := store.notifications.claim("oncall", "me", lease=LEASE)) is not None:
        taken.append(one.id)
        store.notifications.record_attempt(one.id, "me", SENT)
        clock.advance(seconds=1)

    assert taken == [f"n{number}" for number in range(9, 0, -1)]


def test_what_later_news_has_overtaken_stays_dead(store: TrackingStore) -> None:
    """Who has heard of the end is not told of the beginning, by this channel; of what else is in it they are."""
    over = an_alert(state="resolved", resolved_at=NOON)
    tell(store, a_notification("n1"), a_notification("n2", an_alert(), an_alert("faq"), after=1))
    tell(store, a_notification("n3", channel="mail"), a_notification("n4", over, after=2, what="resolved"))
    for channel, name in (("oncall", "n1"), ("oncall", "n2"), ("mail", "n3"), ("oncall", "n4")):
        assert store.notifications.claim(channel, "me", lease=LEASE)
        store.notifications.record_attempt(name, "me", SENT if name == "n4" else REFUSED)

    assert store.notifications.resend(ids=["n1"]) == 0
    assert store.notifications.resend() == 2
    assert {one.notification.id for one in store.notifications.search(status="waiting")} == {"n2", "n3"}
