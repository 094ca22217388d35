"""The embedded MiniLM as an OpenAI-compatible server, so that other libraries use the same embedder as germane.

Run: python benchmarks/peers/embeddings.py [PORT]
"""

from __future__ import annotations

import json
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Lock

from germane.scorers.local.minilm import MiniLM

MODEL = MiniLM()
ONE_AT_A_TIME = Lock()


class Handler(BaseHTTPRequestHandler):
    """Handles POST /v1/embeddings."""

    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        """Embed the texts of one request."""
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        texts = [body["input"]] if isinstance(body["input"], str) else body["input"]
        with ONE_AT_A_TIME:
            rows = MODEL.embed_now(texts).tolist()
        data = [{"object": "embedding", "index": index, "embedding": row} for index, row in enumerate(rows)]
        usage = {"prompt_tokens": 0, "total_tokens": 0}
        reply = json.dumps({"object": "list", "data": data, "model": body.get("model"), "usage": usage}).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(reply)))
        self.end_headers()
        self.wfile.write(reply)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name is http.server's
        """Disable request logging."""


if __name__ == "__main__":
    port = int(sys.argv[1]) if len(sys.argv) > 1 else 8092
    print(f"http://127.0.0.1:{port}/v1", flush=True)
    ThreadingHTTPServer(("127.0.0.1", port), Handler).serve_forever()
