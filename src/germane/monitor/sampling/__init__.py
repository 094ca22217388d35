"""Sampling: which exchanges are scored, and with what probability."""
