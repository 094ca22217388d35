"""What waits for channels: written with what it tells, taken by one at a time, tried again, and in order."""

from __future__ import annotations

import threading
from datetime import timedelta
from typing import Any

from tests.storage.conftest import NOON, Clock
from tests.storage.test_query_plans import postgresql_scans, recorded, sqlite_scans

from germane.alert import Alert, Change, Event, Notification, key_of
from germane.storage import Advance, Lane, Outcome, Store

LEASE = timedelta(seconds=60)
SENT = Outcome(http_status=200)
BUSY = Outcome(http_status=503, error="status 503", again=timedelta(seconds=5))
REFUSED = Outcome(http_status=400, error="status 400")


def an_alert(route: str = "docs", **given: Any) -> Alert:
    labels = {"service": "shop", "scorer": "answer_relevancy", "route": route}
    told = {"id": f"a-{route}", "rule": "drop", "kind": "drop", "state": "firing", "starts_at": NOON, **given}
    return Alert(key=key_of("drop", labels), labels=labels, evaluated_at=NOON, **told)


def a_notification(id: str = "n1", *alerts: Alert, channel: str = "oncall", after: float = 0, **given: Any) -> Any:
    """Return a notification that was written so many seconds after noon."""
    told = alerts or (an_alert(),)
    return Notification(
        id=id, channel=channel, idempotency_key=f"key-{id}", what=given.pop("what", "firing"), alerts=told,
        event_ids=tuple(f"e-{alert.id}" for alert in told), created_at=NOON + timedelta(seconds=after), **given,
    )  # fmt: skip


def tell(store: Store, *notifications: Notification) -> None:
    assert store.advance(Advance(notifications=notifications))


def test_a_notification_comes_as_it_was_written(store: Store) -> None:
    """With the alerts as they were, the same key, and the number of this try."""
    written = a_notification("n1", an_alert(message="worse \ud83d\ude00", value=0.4), an_alert("faq"))
    tell(store, written)

    taken = store.take_notification("oncall", "me", lease=LEASE)

    assert taken is not None
    assert (taken.id, taken.idempotency_key, taken.what, taken.attempt) == ("n1", "key-n1", "firing", 1)
    assert [alert.route for alert in taken.alerts] == ["docs", "faq"]
    assert taken.alerts[0].message == "worse \U0001f600"
    assert (taken.event_ids, taken.created_at) == (written.event_ids, NOON)


def test_it_is_written_with_what_it_tells_or_not_at_all(store: Store) -> None:
    """A step that comes to nothing tells nobody."""
    event = Event(id="e", alert_id="a-docs", at=NOON, what="fired", after="firing")
    change = Change(alert=an_alert(), event=event, notify=True)
    assert not store.advance(Advance(holder=("watcher", "nobody"), changes=[change], notifications=[a_notification()]))

    assert store.due_channels(["oncall"]) == set()


def test_channels_are_taken_from_apart(store: Store) -> None:
    """A process is given what is for channels that it has."""
    tell(store, a_notification("n1"), a_notification("n2", channel="log"))

    assert store.due_channels(["oncall", "log", "other"]) == {"oncall", "log"}
    assert store.due_channels(["log"]) == {"log"}
    assert store.due_channels([]) == set()
    assert store.take_notification("other", "me", lease=LEASE) is None
    assert store.take_notification("log", "me", lease=LEASE) is not None
    assert store.due_channels(["log"]) == set()


def test_what_one_has_nobody_else_gets_before_the_lease_ends(store: Store, clock: Clock) -> None:
    """Who is gone holds it for no longer; who lives renews it; who has lost it settles nothing."""
    tell(store, a_notification())
    assert store.take_notification("oncall", "first", lease=LEASE)
    clock.advance(seconds=50)
    assert store.take_notification("oncall", "second", lease=LEASE) is None
    assert store.keep_notification("n1", "first", lease=LEASE)
    clock.advance(seconds=50)
    assert store.take_notification("oncall", "second", lease=LEASE) is None
    clock.advance(seconds=11)

    taken = store.take_notification("oncall", "second", lease=LEASE)

    assert taken is not None
    assert (taken.attempt, taken.idempotency_key) == (2, "key-n1")
    assert not store.keep_notification("n1", "first", lease=LEASE)
    assert store.settle_notification("n1", "first", SENT) is None
    assert store.settle_notification("n1", "second", SENT) == "sent"
    assert store.settle_notification("n1", "second", SENT) is None


def test_what_failed_is_tried_again_later(store: Store, clock: Clock) -> None:
    """After the time that was asked for, with what went wrong in its row meanwhile."""
    tell(store, a_notification())
    store.take_notification("oncall", "me", lease=LEASE)
    assert store.settle_notification("n1", "me", BUSY) == "waiting"
    (posted,) = store.notifications(channel="oncall")
    assert (posted.http_status, posted.error, posted.settled_at) == (503, "status 503", None)

    clock.advance(seconds=4.9)
    assert store.take_notification("oncall", "me", lease=LEASE) is None
    clock.advance(seconds=0.1)
    assert store.take_notification("oncall", "me", lease=LEASE) is not None
    assert store.settle_notification("n1", "me", SENT) == "sent"
    (posted,) = store.notifications(status="sent")
    assert (posted.http_status, posted.error, posted.settled_at) == (200, None, clock.now)


def test_a_refusal_is_the_end_and_patience_ends_too(store: Store, clock: Clock) -> None:
    """What may pass is tried for a day, what will not is not tried again."""
    tell(store, a_notification("n1"), a_notification("n2", an_alert("faq")))
    store.take_notification("oncall", "me", lease=LEASE)
    assert store.settle_notification("n1", "me", REFUSED) == "dead"
    store.take_notification("oncall", "me", lease=LEASE)
    clock.advance(hours=24, seconds=-1)
    assert store.settle_notification("n2", "me", BUSY) == "waiting"
    clock.advance(seconds=5)
    store.take_notification("oncall", "me", lease=LEASE)
    assert store.settle_notification("n2", "me", BUSY) == "dead"

    assert store.due_channels(["oncall"]) == set()
    assert store.lanes() == [
        Lane(channel="oncall", dead=2, died_at=clock.now, error="status 503"),
    ]


def test_nobody_hears_of_the_end_of_an_alert_before_its_beginning(store: Store, clock: Clock) -> None:
    """What is about the same alert waits for what came before it; what is about others does not."""
    over = an_alert(state="resolved", resolved_at=NOON)
    tell(store, a_notification("n1"), a_notification("n2", over, after=1, what="resolved"))
    tell(store, a_notification("n3", an_alert("faq"), after=2))
    store.take_notification("oncall", "me", lease=LEASE)
    store.settle_notification("n1", "me", BUSY)

    other = store.take_notification("oncall", "me", lease=LEASE)
    assert other is not None
    assert other.id == "n3"
    assert store.take_notification("oncall", "me", lease=LEASE) is None

    clock.advance(seconds=5)
    for expected in ("n1", "n2"):
        taken = store.take_notification("oncall", "me", lease=LEASE)
        assert taken is not None
        assert taken.id == expected
        store.settle_notification(taken.id, "me", SENT)


def test_what_a_process_hands_back_is_due_at_once(store: Store) -> None:
    """A process that stops keeps nothing waiting for the end of its lease."""
    tell(store, a_notification("n1"), a_notification("n2", an_alert("faq")))
    store.take_notification("oncall", "me", lease=LEASE)
    store.take_notification("oncall", "other", lease=LEASE)

    assert store.release_notifications("me") == 1
    assert store.release_notifications("me") == 0
    taken = store.take_notification("oncall", "third", lease=LEASE)
    assert taken is not None
    assert (taken.id, taken.attempt) == ("n1", 2)


def test_the_dead_can_be_sent_again(store: Store, clock: Clock) -> None:
    """By channel or by id, with all their patience; what was sent stays sent."""
    tell(store, *(a_notification(f"n{number}", an_alert(f"r{number}")) for number in range(4)))
    tell(store, a_notification("other", channel="mail"))
    for number in range(4):
        store.take_notification("oncall", "me", lease=LEASE)
        store.settle_notification(f"n{number}", "me", REFUSED if number else SENT)
    clock.advance(days=2)

    assert store.resend(channel="mail") == 0
    assert store.resend(ids=["n1", "n0"]) == 1
    assert store.resend(channel="oncall", dead_for=timedelta(days=1)) == 0
    assert store.resend(channel="oncall") == 2
    taken = store.take_notification("oncall", "me", lease=LEASE)
    assert taken is not None
    assert (taken.id, taken.attempt, taken.idempotency_key) == ("n1", 1, "key-n1")
    assert store.settle_notification("n1", "me", BUSY) == "waiting"


def test_what_was_dated_by_a_clock_that_was_set_back_holds_nothing_up(store: Store, clock: Clock) -> None:
    """A lease or a wait of the future ends at once."""
    clock.advance(days=3)
    tell(store, a_notification())
    store.take_notification("oncall", "me", lease=LEASE)
    clock.advance(days=-3)

    assert store.due_channels(["oncall"]) == {"oncall"}
    assert store.take_notification("oncall", "other", lease=LEASE) is not None


def test_each_is_taken_once_however_many_take(store: Store) -> None:
    """Two processes at work at once share what there is."""
    tell(store, *(a_notification(f"n{number}", an_alert(f"r{number}"), after=number) for number in range(20)))
    taken: list[str] = []

    def work(owner: str) -> None:
        while store.due_channels(["oncall"]):
            mine = store.take_notification("oncall", owner, lease=LEASE)
            if mine is not None:
                taken.append(mine.id)
                store.settle_notification(mine.id, owner, SENT)

    threads = [threading.Thread(target=work, args=(f"owner-{number}",)) for number in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert sorted(taken) == sorted(f"n{number}" for number in range(20))
    assert {posted.notification.attempt for posted in store.notifications()} == {1}


def test_a_lane_tells_what_waits_and_what_died_lately(store: Store, clock: Clock) -> None:
    """Per channel: how much, since when, and what went wrong."""
    tell(store, a_notification("n1"), a_notification("n2", an_alert("faq"), after=60))
    tell(store, a_notification("n3", channel="mail"))
    store.take_notification("oncall", "me", lease=LEASE)
    store.settle_notification("n1", "me", BUSY)
    store.take_notification("mail", "me", lease=LEASE)
    store.settle_notification("n3", "me", REFUSED)

    assert store.lanes() == [
        Lane(channel="mail", dead=1, died_at=NOON, error="status 400"),
        Lane(channel="oncall", waiting=2, since=NOON, failing="status 503"),
    ]
    clock.advance(days=8)
    assert [lane.channel for lane in store.lanes()] == ["oncall"]


def test_every_query_uses_an_index(store: Store, clock: Clock) -> None:
    """A year of notifications that were sent costs a tick nothing."""

    def work() -> None:
        tell(store, a_notification("n1"), a_notification("n2", an_alert("faq")))
        store.due_channels(["oncall", "log"])
        for name, outcome in {"n1": SENT, "n2": REFUSED}.items():
            store.take_notification("oncall", "me", lease=LEASE)
            store.keep_notification(name, "me", lease=LEASE)
            store.settle_notification(name, "me", outcome)
        store.release_notifications("me")
        store.notifications(status="dead", channel="oncall", since=clock.now)
        store.lanes()
        store.resend(channel="oncall", ids=["n2"])
        store.resend()

    scans = {}
    for shape, (statement, parameters) in recorded(store, work).items():
        with store._database.read() as connection:
            on_sqlite = connection.dialect.name == "sqlite"
            scans[shape] = (sqlite_scans if on_sqlite else postgresql_scans)(connection, statement, parameters)

    assert len(scans) >= 10
    assert {shape: steps for shape, steps in scans.items() if steps} == {}


def test_what_nobody_could_try_in_its_time_is_no_news_any_more(store: Store, clock: Clock) -> None:
    """A channel that is named again after weeks pages nobody for what is long over."""
    tell(store, a_notification("n1"), a_notification("n2", an_alert("faq")))
    store.take_notification("oncall", "gone", lease=LEASE)
    store.settle_notification("n1", "gone", BUSY)
    clock.advance(days=20)
    tell(store, a_notification("n3"))  # dated by a host whose clock is twenty days behind

    taken = store.take_notification("oncall", "me", lease=LEASE)

    assert taken is not None
    assert taken.id == "n3"
    dead = {one.notification.id: (one.error, one.settled_at) for one in store.notifications(status="dead")}
    assert dead == {"n1": ("status 503", clock.now), "n2": ("nobody could try it in time", clock.now)}


def test_what_is_sent_again_keeps_its_order(store: Store, clock: Clock) -> None:
    """Or an incident would begin after it has ended, and last for ever."""
    for number in range(9, 0, -1):  # ids say nothing of the order
        tell(store, a_notification(f"n{number}", after=9 - number))
        store.take_notification("oncall", "me", lease=LEASE)
        store.settle_notification(f"n{number}", "me", REFUSED)
    clock.advance(days=8)
    assert store.resend() == 0
    assert store.resend(ids=[f"n{number}" for number in range(1, 10)]) == 9

    taken = []
    while (one := store.take_notification("oncall", "me", lease=LEASE)) is not None:
        taken.append(one.id)
        store.settle_notification(one.id, "me", SENT)
        clock.advance(seconds=1)

    assert taken == [f"n{number}" for number in range(9, 0, -1)]


def test_what_later_news_has_overtaken_stays_dead(store: Store) -> None:
    """Who has heard of the end is not told of the beginning, by this channel; of what else is in it they are."""
    over = an_alert(state="resolved", resolved_at=NOON)
    tell(store, a_notification("n1"), a_notification("n2", an_alert(), an_alert("faq"), after=1))
    tell(store, a_notification("n3", channel="mail"), a_notification("n4", over, after=2, what="resolved"))
    for channel, name in (("oncall", "n1"), ("oncall", "n2"), ("mail", "n3"), ("oncall", "n4")):
        assert store.take_notification(channel, "me", lease=LEASE)
        store.settle_notification(name, "me", SENT if name == "n4" else REFUSED)

    assert store.resend(ids=["n1"]) == 0
    assert store.resend() == 2
    assert {one.notification.id for one in store.notifications(status="waiting")} == {"n2", "n3"}
