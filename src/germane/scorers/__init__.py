"""Scorers turn exchanges into scores. This package uses neither a database nor OpenTelemetry.

A user-defined scorer has the attributes ``name``, ``fingerprint``, ``requires`` and ``range``, and the method
``async def score(exchange)``; see :class:`Scorer`. Call scorers through :func:`run_scorer`, which turns every outcome
into a score with a value or a reason.
"""

from __future__ import annotations

from germane.lazy import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__)
