"""Construction of sinks from the settings."""

from __future__ import annotations

from typing import assert_never

from germane.settings import (
    AnySink,
    LangfuseSettings,
    MLflowSettings,
    PhoenixSettings,
    Settings,
    WebhookSinkSettings,
)
from germane.sinks.langfuse import LangfuseSink
from germane.sinks.mlflow import MLflowSink
from germane.sinks.phoenix import PhoenixSink
from germane.sinks.sink import Sink
from germane.sinks.webhook import WebhookSink


def build_sinks(settings: Settings) -> dict[str, Sink]:
    """Return the configured sinks by name."""
    return {name: _build_sink(name, sink) for name, sink in settings.sinks.items()}


def _build_sink(name: str, settings: AnySink) -> Sink:
    match settings:
        case PhoenixSettings():
            return PhoenixSink(name, settings)
        case MLflowSettings():
            return MLflowSink(name, settings)
        case LangfuseSettings():
            return LangfuseSink(name, settings)
        case WebhookSinkSettings():
            return WebhookSink(name, settings)
        case _:
            assert_never(settings)
