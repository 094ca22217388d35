"""A small real RAG application to watch: documentation of an invented product, and a fault that spoils one part."""

from __future__ import annotations

from germane.demo.application import Documentation
from germane.demo.corpus import ROUTES, Corpus, Hit, Index, Passage, Question, read_corpus
from germane.demo.traffic import BROKEN_ROUTE, FAULT_AT, LENGTH, Visit, plan_visits

__all__ = [
    "BROKEN_ROUTE",
    "FAULT_AT",
    "LENGTH",
    "ROUTES",
    "Corpus",
    "Documentation",
    "Hit",
    "Index",
    "Passage",
    "Question",
    "Visit",
    "plan_visits",
    "read_corpus",
]
