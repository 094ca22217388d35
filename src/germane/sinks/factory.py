"""Construction of sinks from the settings."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from germane.settings import Settings
from germane.sinks.langfuse import LangfuseSink
from germane.sinks.mlflow import MLflowSink
from germane.sinks.phoenix import PhoenixSink
from germane.sinks.sink import Sink
from germane.sinks.webhook import WebhookSink

_SINKS: Final[Mapping[str, Callable[[str, Any], Sink]]] = {
    "phoenix": PhoenixSink,
    "mlflow": MLflowSink,
    "langfuse": LangfuseSink,
    "webhook": WebhookSink,
}
"""Sinks by the type in their settings."""


def build_sinks(settings: Settings) -> dict[str, Sink]:
    """Return the configured sinks by name."""
    return {name: _SINKS[sink.type](name, sink) for name, sink in settings.sinks.items()}
