"""Templates of the messages, titles and details of alerts, and the functions that fill them in with facts."""

from __future__ import annotations

from germane.alerting.wording.messages import MESSAGES, alert_message
from germane.alerting.wording.titles import alert_title, headline
from germane.alerting.wording.words import CAUSES, MEASURES, RESOLVE_REASONS

__all__ = ["CAUSES", "MEASURES", "MESSAGES", "RESOLVE_REASONS", "alert_message", "alert_title", "headline"]
