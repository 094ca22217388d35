"""Delivery of queued notifications in order, in parallel, with retries and without losses."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

import pytest
from tests.alerting.channels.conftest import Answer, Receiver, an_alert, over

from germane.alert import Alert, AlertChange, AlertEvent, Notification
from germane.alerting.channels.alertmanager import EXPIRY_INTERVALS
from germane.alerting.channels.channel import ChannelMessage, MessageFormat
from germane.alerting.channels.webhook import Webhook
from germane.daemon_pool import DaemonThreadPool
from germane.delivery import Backoff, DeliveryError
from germane.monitor import Callback, Monitor
from germane.monitor.jobs.delivery import NotificationContext, NotificationDispatcher
from germane.monitor.loop.job import Job
from germane.monitor.loop.leases import LeaderLease
from germane.settings import Settings
from germane.settings import channels as settings_of
from germane.storage import AlertTransaction, TrackingStore

QUICK = Backoff(initial=0.05, maximum=0.1, max_retry_after=0.2)
Start = Callable[..., Monitor]


def tell(store: TrackingStore, *alerts: Alert, channel: str = "hook", **given: Any) -> Notification:
    """Write a notification, as the evaluator does."""
    values: dict[str, Any] = {"id": uuid4().hex, "idempotency_key": uuid4().hex, "created_at": datetime.now(UTC)}
    included = alerts or (an_alert(),)
    what = "resolved" if included[0].state == "resolved" else "firing"
    notification = Notification(channel=channel, alerts=included, event_ids=(), **{"type": what, **values, **given})
    assert store.alerts.commit(AlertTransaction(notifications=[notification]))
    return notification


class Kept:
    """A channel that records messages, or calls a function instead."""

    include_text = False
    config_error: str | None = None
    destination = "here"

    def __init__(self, *refusals: DeliveryError | None) -> None:
        self.got: list[ChannelMessage] = []
        self.tries: list[str] = []
        self._refusals = list(refusals)

    async def send(self, message: ChannelMessage) -> int:
        self.tries.append(message.notification.idempotency_key)
        refusal = self._refusals.pop(0) if self._refusals else None
        if refusal is not None:
            raise refusal
        self.got.append(message)
        return 200


@pytest.fixture
def desk(store: TrackingStore) -> Iterator[NotificationContext]:
    threads = DaemonThreadPool(4, name="test-desk")
    yield NotificationContext(
        store=store, owner="me", threads=threads, clock=lambda: datetime.now(UTC), lease=timedelta(seconds=5),
        backoff=QUICK,
    )  # fmt: skip
    threads.close()
    threads.join(60)


@pytest.fixture
def monitor(start: Start, settings: Callable[..., Settings]) -> Callable[..., Monitor]:
    """Start a monitor with channels, without rules or scorers."""

    def monitor(store: TrackingStore, channels: Mapping[str, Any] | None = None, **given: Any) -> Monitor:
        off = [
            {"type": kind, "enabled": False}
            for kind in ("drop", "no_data", "scorer_error", "budget_exhausted", "judge_drift")
        ]
        configured = settings(**{"rules": off, "channels": channels or {}} | given.pop("settings", {}))
        return start(store, settings=configured, **given)

    return monitor


def delivered(
    desk: NotificationContext, channels: Mapping[str, Any], work: Callable[[NotificationDispatcher], Any]
) -> Any:
    """Run a dispatcher on an event loop for as long as the work takes."""

    async def run() -> Any:
        takes = {name: (lambda _: True) for name in channels}
        delivery = NotificationDispatcher(
            desk,
            channels,
            takes,
            new_job=lambda name, do: Job(name, do, clock=desk.clock, suppressed=ExitStack),
            new_lease=lambda name, term: LeaderLease(desk.store, name, desk.owner, ttl=term, clock=desk.clock),
        )
        try:
            async with asyncio.timeout(30):
                return await work(delivery)
        finally:
            await delivery.close()

    return asyncio.run(run())


async def looking(delivery: NotificationDispatcher, condition: Callable[[], object]) -> None:
    """Poll repeatedly, as the scheduler does."""
    while not condition():
        await delivery.wake_due()
        await asyncio.sleep(0.02)


@pytest.mark.parametrize("url", ["sqlite", "postgresql"], indirect=True)
def test_a_queued_notification_is_sent_and_recorded(
    store: TrackingStore, receiver: Receiver, monitor: Any, until: Any
) -> None:
    """It is sent once, and the status of the response is stored."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("URL", receiver.url)
        queued = tell(store)
        monitor(store, {"hook": {"type": "webhook", "url": "env:URL"}})

        until(lambda: store.notifications.search(status="sent"))

    (posted,) = store.notifications.search()
    assert (posted.status, posted.http_status, posted.error) == ("sent", 200, None)
    assert receiver.keys == [queued.idempotency_key]


def test_a_failed_delivery_is_retried_with_the_same_idempotency_key(
    store: TrackingStore, receiver: Receiver, desk: NotificationContext, caplog: Any
) -> None:
    """Delivery succeeds after a 500, a 429 and a closed connection. The outage is logged in two lines."""
    receiver.answers = [Answer(500), Answer(429, {"Retry-After": "0"}), Answer(0)]
    queued = tell(store)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("URL", receiver.url)
        channel = Webhook(settings_of.WebhookSettings(type="webhook", url="env:URL"))
        # The recovery is logged after the notification is marked as sent.
        delivered(desk, {"hook": channel}, lambda one: looking(one, lambda: len(caplog.records) == 2))

    assert len(store.notifications.search(status="sent")) == 1
    assert receiver.keys == [queued.idempotency_key] * 4
    assert len({post.body for post in receiver.posts}) == 1
    failure, recovery = (record.getMessage() for record in caplog.records)
    assert failure.startswith("channel hook failed to deliver an alert: status 500; further failures are not logged")
    assert recovery == "channel hook has recovered after 3 failed attempts"


def test_a_process_without_the_channel_secret_leaves_notifications_to_others(
    store: TrackingStore, monitor: Any, until: Any, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The status gives the reason, and no attempt is counted."""
    tell(store)
    running = monitor(store, {"hook": {"type": "webhook", "url": "env:LATE_URL"}})
    until(lambda: running.status().channel_problems)
    until(lambda: running.status().jobs["deliver"].last_run)
    assert running.status().channel_problems == {"hook": "the environment variable LATE_URL is not set"}
    assert [posted.notification.attempt for posted in store.notifications.search()] == [0]

    monkeypatch.setenv("LATE_URL", receiver.url)
    until(lambda: store.notifications.search(status="sent"))
    until(lambda: running.status().channel_problems == {})


def test_answers_are_loaded_only_for_channels_that_include_text(
    store: TrackingStore, desk: NotificationContext, new_exchange: Any
) -> None:
    """Text is loaded at the time of sending, so erased text is not quoted."""

    class Quoting(Kept):
        include_text = True

    exchange = new_exchange(question="How long?", answer="Two years.")
    store.exchanges.add([exchange])
    quoting, silent = Quoting(), Kept()
    alert = an_alert(exchange_ids=(exchange.id, "gone"))
    tell(store, alert, channel="quoting"), tell(store, alert, channel="silent")
    channels = {"quoting": quoting, "silent": silent}
    delivered(desk, channels, lambda one: looking(one, lambda: quoting.got and silent.got))

    (quote,) = quoting.got[0].quotes_for(alert)
    assert (quote.exchange_id, quote.question, quote.answer) == (exchange.id, "How long?", "Two years.")
    assert silent.got[0].quotes == {}


def test_draining_the_channels_sends_all_due_notifications(store: TrackingStore, desk: NotificationContext) -> None:
    """Draining also waits for deliveries in progress."""
    channel = Kept()
    for number in range(5):
        tell(store, an_alert(id=f"a{number}", key=f"k{number}"))
    delivered(desk, {"hook": channel}, lambda one: one.drain())

    assert len(channel.got) == 5
    assert len(store.notifications.search(status="sent")) == 5


class Forgets(Kept):
    """A channel to which firing alerts must be resent."""

    resend_interval = 0.05

    def __init__(self) -> None:
        super().__init__()
        self.reminded: list[list[tuple[str, str]]] = []

    async def resend(self, alerts: Sequence[Alert], *, format: MessageFormat) -> None:  # noqa: A002
        self.reminded.append([(alert.id, alert.state) for alert in alerts])


def begin(store: TrackingStore, alert: Alert) -> None:
    event = AlertEvent(id=uuid4().hex, alert_id=alert.id, at=alert.starts_at, type="fired", after=alert.state)
    assert store.alerts.commit(AlertTransaction(changes=[AlertChange(alert=alert, event=event)]))


def test_firing_and_recently_resolved_alerts_are_resent_to_alertmanager(
    store: TrackingStore, desk: NotificationContext
) -> None:
    """Silenced alerts and alerts that resolved earlier are not resent. No row is written."""
    now = datetime.now(UTC)
    for name, notified_at in {"lasts": now, "silent": None}.items():
        begin(store, an_alert(id=name, key=name, notified_at=notified_at))
    tell(store, over(an_alert(id="just", key="just")), created_at=now - timedelta(minutes=4))
    tell(store, over(an_alert(id="long", key="long")), created_at=now - timedelta(minutes=6))
    tell(store, over(an_alert(id="other", key="other")), channel="log", created_at=now)
    channel = Forgets()
    delivered(desk, {"hook": channel}, lambda one: looking(one, lambda: len(channel.reminded) >= 3))

    assert channel.reminded[-1] == [("lasts", "firing"), ("just", "resolved")]
    assert len(store.notifications.search()) == 3


def test_only_one_process_resends_alerts(
    store: TrackingStore, other_store: TrackingStore, desk: NotificationContext
) -> None:
    """Other processes do nothing while its lease lasts."""
    begin(store, an_alert(notified_at=datetime.now(UTC)))
    assert other_store.workers.acquire_lease("reminder hook", "other", ttl=timedelta(minutes=1))
    channel = Forgets()

    async def work(delivery: NotificationDispatcher) -> None:
        for _ in range(10):
            await delivery.wake_due()
            await asyncio.sleep(0.02)

    delivered(desk, {"hook": channel}, work)
    assert channel.reminded == []


def test_the_successor_of_a_killed_process_resends_alerts_before_they_expire(
    store: TrackingStore, desk: NotificationContext
) -> None:
    """Alerts do not expire at the receiver when a process is killed."""
    terms = []

    async def work() -> None:
        def office(name: str, term: timedelta) -> LeaderLease:
            terms.append(term)
            return LeaderLease(desk.store, name, desk.owner, ttl=term, clock=desk.clock)

        dispatcher = NotificationDispatcher(
            desk,
            {"hook": Forgets()},
            {"hook": lambda _: True},
            new_job=lambda name, do: Job(name, do, clock=desk.clock, suppressed=ExitStack),
            new_lease=office,
        )
        await dispatcher.close()

    asyncio.run(work())

    found_gone, reminded_anew = terms[0].total_seconds(), Forgets.resend_interval
    assert found_gone + reminded_anew < EXPIRY_INTERVALS * Forgets.resend_interval


def test_a_failed_resend_is_shown_as_a_channel_problem(store: TrackingStore, desk: NotificationContext) -> None:
    """The channel keeps running."""

    class Away(Forgets):
        async def resend(self, alerts: Sequence[Alert], *, format: MessageFormat) -> None:  # noqa: A002
            raise DeliveryError("ConnectError")

    begin(store, an_alert(notified_at=datetime.now(UTC)))

    async def work(delivery: NotificationDispatcher) -> dict[str, str]:
        await looking(delivery, lambda: delivery.problems)
        return delivery.problems

    assert delivered(desk, {"hook": Away()}, work) == {"hook": "ConnectError"}


@pytest.mark.parametrize("url", ["sqlite", "postgresql"], indirect=True)
def test_two_processes_deliver_each_notification_exactly_once(
    store: TrackingStore,
    other_store: TrackingStore,
    monitor: Any,
    receiver: Receiver,
    until: Any,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Both processes are configured with the channel and poll at the same time."""
    monkeypatch.setenv("URL", receiver.url)
    channels = {"hook": {"type": "webhook", "url": "env:URL"}}
    for one in (store, other_store):
        monitor(one, channels)
    keys = {tell(store, an_alert(id=f"a{n}", key=f"k{n}")).idempotency_key for n in range(20)}

    until(lambda: len(store.notifications.search(status="sent")) == 20)

    assert sorted(receiver.keys) == sorted(keys)


def test_notifications_for_channels_that_are_not_configured_stay_queued(
    store: TrackingStore, start: Start, settings: Callable[..., Settings], until: Any
) -> None:
    """Waiting does not use an attempt, and processes without scorers also deliver."""
    got: list[Alert] = []
    tell(store, channel="callback"), tell(store, channel="nobody-has-it")
    start(store, settings=settings(), channels={"callback": Callback(got.append)})
    until(lambda: got)

    (waits,) = store.notifications.search(channel="nobody-has-it")
    assert (waits.status, waits.notification.attempt) == ("waiting", 0)


def test_a_slow_callback_does_not_delay_the_webhook(
    store: TrackingStore, start: Start, settings: Any, receiver: Receiver, until: Any, hold: threading.Event,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    """Evaluations continue in the meantime, in a complete monitor."""
    monkeypatch.setenv("URL", receiver.url)
    configured = settings(channels={"hook": {"type": "webhook", "url": "env:URL"}})
    tell(store), tell(store, channel="callback")
    running = start(store, settings=configured, channels={"callback": Callback(lambda alert: hold.wait(30))})

    until(lambda: receiver.posts)
    before = running.status().jobs["evaluate"].last_run
    until(lambda: running.status().jobs["evaluate"].last_run != before)
    hold.set()
    until(lambda: len(store.notifications.search(status="sent")) == 2)

    assert json.loads(receiver.posts[0].body)["alerts"][0]["value"] == 0.61
