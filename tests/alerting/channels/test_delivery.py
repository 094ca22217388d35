"""From the database to channels: in order, again and again, beside one another, and never lost."""

from __future__ import annotations

import asyncio
import json
import sqlite3
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from sqlalchemy import select
from tests.alerting.channels.conftest import Answer, Receiver, an_alert, over

from germane.alert import Alert, Change, Event, Notification
from germane.alerting.channels import Message, NotDelivered, Webhook
from germane.alerting.channels.alertmanager import INTERVALS
from germane.daemon_pool import Threads
from germane.errors import StorageError
from germane.monitor import Callback, Monitor
from germane.monitor.jobs.delivery import Delivery, Desk, Lane, Makers
from germane.monitor.loop.backoff import Backoff
from germane.monitor.loop.job import Job
from germane.monitor.loop.leader import Office
from germane.settings import Settings
from germane.settings import channels as settings_of
from germane.storage import Advance, Store
from germane.storage.db.tables import notification

QUICK = Backoff(first=0.05, limit=0.1, longest_asked=0.2)
Start = Callable[..., Monitor]


def tell(store: Store, *alerts: Alert, channel: str = "hook", **given: Any) -> Notification:
    """Write a notification, as the watch does."""
    values: dict[str, Any] = {"id": uuid4().hex, "idempotency_key": uuid4().hex, "created_at": datetime.now(UTC)}
    told = alerts or (an_alert(),)
    what = "resolved" if told[0].state == "resolved" else "firing"
    notification = Notification(channel=channel, alerts=told, event_ids=(), **{"what": what, **values, **given})
    assert store.advance(Advance(notifications=[notification]))
    return notification


class Kept:
    """A channel that keeps what it is sent, or does what it is told instead."""

    answers = False
    problem: str | None = None
    where = "here"

    def __init__(self, *refusals: NotDelivered | None) -> None:
        self.got: list[Message] = []
        self.tries: list[str] = []
        self._refusals = list(refusals)

    async def send(self, message: Message) -> int:
        self.tries.append(message.notification.idempotency_key)
        refusal = self._refusals.pop(0) if self._refusals else None
        if refusal is not None:
            raise refusal
        self.got.append(message)
        return 200


@pytest.fixture
def desk(store: Store) -> Iterator[Desk]:
    threads = Threads(4, name="test-desk")
    yield Desk(
        store=store, owner="me", threads=threads, clock=lambda: datetime.now(UTC), lease=timedelta(seconds=5),
        backoff=QUICK,
    )  # fmt: skip
    threads.close()
    threads.join(60)


@pytest.fixture
def monitor(start: Start, settings: Callable[..., Settings]) -> Callable[..., Monitor]:
    """Start a monitor that has channels, and watches and scores nothing."""

    def monitor(store: Store, channels: Mapping[str, Any] | None = None, **given: Any) -> Monitor:
        off = [{"kind": kind, "enabled": False} for kind in ("drop", "no_data", "scorer_error", "budget_exhausted")]
        told = settings(**{"rules": off, "channels": channels or {}} | given.pop("settings", {}))
        return start(store, settings=told, **given)

    return monitor


def delivered(desk: Desk, channels: Mapping[str, Any], work: Callable[[Delivery], Any]) -> Any:
    """Run a delivery of its own on a loop, for as long as the work takes."""

    async def run() -> Any:
        makers = Makers(
            job=lambda name, do: Job(name, do, clock=desk.clock, quiet=ExitStack),
            office=lambda name, term: Office(desk.store, name, desk.owner, term=term, clock=desk.clock),
        )
        takes = {name: (lambda _: True) for name in channels}
        delivery = Delivery(desk, channels, takes, makers)
        try:
            async with asyncio.timeout(30):
                return await work(delivery)
        finally:
            await delivery.close()

    return asyncio.run(run())


async def looking(delivery: Delivery, condition: Callable[[], object]) -> None:
    """Look again and again, as ticks do."""
    while not condition():
        await delivery.look()
        await asyncio.sleep(0.02)


@pytest.mark.parametrize("url", ["sqlite", "postgresql"], indirect=True)
def test_what_was_written_goes_out_and_is_noted(store: Store, receiver: Receiver, monitor: Any, until: Any) -> None:
    """Once, with the status that came back."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("URL", receiver.url)
        told = tell(store)
        monitor(store, {"hook": {"kind": "webhook", "url": "env:URL"}})

        until(lambda: store.notifications(status="sent"))

    (posted,) = store.notifications()
    assert (posted.status, posted.http_status, posted.error) == ("sent", 200, None)
    assert receiver.keys == [told.idempotency_key]


def test_a_receiver_that_fails_gets_it_again_under_the_same_key(store: Store, receiver: Receiver, desk: Desk) -> None:
    """500, 429 with a time to wait, a closed connection: then it is taken, and the row is as if nothing had been."""
    receiver.answers = [Answer(500), Answer(429, {"Retry-After": "0"}), Answer(0)]
    told = tell(store)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("URL", receiver.url)
        channel = Webhook(settings_of.Webhook(kind="webhook", url="env:URL"))
        delivered(desk, {"hook": channel}, lambda one: looking(one, lambda: len(receiver.posts) == 4))

    assert receiver.keys == [told.idempotency_key] * 4
    assert len({post.body for post in receiver.posts}) == 1


def test_a_time_to_wait_that_was_asked_for_is_kept(store: Store, desk: Desk) -> None:
    """No try comes earlier, though the back-off would have it."""
    asked = NotDelivered("status 429", status=429, asked=0.2)
    times: list[float] = []

    class Timed(Kept):
        async def send(self, message: Message) -> int:
            times.append(asyncio.get_running_loop().time())
            return await super().send(message)

    channel = Timed(asked)
    tell(store)
    delivered(desk, {"hook": channel}, lambda one: looking(one, lambda: channel.got))

    assert times[1] - times[0] > 0.15


def test_a_try_that_failed_is_made_again_without_a_tick(store: Store, desk: Desk) -> None:
    """Ticks may be an hour apart."""
    channel = Kept(NotDelivered("status 500", status=500))

    async def work(delivery: Delivery) -> None:
        await delivery.look()
        while not channel.got:  # noqa: ASYNC110 - nobody tells of it
            await asyncio.sleep(0.01)

    told = tell(store)
    delivered(desk, {"hook": channel}, work)

    assert channel.tries == [told.idempotency_key] * 2


def test_a_refusal_is_dead_and_told_once(store: Store, desk: Desk, caplog: Any) -> None:
    """In the row and in the log, without what came with it; what comes next goes out."""
    channel = Kept(NotDelivered("status 404", status=404, again=False))
    tell(store)
    tell(store, an_alert(id="a2", key="other"))
    again = "alerts go out by hook again; 1 tries failed"
    delivered(desk, {"hook": channel}, lambda one: looking(one, lambda: again in caplog.text))

    (dead,) = store.notifications(status="dead")
    assert (dead.http_status, dead.error) == (404, "status 404")
    assert len(channel.tries) == 2
    assert caplog.text.count("a notification by hook is given up: status 404") == 1


def test_one_channel_that_hangs_holds_up_no_other(store: Store, desk: Desk) -> None:
    """Nor does one that fails."""

    class Hangs(Kept):
        async def send(self, message: Message) -> int:
            await asyncio.Event().wait()
            return 0

    for name in ("slow", "broken", "fine"):
        tell(store, channel=name)
    channels = {"slow": Hangs(), "broken": Kept(*[NotDelivered("status 500")] * 99), "fine": Kept()}
    delivered(desk, channels, lambda one: looking(one, lambda: store.notifications(status="sent")))

    assert {posted.notification.channel for posted in store.notifications(status="waiting")} == {"slow", "broken"}


def test_the_end_of_an_alert_never_arrives_before_its_beginning(store: Store, desk: Desk) -> None:
    """Even when the first try of that fails."""
    channel = Kept(NotDelivered("status 503"), NotDelivered("status 503"))
    tell(store)
    tell(store, over(an_alert()))
    delivered(desk, {"hook": channel}, lambda one: looking(one, lambda: len(channel.got) == 2))

    assert [message.notification.what for message in channel.got] == ["firing", "resolved"]


def test_what_takes_longer_than_a_lease_is_not_sent_twice(url: str, desk: Desk) -> None:
    """It is renewed for as long as the sending process lives."""

    class Slow(Kept):
        begun, sent = False, False

        async def send(self, message: Message) -> int:
            self.begun = True
            while not self.sent:  # noqa: ASYNC110 - nobody tells of it
                await asyncio.sleep(0.01)
            return await super().send(message)

    channel, now, lease = Slow(), [datetime.now(UTC)], timedelta(seconds=0.6)
    store = Store(url, clock=lambda: now[0])  # on which no lease ends while the machine has no time to renew it
    tell(store)

    def lasts_until() -> datetime:
        with store._database.read() as connection:
            return connection.execute(select(notification.c.next_attempt_at)).scalar_one()

    async def work(delivery: Delivery) -> None:
        await looking(delivery, lambda: channel.begun)
        for _ in range(3):
            now[0] += timedelta(seconds=0.4)
            while await desk.call(lasts_until) < now[0] + lease:  # noqa: ASYNC110 - the database tells nobody
                await asyncio.sleep(0.01)
            assert await desk.call(lambda: store.take_notification("hook", "other", lease=lease)) is None
        channel.sent = True
        await looking(delivery, lambda: channel.got)

    delivered(replace(desk, store=store, lease=lease), {"hook": channel}, work)
    store.close()

    assert len(channel.tries) == 1


def test_a_secret_that_is_not_here_leaves_the_work_to_others(
    store: Store, monitor: Any, until: Any, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """This process says why; what is to be told costs no try, and goes out once the secret is there."""
    tell(store)
    running = monitor(store, {"hook": {"kind": "webhook", "url": "env:LATE_URL"}})
    until(lambda: running.status().channel_problems)
    until(lambda: running.status().jobs["deliver"].last_run)
    assert running.status().channel_problems == {"hook": "the environment variable LATE_URL is not set"}
    assert [posted.notification.attempt for posted in store.notifications()] == [0]

    monkeypatch.setenv("LATE_URL", receiver.url)
    until(lambda: store.notifications(status="sent"))
    until(lambda: running.status().channel_problems == {})


def test_a_channel_that_raises_what_nobody_expects_is_held_off(store: Store, desk: Desk) -> None:
    """What it says stays its own; the others go on."""

    class Broken(Kept):
        async def send(self, message: Message) -> int:
            raise RuntimeError("my-api-key")

    fine = Kept()
    tell(store), tell(store, channel="fine")
    delivered(
        desk,
        {"hook": Broken(), "fine": fine},
        lambda one: looking(one, lambda: store.notifications(status="dead") and fine.got),
    )

    (dead,) = store.notifications(status="dead")
    assert dead.error is not None
    assert dead.error.startswith("RuntimeError at test_delivery.py:")


def test_text_is_read_only_for_a_channel_that_is_to_quote(store: Store, desk: Desk, new_exchange: Any) -> None:
    """From the database as it is at the sending: what was erased meanwhile is not quoted."""

    class Quoting(Kept):
        answers = True

    exchange = new_exchange(question="How long?", answer="Two years.")
    store.add([exchange])
    quoting, silent = Quoting(), Kept()
    alert = an_alert(exchange_ids=(exchange.id, "gone"))
    tell(store, alert, channel="quoting"), tell(store, alert, channel="silent")
    channels = {"quoting": quoting, "silent": silent}
    delivered(desk, channels, lambda one: looking(one, lambda: quoting.got and silent.got))

    (quote,) = quoting.got[0].quotes_of(alert)
    assert (quote.exchange_id, quote.question, quote.answer) == (exchange.id, "How long?", "Two years.")
    assert silent.got[0].quotes == {}


def test_what_is_due_still_goes_out_at_the_end(store: Store, desk: Desk) -> None:
    """Draining sends all that is due, and waits for what is on its way."""
    channel = Kept()
    for number in range(5):
        tell(store, an_alert(id=f"a{number}", key=f"k{number}"))
    delivered(desk, {"hook": channel}, lambda one: one.drain())

    assert len(channel.got) == 5
    assert len(store.notifications(status="sent")) == 5


def test_what_is_cut_short_is_due_at_once_for_the_next(store: Store, other_store: Store, desk: Desk) -> None:
    """No lease of a process that has stopped keeps it back."""

    class Hangs(Kept):
        async def send(self, message: Message) -> int:
            self.tries.append("")
            await asyncio.Event().wait()
            return 0

    channel, told = Hangs(), tell(store)
    delivered(desk, {"hook": channel}, lambda one: looking(one, lambda: channel.tries))

    taken = other_store.take_notification("hook", "next", lease=timedelta(seconds=9))
    assert taken is not None
    assert taken.idempotency_key == told.idempotency_key


class Forgets(Kept):
    """A channel that has to be told again and again."""

    every = 0.05

    def __init__(self) -> None:
        super().__init__()
        self.reminded: list[list[tuple[str, str]]] = []

    async def remind(self, alerts: Sequence[Alert], *, link: str | None) -> None:
        self.reminded.append([(alert.id, alert.state) for alert in alerts])


def begin(store: Store, alert: Alert) -> None:
    event = Event(id=uuid4().hex, alert_id=alert.id, at=alert.starts_at, what="fired", after=alert.state)
    assert store.advance(Advance(changes=[Change(alert=alert, event=event)]))


def test_a_channel_that_forgets_is_reminded_of_what_lasts_and_what_is_just_over(store: Store, desk: Desk) -> None:
    """Of what it was told of: not of what was silenced, nor of what is over for longer. No row is written for it."""
    now = datetime.now(UTC)
    for name, notified_at in {"lasts": now, "silent": None}.items():
        begin(store, an_alert(id=name, key=name, notified_at=notified_at))
    tell(store, over(an_alert(id="just", key="just")), created_at=now - timedelta(minutes=4))
    tell(store, over(an_alert(id="long", key="long")), created_at=now - timedelta(minutes=6))
    tell(store, over(an_alert(id="other", key="other")), channel="log", created_at=now)
    channel = Forgets()
    delivered(desk, {"hook": channel}, lambda one: looking(one, lambda: len(channel.reminded) >= 3))

    assert channel.reminded[-1] == [("lasts", "firing"), ("just", "resolved")]
    assert len(store.notifications()) == 3


def test_one_process_reminds(store: Store, other_store: Store, desk: Desk) -> None:
    """The others hold still while it lives."""
    begin(store, an_alert(notified_at=datetime.now(UTC)))
    assert other_store.elect("reminder hook", "other", ttl=timedelta(minutes=1))
    channel = Forgets()

    async def work(delivery: Delivery) -> None:
        for _ in range(10):
            await delivery.look()
            await asyncio.sleep(0.02)

    delivered(desk, {"hook": channel}, work)
    assert channel.reminded == []


def test_who_takes_over_reminds_before_an_alert_ends_by_itself(store: Store, desk: Desk) -> None:
    """A process that is killed ends no alert at a receiver that forgets: that would be told as its end."""
    terms = []

    async def work() -> None:
        def office(name: str, term: timedelta) -> Office:
            terms.append(term)
            return Office(desk.store, name, desk.owner, term=term, clock=desk.clock)

        makers = Makers(job=lambda name, do: Job(name, do, clock=desk.clock, quiet=ExitStack), office=office)
        await Delivery(desk, {"hook": Forgets()}, {"hook": lambda _: True}, makers).close()

    asyncio.run(work())

    found_gone, reminded_anew = terms[0].total_seconds(), Forgets.every
    assert found_gone + reminded_anew < INTERVALS * Forgets.every


def test_a_reminder_that_fails_is_a_problem_of_its_channel(store: Store, desk: Desk) -> None:
    """And is no end of anything."""

    class Away(Forgets):
        async def remind(self, alerts: Sequence[Alert], *, link: str | None) -> None:
            raise NotDelivered("ConnectError")

    begin(store, an_alert(notified_at=datetime.now(UTC)))

    async def work(delivery: Delivery) -> dict[str, str]:
        await looking(delivery, lambda: delivery.problems)
        return delivery.problems

    assert delivered(desk, {"hook": Away()}, work) == {"hook": "ConnectError"}


def test_what_went_out_while_the_database_was_away_is_not_sent_twice(store: Store, url: str, desk: Desk) -> None:
    """What became of it is noted once the database is back."""
    closed = Path(url.removeprefix("sqlite:///"))

    class Cuts(Kept):
        async def send(self, message: Message) -> int:
            await asyncio.to_thread(cut)
            return await super().send(message)

    def cut() -> None:
        with sqlite3.connect(closed, isolation_level=None) as connection:
            connection.execute("ALTER TABLE notification RENAME TO away")
        connection.close()

    def mend() -> None:
        with sqlite3.connect(closed, isolation_level=None) as connection:
            connection.execute("ALTER TABLE away RENAME TO notification")
        connection.close()

    channel, hasty = Cuts(), replace(desk, lease=timedelta(seconds=0.3))
    tell(store)
    lane = Lane("hook", channel, hasty)

    async def work() -> None:
        with pytest.raises(StorageError):
            await lane.empty()
        await asyncio.to_thread(mend)
        async with asyncio.timeout(30):
            await lane.woken()
        await lane.empty()
        lane.close()

    asyncio.run(work())

    assert len(channel.got) == 1
    assert [one.status for one in store.notifications()] == ["sent"]
    assert lane.at_work is None


def test_a_lane_says_once_that_it_fails_and_once_that_it_works(store: Store, desk: Desk, caplog: Any) -> None:
    """A night without a network is two lines in the log."""
    channel = Kept(*[NotDelivered("ConnectError")] * 5)
    lane = Lane("hook", channel, desk)
    tell(store)

    async def work() -> None:
        while not channel.got:
            await lane.empty()
            await asyncio.sleep(0.02)
        lane.close()

    asyncio.run(work())

    assert [record.getMessage() for record in caplog.records] == [
        "an alert did not go out by hook, and others may not: ConnectError",
        "alerts go out by hook again; 5 tries failed",
    ]


@pytest.mark.parametrize("url", ["sqlite", "postgresql"], indirect=True)
def test_two_processes_deliver_each_once(
    store: Store, other_store: Store, monitor: Any, receiver: Receiver, until: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both have the channel, both look at the same time: each key arrives one time."""
    monkeypatch.setenv("URL", receiver.url)
    channels = {"hook": {"kind": "webhook", "url": "env:URL"}}
    for one in (store, other_store):
        monitor(one, channels)
    keys = {tell(store, an_alert(id=f"a{n}", key=f"k{n}")).idempotency_key for n in range(20)}

    until(lambda: len(store.notifications(status="sent")) == 20)

    assert sorted(receiver.keys) == sorted(keys)


def test_what_no_process_has_a_channel_for_waits(
    store: Store, start: Start, settings: Callable[..., Settings], until: Any
) -> None:
    """It costs no try; what a process without scorers has a channel for goes out, whoever wrote it."""
    got: list[Alert] = []
    tell(store, channel="callback"), tell(store, channel="nobody-has-it")
    start(store, settings=settings(), channels={"callback": Callback(got.append)})
    until(lambda: got)

    (waits,) = store.notifications(channel="nobody-has-it")
    assert (waits.status, waits.notification.attempt) == ("waiting", 0)


def test_a_slow_function_does_not_hold_up_the_webhook(
    store: Store, start: Start, settings: Any, receiver: Receiver, until: Any, hold: threading.Event,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    """In a whole monitor, whose looks go on meanwhile."""
    monkeypatch.setenv("URL", receiver.url)
    told = settings(channels={"hook": {"kind": "webhook", "url": "env:URL"}})
    tell(store), tell(store, channel="callback")
    running = start(store, settings=told, channels={"callback": Callback(lambda alert: hold.wait(30))})

    until(lambda: receiver.posts)
    before = running.status().jobs["watch"].last_run
    until(lambda: running.status().jobs["watch"].last_run != before)
    hold.set()
    until(lambda: len(store.notifications(status="sent")) == 2)

    assert json.loads(receiver.posts[0].body)["alerts"][0]["value"] == 0.61
