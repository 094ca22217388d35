"""Scoring of claimed tasks: the worker, the retry policy, the circuit breaker and the result writer."""
