"""OTLP in: spans and log records of applications in any language become exchanges."""

from __future__ import annotations

from germane.receiver.forwarding import ForwardTarget
from germane.receiver.receiver import Receiver, ReceiverOptions
from germane.receiver.spans import Waits

__all__ = [
    "ForwardTarget",
    "Receiver",
    "ReceiverOptions",
    "Waits",
]
