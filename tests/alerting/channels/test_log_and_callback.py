"""The log and callback channels."""

from __future__ import annotations

import asyncio
import logging
import threading

import pytest
from tests.alerting.channels.conftest import a_hostile_message, a_message, an_alert, over

from germane.alert import Alert
from germane.alerting.channels.in_process import Callback, Log
from germane.delivery import DeliveryError


def test_each_alert_is_logged_as_one_warning_line(caplog: pytest.LogCaptureFixture) -> None:
    """Names with any characters stay on one line."""
    asyncio.run(Log().send(a_message(an_alert(), over(an_alert(id="a2", severity="critical")))))
    asyncio.run(Log().send(a_hostile_message()))

    first, second, hostile = caplog.records
    assert first.getMessage() == f"alert firing: {an_alert().message}"
    assert second.getMessage().startswith("alert resolved (critical): ")
    assert hostile.getMessage().isprintable()
    assert {record.levelno for record in caplog.records} == {logging.WARNING}


def test_a_callback_can_be_sync_or_async() -> None:
    """A sync function runs in a thread."""
    got: list[tuple[str, str]] = []

    def plain(alert: Alert) -> None:
        got.append((alert.id, threading.current_thread().name))

    async def on_the_loop(alert: Alert) -> None:
        got.append((alert.id, threading.current_thread().name))

    for function in (plain, on_the_loop, lambda alert: on_the_loop(alert)):
        asyncio.run(Callback(function).send(a_message(an_alert(), an_alert(id="a2"))))

    assert [id_ for id_, _ in got] == ["a1", "a2"] * 3
    assert [name for _, name in got[::2]] == ["germane-callback-0", "MainThread", "MainThread"]
    assert repr(Callback(plain)).startswith("Callback(test_a_callback_can_be_sync_or_async")


def test_a_callback_that_raises_is_called_once_per_alert() -> None:
    """The call is not retried, and the text of its exception is not recorded."""
    got: list[str] = []

    def broken(alert: Alert) -> None:
        got.append(alert.id)
        if alert.id == "a1":
            raise RuntimeError("my-api-key")

    with pytest.raises(DeliveryError) as raised:
        asyncio.run(Callback(broken).send(a_message(an_alert(), an_alert(id="a2"))))

    assert got == ["a1", "a2"]
    assert not raised.value.retryable
    assert raised.value.problem.startswith("RuntimeError at test_log_and_callback.py:")
