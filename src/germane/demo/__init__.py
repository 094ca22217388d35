"""A small real RAG application to monitor: the documentation of a fictional product, with one route that breaks."""

from __future__ import annotations

from germane.demo.application import Documentation
from germane.demo.corpus import (
    ROUTES,
    DemoCorpus,
    DemoQuestion,
    Embed,
    Passage,
    PassageIndex,
    SearchHit,
    Vectors,
    load_corpus,
    split_sentences,
)
from germane.demo.traffic import BROKEN_ROUTE, DURATION, FAULT_TIME, Visit, plan_visits

__all__ = [
    "BROKEN_ROUTE",
    "DURATION",
    "FAULT_TIME",
    "ROUTES",
    "DemoCorpus",
    "DemoQuestion",
    "Documentation",
    "Embed",
    "Passage",
    "PassageIndex",
    "SearchHit",
    "Vectors",
    "Visit",
    "load_corpus",
    "plan_visits",
    "split_sentences",
]
