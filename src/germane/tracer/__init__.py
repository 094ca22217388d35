"""Capture of exchanges inside the application, and attachment of their scores to spans.

Apart from the testing tools, no other package imports OpenTelemetry at runtime.
"""

from __future__ import annotations

from germane.lazy import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__)
