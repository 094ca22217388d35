"""Quota for judge requests: the rate limiter, reservations and budget usage, shared by all processes."""
