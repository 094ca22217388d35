"""Export and import of exchanges and alerting data."""

from __future__ import annotations
