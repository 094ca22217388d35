"""Processes on one database: workers, job runs and leases."""

from __future__ import annotations
