"""The database gauges for Prometheus. Time windows refer to answer times, not scoring times.

The Prometheus client is an optional dependency, so these modules are imported on first use.
"""
