"""The drop rule: the active fingerprint, the baseline and the state of its detector."""

from __future__ import annotations
