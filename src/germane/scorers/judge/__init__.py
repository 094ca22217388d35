"""OpenAI-compatible judge and embedder clients, with batching, rate limits and prices."""

from __future__ import annotations
