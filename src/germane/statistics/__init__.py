"""Statistics: weighted means with confidence intervals, control variates, comparisons and histograms."""

from __future__ import annotations

from germane.lazy import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__)
