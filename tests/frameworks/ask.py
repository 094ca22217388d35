"""Asks an example many questions at the same time. Runs in the framework's own environment.

    python ask.py EXAMPLE.py CONCURRENCY

Reads a JSON list of questions from the first line of standard input, writes the answers as one line of JSON, and exits
once standard input is closed. An example has a function ``ask(question)``, which may be async or a generator, or a web
application ``app`` that answers ``POST /ask``.
"""

from __future__ import annotations

import asyncio
import importlib.util
import inspect
import json
import socketserver
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer, make_server

import httpx2
import uvicorn


def load(path: Path) -> Any:
    """Import an example from its file."""
    spec = importlib.util.spec_from_file_location(path.stem, path)
    if spec is None or spec.loader is None:
        raise SystemExit(f"cannot import {path}")
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    return module


async def ask_async(ask: Callable[[str], Any], questions: list[str], concurrency: int) -> list[str]:
    """Return the answers of an async function or an async generator."""
    limit = asyncio.Semaphore(concurrency)

    async def ask_one(question: str) -> str:
        async with limit:
            if inspect.isasyncgenfunction(ask):
                return "".join([chunk async for chunk in ask(question)])
            return str(await ask(question))

    return await asyncio.gather(*map(ask_one, questions))


def ask_in_threads(ask: Callable[[str], Any], questions: list[str], concurrency: int) -> list[str]:
    """Return the answers of a plain function or a generator."""

    def ask_one(question: str) -> str:
        return "".join(ask(question)) if inspect.isgeneratorfunction(ask) else str(ask(question))

    with ThreadPoolExecutor(concurrency) as threads:
        return list(threads.map(ask_one, questions))


class ThreadedServer(socketserver.ThreadingMixIn, WSGIServer):
    """A WSGI server with one thread per connection."""

    request_queue_size = 128


class QuietHandler(WSGIRequestHandler):
    """Suppresses access logs."""

    def log_message(self, *_args: Any) -> None:
        """Print nothing."""


@contextmanager
def serving(app: Any) -> Iterator[str]:
    """Serve an ASGI or a WSGI application, and yield its address."""
    if inspect.iscoroutinefunction(app) or inspect.iscoroutinefunction(type(app).__call__):
        config = uvicorn.Config(app, host="127.0.0.1", port=0, log_level="warning")
        socket = config.bind_socket()
        server = uvicorn.Server(config)
        thread = threading.Thread(target=server.run, args=([socket],))
        thread.start()
        while not server.started:  # the application's startup runs before the first request
            time.sleep(0.01)
        yield f"http://127.0.0.1:{socket.getsockname()[1]}"
        server.should_exit = True
        thread.join()
    else:
        with make_server("127.0.0.1", 0, app, ThreadedServer, QuietHandler) as threaded:
            thread = threading.Thread(target=threaded.serve_forever)
            thread.start()
            yield f"http://127.0.0.1:{threaded.server_port}"
            threaded.shutdown()
            thread.join()


def main() -> None:
    """Ask the questions, print the answers, and wait until standard input is closed."""
    example, concurrency = load(Path(sys.argv[1])), int(sys.argv[2])
    questions = json.loads(sys.stdin.readline())
    if app := getattr(example, "app", None):
        with serving(app) as address, httpx2.Client(timeout=60) as client:

            def post(question: str) -> str:
                return client.post(f"{address}/ask", json={"question": question}).raise_for_status().text

            finish(ask_in_threads(post, questions, concurrency))
    elif inspect.iscoroutinefunction(example.ask) or inspect.isasyncgenfunction(example.ask):
        finish(asyncio.run(ask_async(example.ask, questions, concurrency)))
    else:
        finish(ask_in_threads(example.ask, questions, concurrency))


def finish(answers: list[str]) -> None:
    """Print the answers, and keep the application running until standard input is closed."""
    sys.stdout.write(json.dumps(answers) + "\n")
    sys.stdout.flush()
    sys.stdin.read()


if __name__ == "__main__":
    main()
