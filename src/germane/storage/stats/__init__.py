"""Statistics: weighted means with confidence intervals, control variates, comparisons and histograms."""

from __future__ import annotations
