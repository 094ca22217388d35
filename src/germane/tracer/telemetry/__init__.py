"""OpenTelemetry metrics of germane: meters, counters and gauges."""

from __future__ import annotations
