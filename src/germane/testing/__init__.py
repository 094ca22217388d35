"""For tests, ours and those of applications that use germane: nothing here needs a network, a key or a model."""

from __future__ import annotations

from germane.testing.collect import collect
from germane.testing.embedder import FakeEmbedder
from germane.testing.fake_judge import FakeJudge, questions_about
from germane.testing.fault import Fault
from germane.testing.judge_request import Request
from germane.testing.judge_server import hashed_words
from germane.testing.otlp import OTLPReceiver
from germane.testing.otlp_records import (
    ReceivedEvent,
    ReceivedLink,
    ReceivedLog,
    ReceivedMetric,
    ReceivedPoint,
    ReceivedSpan,
)
from germane.tracer import strict

__all__ = [
    "FakeEmbedder",
    "FakeJudge",
    "Fault",
    "OTLPReceiver",
    "ReceivedEvent",
    "ReceivedLink",
    "ReceivedLog",
    "ReceivedMetric",
    "ReceivedPoint",
    "ReceivedSpan",
    "Request",
    "collect",
    "hashed_words",
    "questions_about",
    "strict",
]
