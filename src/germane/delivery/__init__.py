"""Delivery of queued items to targets, such as notifications to channels: in order, with retries, at least once."""

from __future__ import annotations

from germane.delivery.backoff import Backoff
from germane.delivery.signing import signed_headers
from germane.delivery.target import DeliveryError, Sent, Target
from germane.delivery.worker import DeliveryContext, DeliveryWorker

__all__ = ["Backoff", "DeliveryContext", "DeliveryError", "DeliveryWorker", "Sent", "Target", "signed_headers"]
