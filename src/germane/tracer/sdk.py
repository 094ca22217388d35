"""The import of OpenTelemetry's SDK, which reads limits from the environment and fails if one of them is invalid."""

from __future__ import annotations

import os

try:
    from opentelemetry.sdk.trace import ReadableSpan, SpanProcessor
except ValueError:  # the creation of a provider will fail, too, and log the reason
    limits = {name: os.environ.pop(name) for name in list(os.environ) if name.endswith(("_LIMIT", "_SIZE"))}
    try:
        from opentelemetry.sdk.trace import ReadableSpan, SpanProcessor
    finally:
        os.environ.update(limits)

__all__ = ["ReadableSpan", "SpanProcessor"]
