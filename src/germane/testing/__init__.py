"""For tests, ours and those of applications that use germane: nothing here needs a network, a key or a model."""

from __future__ import annotations

from germane.testing.embedder import FakeEmbedder
from germane.testing.fake_judge import FakeJudge, questions_about
from germane.testing.judge_server import Fault, hashed_words

__all__ = [
    "FakeEmbedder",
    "FakeJudge",
    "Fault",
    "hashed_words",
    "questions_about",
]
