"""Recognition of questions, answers and contexts in the spans of other instrumentations.

Pure functions over span data: no OpenTelemetry, no database. :func:`recognize` reads the spans of one trace.
"""

from __future__ import annotations

from germane.lazy import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__)
