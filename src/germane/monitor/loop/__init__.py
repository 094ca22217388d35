"""The background loop: scheduler, jobs, leader lease, heartbeat and backoff."""
