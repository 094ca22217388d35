"""Judge and embedder clients for OpenAI-compatible servers, with batching, rate limits and prices."""

from __future__ import annotations
