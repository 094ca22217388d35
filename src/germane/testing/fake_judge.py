"""A judge and an embedder that cost nothing: the OpenAI protocol over real HTTP, on this machine."""

from __future__ import annotations

import json
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import TracebackType
from typing import Any, Literal, Self

from germane.testing.judge_server import (
    Fault,
    JudgeServer,
    Reply,
    Request,
    answer_in,
    hashed_words,
    wants_json,
    wants_list,
)

Questions = Callable[[str], Sequence[str]]
Votes = bool | Sequence[bool] | None


def questions_about(answer: str) -> list[str]:
    """Return three questions made of the answer's first words: near to a question that shares those."""
    topic = " ".join(answer.split()[:12]).rstrip(".!?:;,") or "nothing"
    return [f"What about {topic}?", f"Can you say more on {topic}?", f"Is it true that {topic}?"]


class FakeJudge:
    """A server of the OpenAI protocol for tests and demonstrations.

    ::

        with FakeJudge(questions=lambda answer: ["What is the capital of France?"]) as judge:
            germane.start(**judge.settings())

    It answers ``/v1/chat/completions`` (with ``n`` and ``response_format``), ``/v1/embeddings`` (see
    :func:`germane.testing.hashed_words`) and ``/v1/models``. Every attribute below may be changed while it runs.
    """

    def __init__(
        self,
        *,
        questions: Questions = questions_about,
        noncommittal: Votes | Callable[[str], Votes] = False,
        vectors: Mapping[str, Sequence[float]] | None = None,
        latency: float = 0.0,
        faults: Iterable[Fault | None] = (),
        embedding_faults: Iterable[Fault | None] = (),
        honours_n: bool = True,
        response_format: Literal["honoured", "ignored", "refused"] = "honoured",
        model: str = "fake-judge",
        embedding_model: str = "fake-embedder",
        dimension: int = 256,
        port: int = 0,
    ) -> None:
        """Listen on 127.0.0.1; ``port`` 0 takes a free one."""
        self.questions = questions
        """Answer -> the questions that the judge writes: choice i gets question i, from the start again if short."""
        self.noncommittal = noncommittal
        """The judge's vote, one for all choices or one for each, or a function of the answer; None: no vote."""
        self.vectors = dict(vectors or {})
        """Text -> its vector, for texts whose vectors are to be known; all of one dimension. Others are hashed."""
        self.latency = latency
        """Seconds before each reply."""
        self.faults: deque[Fault | None] = deque(faults)
        """What happens to the next chat requests, one by one; None: all goes well."""
        self.embedding_faults: deque[Fault | None] = deque(embedding_faults)
        """Likewise for embedding requests."""
        self.outage: Fault | None = None
        """What happens to every request while it is set."""
        self.honours_n = honours_n
        self.response_format = response_format
        self.model = model
        self.embedding_model = embedding_model
        self.dimension = dimension
        self.requests: list[Request] = []
        """Everything that was asked, in order of arrival."""
        self.in_flight = 0
        self.most_in_flight = 0
        self.closing = threading.Event()
        self._lock = threading.Lock()
        self._server = JudgeServer(("127.0.0.1", port), self)
        self._thread = threading.Thread(
            target=self._server.serve_forever, kwargs={"poll_interval": 0.05}, name="germane-fake-judge", daemon=True
        )
        self._thread.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    @property
    def base_url(self) -> str:
        """Where it listens, such as ``http://127.0.0.1:40123/v1``."""
        return f"http://127.0.0.1:{self._server.server_port}/v1"

    @property
    def chats(self) -> list[Request]:
        """The chat requests so far."""
        return [request for request in self.requests if request.path.endswith("/chat/completions")]

    @property
    def embeddings(self) -> list[Request]:
        """The embedding requests so far."""
        return [request for request in self.requests if request.path.endswith("/embeddings")]

    def settings(self) -> dict[str, Any]:
        """Return the settings that point germane here."""
        return {"base_url": self.base_url, "api_key": "test", "judge": self.model, "embedder": self.embedding_model}

    def close(self) -> None:
        """Stop listening, break what is under way, and wait for its threads. Closing twice is no error."""
        if self.closing.is_set():
            return
        self.closing.set()
        self._server.shutdown()
        self._server.end_connections()
        self._server.server_close()
        self._thread.join()

    @contextmanager
    def serving(self, request: Request) -> Iterator[Fault | None]:
        """Count a request in and out; yields how it is to fail."""
        with self._lock:
            self.requests.append(request)
            self.in_flight += 1
            self.most_in_flight = max(self.most_in_flight, self.in_flight)
            script = self.embedding_faults if request.path.endswith("/embeddings") else self.faults
            scripted = script.popleft() if script else None
        try:
            if self.latency:
                self.closing.wait(self.latency)
            yield self.outage or scripted
        finally:
            with self._lock:
                self.in_flight -= 1

    def reply(self, request: Request, fault: Fault | None) -> Reply:
        """Return the reply to a request, made bad by the fault."""
        if fault is not None and fault.kind == "status":
            return _error(fault)
        if fault is not None and fault.kind == "garbage":
            return Reply(b"<html>it works!</html>", headers={"Content-Type": "text/html"})
        if fault is not None and fault.kind == "not_json":
            return Reply(b'{"choices": [')
        if request.path.endswith("/chat/completions"):
            return self._chat(request.body, fault)
        if request.path.endswith("/embeddings"):
            return self._embed(request.body, fault)
        return Reply({"error": {"message": "no such path"}}, 404)

    def _chat(self, body: Mapping[str, Any], fault: Fault | None) -> Reply:
        if "response_format" in body and self.response_format == "refused":
            return _error(Fault("status", status=400, message="json_schema is not supported here"))
        answer = answer_in(body.get("messages", ()))
        contents = self._contents(body, list(self.questions(answer)), answer)
        choices = [_choice(place, content) for place, content in enumerate(contents)]
        said = sum(len(content.split()) for content in contents)
        _spoil_choices(choices, fault)
        words = sum(len(str(message.get("content")).split()) for message in body.get("messages", ()))
        return Reply(
            {
                "id": "chatcmpl-fake",
                "object": "chat.completion",
                "created": 0,
                "model": self.model,
                "choices": choices,
                "usage": {"prompt_tokens": words, "completion_tokens": said, "total_tokens": words + said},
            }
        )

    def _contents(self, body: Mapping[str, Any], questions: Sequence[str], answer: str) -> list[str]:
        votes = self.noncommittal(answer) if callable(self.noncommittal) else self.noncommittal
        voted = [_json_question(question, _vote(votes, place)) for place, question in enumerate(questions)]
        if not wants_json(body):
            asked_for = list(questions)
        elif self.response_format == "ignored":
            asked_for = ["\n".join(questions)] if wants_list(body) else list(questions)
        elif wants_list(body):
            asked_for = [json.dumps({"questions": voted})]
        else:
            asked_for = [json.dumps(each) for each in voted]
        n = int(body.get("n") or 1) if self.honours_n else 1
        return [asked_for[place % len(asked_for)] if asked_for else "" for place in range(n)]

    def _embed(self, body: Mapping[str, Any], fault: Fault | None) -> Reply:
        given = body.get("input", [])
        texts = [given] if isinstance(given, str) else list(given)
        rows = [list(self.vectors.get(text) or self._hashed(text)) for text in texts]
        rows = _spoil_rows(rows, fault)
        data = [{"object": "embedding", "index": place, "embedding": row} for place, row in enumerate(rows)]
        words = sum(len(text.split()) for text in texts)
        usage = {"prompt_tokens": words, "total_tokens": words}
        return Reply({"object": "list", "data": data, "model": self.embedding_model, "usage": usage})

    def _hashed(self, text: str) -> list[float]:
        known = next(iter(self.vectors.values()), None)
        return hashed_words(text, self.dimension if known is None else len(known))


def _vote(votes: Votes, place: int) -> bool | None:
    return votes[place % len(votes)] if isinstance(votes, Sequence) else votes


def _json_question(question: str, vote: bool | None) -> dict[str, Any]:  # noqa: FBT001 - a vote is a bool
    return {"question": question} if vote is None else {"question": question, "noncommittal": vote}


def _choice(place: int, content: str) -> dict[str, Any]:
    message = {"role": "assistant", "content": content}
    return {"index": place, "message": message, "finish_reason": "stop", "logprobs": None}


def _error(fault: Fault) -> Reply:
    body = {"error": {"message": fault.message, "type": fault.code or "test_error", "code": fault.code, "param": None}}
    headers = {} if fault.retry_after is None else {"Retry-After": str(fault.retry_after)}
    return Reply(body, fault.status, headers)


def _spoil_choices(choices: list[dict[str, Any]], fault: Fault | None) -> None:
    kind = fault.kind if fault else None
    if kind == "no_choices":
        choices.clear()
    elif kind == "malformed":
        choices[0]["message"]["content"] = '{"question": {"a": [1, '
    for choice in choices:
        if kind == "empty":
            choice["message"]["content"] = ""
        elif kind == "refusal":
            choice["message"] = {"role": "assistant", "content": None, "refusal": "I can't help with that."}
        elif kind == "thinking":
            choice["message"]["content"], choice["finish_reason"] = "", "length"
        elif kind == "content_filter":
            choice["message"]["content"], choice["finish_reason"] = "", "content_filter"


def _spoil_rows(rows: list[list[float]], fault: Fault | None) -> list[list[float]]:
    kind = fault.kind if fault else None
    if kind == "nan":
        return [[float("nan")] * len(row) for row in rows]
    if kind == "zeros":
        return [[0.0] * len(row) for row in rows]
    if kind == "wrong_dimension":
        return [[] for _ in rows]
    if kind == "uneven_dimension":
        return [*rows[:-1], rows[-1][:-1]]
    return rows[:-1] if kind == "wrong_count" else rows
