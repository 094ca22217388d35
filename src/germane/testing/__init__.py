"""Testing tools for germane and for applications that use it. They need no network, API key or model."""

from __future__ import annotations

from germane.lazy import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__)
