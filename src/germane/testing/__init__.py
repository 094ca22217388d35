"""Testing tools for germane and for applications that use it. They need no network, API key or model."""

from __future__ import annotations

from germane.testing.application import Clock, IncrementalIdGenerator, collect
from germane.testing.database import engine_of, transaction
from germane.testing.embedder import FakeEmbedder, hashed_words
from germane.testing.fake_judge import FakeJudge, questions_about
from germane.testing.fault import Fault
from germane.testing.judge_request import JudgeRequest
from germane.testing.otlp import OTLPReceiver
from germane.testing.otlp_records import (
    ReceivedDataPoint,
    ReceivedEvent,
    ReceivedLink,
    ReceivedLog,
    ReceivedMetric,
    ReceivedSpan,
)
from germane.tracer import strict

__all__ = [
    "Clock",
    "FakeEmbedder",
    "FakeJudge",
    "Fault",
    "IncrementalIdGenerator",
    "JudgeRequest",
    "OTLPReceiver",
    "ReceivedDataPoint",
    "ReceivedEvent",
    "ReceivedLink",
    "ReceivedLog",
    "ReceivedMetric",
    "ReceivedSpan",
    "collect",
    "engine_of",
    "hashed_words",
    "questions_about",
    "strict",
    "transaction",
]
