"""Periodic jobs: delivery of notifications, rollups, retention and queue metrics."""
