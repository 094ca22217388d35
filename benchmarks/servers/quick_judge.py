"""A judge and embedder with fixed latency and little CPU use: python benchmarks/servers/quick_judge.py 0.2 0.05.

The first line of output is its URL; it serves until killed. GET /counts returns the number of requests, GET /latest the
latest chat requests. A request with a JSON schema gets an object that is valid under it, with sentences of the prompt.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import json
import random
import struct
import sys
from collections import deque
from typing import Any, cast

from germane.scorers import schema_instance
from germane.testing import JudgeRequest

DIMENSION = 1536
POOL = 256
"""Number of different vectors."""


class Judge:
    """Replies and request counts."""

    def __init__(self, chat: float, embedding: float) -> None:
        self.latency = {"chat": chat, "embedding": embedding}
        self.counts = {"chat": 0, "embedding": 0}
        self.latest: deque[dict[str, Any]] = deque(maxlen=20)
        """The latest chat requests."""
        numbers = random.Random(0)
        rows = [[numbers.gauss(0, 1) for _ in range(DIMENSION)] for _ in range(POOL)]
        self.floats = [json.dumps([round(number, 7) for number in row]) for row in rows]
        self.packed = [json.dumps(base64.b64encode(struct.pack(f"<{DIMENSION}f", *row)).decode()) for row in rows]

    def reply(self, path: str, body: dict[str, Any]) -> tuple[str, bytes]:
        """Return the kind of request and the reply body."""
        return ("embedding", self._embed(body)) if path.endswith("/embeddings") else ("chat", self._chat(body))

    def _chat(self, body: dict[str, Any]) -> bytes:
        self.latest.append(body)
        request = JudgeRequest("", body, {})
        mark = hashlib.blake2b(body["messages"][-1]["content"].encode(), digest_size=4).hexdigest()
        contents = [f"What does part {place} of the answer {mark} say?" for place in range(request.n)]
        if request.schema is not None and not request.asks_for_questions:
            sentences = (request.section("context") or request.answer).split(". ")
            reply = schema_instance(request.schema, text=lambda number: sentences[number % len(sentences)])
            contents = [json.dumps(reply)] * request.n
        choices = [
            {
                "index": place,
                "message": {"role": "assistant", "content": content},
                "finish_reason": "stop",
                "logprobs": None,
            }
            for place, content in enumerate(contents)
        ]
        usage = {"prompt_tokens": 150, "completion_tokens": 30, "total_tokens": 180}
        said = {"id": mark, "object": "chat.completion", "created": 1, "model": "quick", "choices": choices}
        return json.dumps({**said, "usage": usage}).encode()

    def _embed(self, body: dict[str, Any]) -> bytes:
        rows = self.packed if body.get("encoding_format") == "base64" else self.floats
        items = (
            f'{{"object": "embedding", "index": {place}, "embedding": {rows[hash(text) % POOL]}}}'
            for place, text in enumerate(body["input"])
        )
        usage = f'{{"prompt_tokens": {10 * len(body["input"])}, "total_tokens": 0}}'
        return f'{{"object": "list", "data": [{", ".join(items)}], "model": "quick", "usage": {usage}}}'.encode()


class Connection(asyncio.Protocol):
    """A keep-alive connection with one request at a time."""

    def __init__(self, judge: Judge) -> None:
        self.judge = judge
        self.received = b""
        self.transport: asyncio.Transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Store the transport."""
        self.transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        """Reply once a request is complete."""
        self.received += data
        head, end, rest = self.received.partition(b"\r\n\r\n")
        lines = head.decode("latin-1").split("\r\n")
        lengths = [line.partition(":")[2] for line in lines[1:] if line.lower().startswith("content-length:")]
        length = int(lengths[0]) if lengths else 0
        if not end or len(rest) < length:
            return
        self.received = rest[length:]
        self.answer(lines[0].split(" ")[1], rest[:length])

    def answer(self, path: str, body: bytes) -> None:
        """Reply after the latency for this kind of request."""
        if not body:
            found = {"/counts": self.judge.counts, "/latest": list(self.judge.latest)}
            self.send(json.dumps(found[path]).encode())
            return
        kind, reply = self.judge.reply(path, json.loads(body))
        self.judge.counts[kind] += 1
        asyncio.get_running_loop().call_later(self.judge.latency[kind], self.send, reply)

    def send(self, body: bytes) -> None:
        """Write a reply unless the client disconnected."""
        if not self.transport.is_closing():
            head = f"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
            self.transport.write(head.encode() + body)


async def serve(chat: float, embedding: float) -> None:
    """Serve until killed."""
    judge = Judge(chat, embedding)
    server = await asyncio.get_running_loop().create_server(lambda: Connection(judge), "127.0.0.1", 0, backlog=512)
    sys.stdout.write(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1\n")
    sys.stdout.flush()
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(serve(float(sys.argv[1]), float(sys.argv[2])))
