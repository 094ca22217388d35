"""The cosine similarity of question and answer from the embedded model, without an event loop, for free proxy
scores.
"""

from __future__ import annotations

import atexit
import importlib.util
import os
import threading
from collections.abc import Sequence
from functools import cached_property

from germane.exchange import Exchange
from germane.scorers.base.text import is_blank
from germane.scorers.local.minilm.model import EXIT_TIMEOUT, PACKAGES, MiniLM
from germane.scorers.metrics.question_answer_similarity import embedder_inputs


def is_local_installed() -> bool:
    """Return whether the ``local`` extra is installed."""
    return all(importlib.util.find_spec(name) for name in PACKAGES)


class LocalSimilarity:
    """Computes the values of ``question_answer_similarity`` with the embedded model, in the calling thread.

    The model is loaded on the first call and uses one core. Only one thread computes at a time.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        # Acquired at exit, because a thread that calls in a loop would hold the other lock almost all the time.
        self._exit_lock = threading.Lock()

    @staticmethod
    def supports(exchange: Exchange) -> bool:
        """Return whether the exchange has a question and an answer."""
        return not (is_blank(exchange.question or "") or is_blank(exchange.answer or ""))

    def compute(self, exchanges: Sequence[Exchange]) -> list[float]:
        """Return one cosine similarity per exchange, from -1 to 1. All exchanges must be supported. Blocks.

        Raises:
            ModelError: the weights are missing or corrupt.
            ScoringError: the model did not return valid vectors.
        """
        with self._exit_lock:
            pass
        with self._lock:
            cosines = []
            for exchange in exchanges:
                # Embed one text at a time: in a batch, rounding would make the values depend on the other texts.
                question, answer = (self._model.embed_now([text])[0] for text in embedder_inputs(exchange))
                cosines.append(float(question @ answer))
            return cosines

    @cached_property
    def _model(self) -> MiniLM:
        model = MiniLM()
        atexit.register(_block_at_exit, self._exit_lock, self._lock, os.getpid())
        return model


def _block_at_exit(exit_lock: threading.Lock, lock: threading.Lock, process: int) -> None:
    """Block further calls, and wait for the call in progress. Do nothing in forked child processes."""
    if os.getpid() == process:
        exit_lock.acquire(timeout=EXIT_TIMEOUT)
        lock.acquire(timeout=EXIT_TIMEOUT)
