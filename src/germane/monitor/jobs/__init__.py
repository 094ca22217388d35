"""Periodic jobs: notification delivery, rollups, retention, calibration and queue metrics."""
