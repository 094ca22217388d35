"""Read models for the dashboard, reports and the command line, such as the verdict, worst answers and charts."""

from __future__ import annotations

from germane.lazy import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__)
