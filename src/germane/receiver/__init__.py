"""OTLP in: spans and log records of applications in any language become exchanges."""

from __future__ import annotations

from germane.receiver.exchanges import ExchangeBuilder
from germane.receiver.forwarding import ForwardTarget
from germane.receiver.pull import TracePull
from germane.receiver.receiver import Receiver, ReceiverOptions
from germane.receiver.sources import SOURCES
from germane.receiver.spans import Waits

__all__ = [
    "SOURCES",
    "ExchangeBuilder",
    "ForwardTarget",
    "Receiver",
    "ReceiverOptions",
    "TracePull",
    "Waits",
]
