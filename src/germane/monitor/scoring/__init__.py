"""Scoring tasks: the worker, retries, the circuit breaker and results."""

from __future__ import annotations
