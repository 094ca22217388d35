"""HTTP servers that misbehave: every reply belongs to its request, and no request hangs or leaks a connection."""

from __future__ import annotations

import asyncio
import gzip
import json
import re
import zlib
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass

import openai._base_client
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.cases import each

from germane.errors import ScoringError
from germane.exchange import Message
from germane.scorers.judge import client
from germane.scorers.judge.client import ModelServer
from germane.scorers.judge.openai_judge import OpenAIJudge

DEADLINE = 60.0
"""Seconds. Only a request that hangs reaches it."""
CONCURRENCY = 4
QUESTIONS = [f"question {number}" for number in range(8)]
OK = b"HTTP/1.1 200 OK\r\n"
COMPRESS: dict[str, Callable[[bytes], bytes]] = {"": bytes, "gzip": gzip.compress, "deflate": zlib.compress}
FAULTS: dict[str, Callable[[bytes], bytes]] = {
    "": bytes,
    "nothing": lambda _: b"",
    "cut in the head": lambda whole: whole[:30],
    "cut in the body": lambda whole: whole[:-25],
    "not HTTP": lambda _: b"SSH-2.0-x\r\n",
    "a longer length": lambda whole: whole.replace(b"Content-Length: ", b"Content-Length: 9"),
    "a shorter length": lambda whole: re.sub(rb"(Content-Length: \d+)\d\r", rb"\1\r", whole),
    "two lengths": lambda whole: whole.replace(b"Content-Length: ", b"Content-Length: 5\r\nContent-Length: "),
    "a negative length": lambda whole: whole.replace(b"Content-Length: ", b"Content-Length: -"),
    "a bad chunk": lambda whole: whole.replace(b";x=1", b"zz"),
    "a short chunk": lambda whole: whole.replace(b"28;x=1", b"27;x=1"),
    "no last chunk": lambda whole: whole.replace(b"0\r\nX-End: 1\r\n\r\n", b""),
    "a second reply": lambda whole: whole + whole.replace(b"question", b"previous"),
    "a part of a second reply": lambda whole: whole + whole[:40],
    "other bytes": lambda whole: whole + b"\r\n\x00junk",
    "a header without a name": lambda whole: whole.replace(b"Content-Type", b": x\r\nContent-Type"),
    "a large head": lambda whole: whole.replace(b"Content-Type", b"X: " + b"x" * 200_000 + b"\r\nContent-Type"),
    "another compression": lambda whole: whole.replace(b"Content-Type", b"Content-Encoding: gzip\r\nContent-Type"),
}
"""What is wrong with a reply. A reply whose framing differs is not affected."""
ENDING = {"nothing", "cut in the head", "cut in the body", "not HTTP", "a longer length", "no last chunk"}
"""Faults after which the server closes the connection. Otherwise, the client would wait until its timeout."""
HARMLESS = {"", "a second reply", "a part of a second reply", "other bytes"}
"""Faults after a complete reply."""


@dataclass(frozen=True)
class Behavior:
    """How a server replies. The defaults are the plainest way to follow the protocol."""

    framing: str = "length"
    encoding: str = ""
    prelude: bytes = b""
    """Informational replies before the reply."""
    piece: int = 10_000
    """Number of bytes that are sent at once."""
    answers_early: bool = False
    """Whether the reply is sent before the request's body is read."""
    after: str = "keep"
    """What happens to the connection after a reply. A server may close it without saying so in the reply."""
    redirects: tuple[int, ...] = ()
    """The statuses of redirects before each reply."""
    fault: str = ""
    faults: int = 0
    """Number of replies with the fault."""

    def reply(self, text: str, fault: str) -> bytes:
        """Return the bytes of a reply."""
        choice = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": text}}
        body = COMPRESS[self.encoding](json.dumps({"model": "m", "choices": [choice]}).encode())
        head = self.prelude + OK + b"Content-Type: application/json\r\n"
        if self.encoding:
            head += b"Content-Encoding: %s\r\n" % self.encoding.encode()
        if self.after == "close":
            head += b"Connection: close\r\n"
        if self.framing == "length":
            head += b"Content-Length: %d\r\n" % len(body)
        elif self.framing == "chunks":
            head += b"Transfer-Encoding: chunked\r\n"
            parts = [body[start : start + 40] for start in range(0, len(body), 40)]
            body = b"".join(b"%x;x=1\r\n%s\r\n" % (len(part), part) for part in parts) + b"0\r\nX-End: 1\r\n\r\n"
        return FAULTS[fault](head + b"\r\n" + body)


class Server:
    """A server on a socket that behaves in one way. The text of a reply is the question that the request contains."""

    def __init__(self, behavior: Behavior) -> None:
        self.behavior = behavior
        self.faults_left = behavior.faults
        self.open: set[asyncio.StreamWriter] = set()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Reply to the requests of a connection."""
        self.open.add(writer)
        with suppress(OSError, asyncio.IncompleteReadError):
            while await self._reply(reader, writer):
                pass
        writer.close()
        self.open.discard(writer)

    async def _reply(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        """Reply to one request. Return whether the connection stays open."""
        behavior = self.behavior
        head = await reader.readuntil(b"\r\n\r\n")
        length = re.search(rb"(?i)content-length: (\d+)", head)
        left = int(length[1]) if length else 0
        body = b""
        while left and not (behavior.answers_early and b"question" in body):
            body += await reader.readexactly(min(left, 100))
            left -= min(left, 100)
        step = int(re.search(rb" \S*?(\d*) HTTP", head)[1] or 0)  # type: ignore[index]  # every request has a path
        fault = ""
        if step < len(behavior.redirects):
            location = b"Location: /step/%d\r\nContent-Length: 0\r\n\r\n" % (step + 1)
            whole = b"HTTP/1.1 %d Moved\r\n" % behavior.redirects[step] + location
        elif (question := re.search(rb"question \d", body)) is None:
            whole = b"HTTP/1.1 405 Method Not Allowed\r\nContent-Length: 0\r\n\r\n"
        else:
            fault = behavior.fault if self.faults_left else ""
            self.faults_left -= bool(fault)
            whole = behavior.reply(question[0].decode(), fault)
        piece = max(behavior.piece, len(whole) // 500)
        for start in range(0, len(whole), piece):
            writer.write(whole[start : start + piece])
            await writer.drain()
            await asyncio.sleep(0)
        await reader.readexactly(left)
        ends = fault in ENDING or behavior.framing == "end of connection" or behavior.after != "keep"
        return step < len(behavior.redirects) or not ends


async def ask_all(behavior: Behavior) -> list[str]:
    """Ask all questions, half of them at once; return the texts, and the reasons of failures."""
    server = Server(behavior)
    padding = " " * 100_000 if behavior.answers_early else ""

    async def ask(question: str) -> str:
        try:
            return (await judge.ask([Message("user", question + padding)])).texts[0]
        except ScoringError as error:
            return str(error.reason)

    async def until_open(most: int) -> None:
        while len(server.open) > most:  # noqa: ASYNC110 - sockets of another process would look the same
            await asyncio.sleep(0.001)

    async with asyncio.timeout(DEADLINE), await asyncio.start_server(server.serve, "127.0.0.1", 0) as listening:
        url = f"http://127.0.0.1:{listening.sockets[0].getsockname()[1]}/step/0/v1"
        judge = OpenAIJudge("m", ModelServer("key", url, timeout=DEADLINE / 2, retries=3), concurrency=CONCURRENCY)
        found = [await ask(question) for question in QUESTIONS[:4]]
        found += await asyncio.gather(*map(ask, QUESTIONS[4:]))
        await until_open(CONCURRENCY)
        await judge.aclose()
        await until_open(0)
    return found


def check(behavior: Behavior) -> None:
    """Check that each question has its own reply or an honest failure, and a reply if the server allows it."""
    found = asyncio.run(ask_all(behavior))

    failed = {text for text, question in zip(found, QUESTIONS, strict=True) if text != question}
    assert failed <= {"judge_unreachable", "unparsable", "judge_rejected"}
    is_redirected_well = len(behavior.redirects) <= 2 and set(behavior.redirects) <= {307, 308}
    needs_retry = behavior.fault not in HARMLESS and behavior.faults > 0
    may_fail = needs_retry and (behavior.faults > 1 or behavior.fault == "another compression" or behavior.redirects)
    # A connection that ends while a request is sent on it costs a retry, which counts the redirects again.
    may_lose_connection = behavior.after == "close silently" and behavior.redirects
    if is_redirected_well and not may_fail and not may_lose_connection:
        assert not failed


@pytest.fixture(autouse=True, scope="module")
def without_delays() -> Iterator[None]:
    """Retry at once."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(client, "RETRY_DELAY", 0.001)
        patch.setattr(openai._base_client, "INITIAL_RETRY_DELAY", 0.001)
        yield


@each(
    "behavior",
    [
        Behavior(),
        Behavior("chunks", "gzip", piece=1),
        Behavior("end of connection", "deflate", prelude=b"HTTP/1.1 100 Continue\r\n\r\n" * 3),
        Behavior(answers_early=True),
        Behavior("chunks", answers_early=True, after="close"),
        Behavior(after="close silently"),
        Behavior(redirects=(307, 308)),
        Behavior(redirects=(307, 307, 307)),
        Behavior(redirects=(302,)),
        *(Behavior(fault=fault, faults=1) for fault in FAULTS),
        *(Behavior("chunks", fault=fault, faults=100) for fault in FAULTS),
    ],
)
def test_a_reply_belongs_to_its_request(behavior: Behavior) -> None:
    """Chunks, compression, early replies, closed connections and redirects are part of the protocol; faults are not."""
    check(behavior)


@pytest.mark.slow
@settings(max_examples=200)
@given(
    st.builds(
        Behavior,
        framing=st.sampled_from(["length", "chunks", "end of connection"]),
        encoding=st.sampled_from(sorted(COMPRESS)),
        prelude=st.sampled_from(
            [b"", b"HTTP/1.1 100 Continue\r\n\r\n", b"HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n"]
        ),
        piece=st.sampled_from([1, 7, 100, 10_000]),
        answers_early=st.booleans(),
        after=st.sampled_from(["keep", "close", "close silently"]),
        redirects=st.lists(st.sampled_from([301, 302, 303, 307, 308, 307, 308]), max_size=3).map(tuple),
        fault=st.sampled_from(sorted(FAULTS)),
        faults=st.sampled_from([0, 1, 2, 100]),
    )
)
def test_no_misbehavior_leads_to_a_wrong_reply_or_a_leak(behavior: Behavior) -> None:
    """This holds for 200 combinations of framing, compression, pieces, closed connections, redirects and faults."""
    check(behavior)
