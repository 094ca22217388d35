"""An application with one observed handler, for a WSGI server. Its settings come from environment variables."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable
from typing import Any
from urllib.parse import unquote

import germane

germane.start()


@germane.observe(route="ask")
def ask(question: str) -> str:
    """Answer after a short time, so that the requests are spread over all processes."""
    time.sleep(0.1)
    return f"By card, at counter {question}."


def application(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
    """Answer the question in the query string, and return the process id."""
    body = ask(unquote(environ["QUERY_STRING"])).encode()
    start_response("200 OK", [("Content-Type", "text/plain"), ("X-Process", str(os.getpid()))])
    return [body]
