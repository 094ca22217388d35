"""The dashboard: an ASGI application with server-rendered pages and Prometheus metrics."""

from __future__ import annotations

from germane.lazy import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__)
