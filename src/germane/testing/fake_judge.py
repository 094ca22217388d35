"""A fake judge: an HTTP server with an OpenAI-compatible API that needs no model."""

from __future__ import annotations

import base64
import copy
import gzip
import json
import math
import struct
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Literal, Self

from germane.scorers import schema_instance
from germane.testing.embedder import hashed_words
from germane.testing.fault import Fault, corrupt_choices, corrupt_indexes, corrupt_vectors
from germane.testing.judge_request import JudgeRequest
from germane.testing.judge_server import JudgeReply, JudgeServer

DEFAULT_RATING = "3"
"""The default reply to a request for a single token."""

TokenProbabilities = Mapping[str, float]
"""Probabilities by token, from 0 to 1."""
GenerateQuestions = Callable[[str], Sequence[str]]
NoncommittalVotes = bool | Sequence[bool] | None
ScriptedReply = str | Mapping[str, Any] | Sequence[str] | None
"""A text, a JSON object, a list with one text per choice, or None for the default reply."""
ReplyFunction = Callable[[JudgeRequest], ScriptedReply]
OptionSupport = Literal["supported", "ignored", "rejected"]
"""How the server handles a request option. It responds to a rejected option with HTTP status 400."""


def questions_about(answer: str) -> list[str]:
    """Return three questions that contain the first words of the answer."""
    topic = " ".join(answer.split()[:12]).rstrip(".!?:;,") or "nothing"
    return [f"What about {topic}?", f"Can you say more on {topic}?", f"Is it true that {topic}?"]


class FakeJudge:
    """A server with an OpenAI-compatible API, for tests and demonstrations.

    ::

        with FakeJudge(questions=lambda answer: ["What is the capital of France?"]) as judge:
            germane.start(**judge.settings())

    It serves ``/v1/chat/completions`` (with ``n``, ``response_format`` and ``logprobs``), ``/v1/embeddings`` (see
    :func:`germane.testing.hashed_words`) and ``/v1/models``. By default, a request for questions gets
    ``questions``, any other request with a JSON schema gets a minimal instance of the schema, and a request for a digit
    or a single token gets the rating 3. germane's built-in scorers accept these replies. You can change all attributes
    while the server is running.
    """

    outage: Fault | None = None
    """A fault that is applied to every request while it is set."""
    in_flight = 0
    """The current number of concurrent chat requests."""
    max_in_flight = 0
    """The largest number of concurrent chat requests so far."""
    embeddings_in_flight = 0
    """The current number of concurrent embedding requests."""
    max_embeddings_in_flight = 0
    """The largest number of concurrent embedding requests so far."""

    def __init__(
        self,
        *,
        questions: GenerateQuestions = questions_about,
        noncommittal: NoncommittalVotes | Callable[[str], NoncommittalVotes] = False,
        replies: ReplyFunction | Iterable[ScriptedReply] = (),
        first_token: TokenProbabilities | Callable[[JudgeRequest], TokenProbabilities | None] | None = None,
        vectors: Mapping[str, Sequence[float]] | None = None,
        latency: float = 0.0,
        embedding_latency: float | None = None,
        faults: Iterable[Fault | None] = (),
        embedding_faults: Iterable[Fault | None] = (),
        supports_n: bool = True,
        response_format: OptionSupport = "supported",
        logprobs: OptionSupport = "supported",
        encoding_format: OptionSupport = "ignored",
        model: str = "fake-judge",
        embedding_model: str = "fake-embedder",
        dimension: int = 256,
        port: int = 0,
    ) -> None:
        """Start the server on 127.0.0.1. If ``port`` is 0, the operating system chooses a free port."""
        self.questions = questions
        """A function that returns the generated questions for an answer. Choice i is question i; if there are fewer
        questions than choices, the questions repeat.
        """
        self.noncommittal = noncommittal
        """Whether the judge votes that the answer is noncommittal: one vote for all choices, one per choice, or a
        function of the answer that returns either. If None, there are no votes."""
        self.replies = replies
        self.first_token = first_token
        """The probabilities for the first token of a chat reply, or a function of the request that returns them. If
        None, there are no logprobs. By default, the reply to a request for a single token is the most likely of these
        tokens.
        """
        self.vectors = dict(vectors or {})
        """Fixed vectors by text, all of the same dimension. Other texts are hashed."""
        self.latency = latency
        """Delay before each reply, in seconds."""
        self.embedding_latency = embedding_latency
        """Delay before each embedding reply, in seconds. Defaults to ``latency``."""
        self.faults: deque[Fault | None] = deque(faults)
        """Faults for the next chat requests, in order. None means no fault for that request."""
        self.embedding_faults: deque[Fault | None] = deque(embedding_faults)
        """Faults for the next embedding requests, in order. None means no fault for that request."""
        self.supports_n = supports_n
        """Whether the server supports ``n``. If not, it always returns one choice."""
        self.response_format = response_format
        self.logprobs = logprobs
        self.encoding_format = encoding_format
        """How the server handles ``encoding_format: base64``, which has 32-bit precision."""
        self.model = model
        self.embedding_model = embedding_model
        self.dimension = dimension
        self.requests: list[JudgeRequest] = []
        """All requests so far, in order of arrival."""
        self.closing = threading.Event()
        self._lock = threading.Lock()
        self._server = JudgeServer(("127.0.0.1", port), self)
        self._thread = threading.Thread(
            target=self._server.serve_forever, kwargs={"poll_interval": 0.05}, name="germane-fake-judge", daemon=True
        )
        self._thread.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def replies(self) -> ReplyFunction | deque[ScriptedReply]:
        """The scripted replies: a function of the request, or a queue that is consumed one reply at a time.

        A text is sent unchanged, and a mapping is sent as JSON; both apply to every requested choice. A list contains
        one text per choice. The default reply is sent for None, and when the queue is empty.
        """
        return self._replies

    @replies.setter
    def replies(self, replies: ReplyFunction | Iterable[ScriptedReply]) -> None:
        self._replies = replies if callable(replies) else deque(replies)

    @property
    def base_url(self) -> str:
        """The base URL, such as ``http://127.0.0.1:40123/v1``."""
        return f"http://127.0.0.1:{self._server.server_port}/v1"

    @property
    def chat_requests(self) -> list[JudgeRequest]:
        """The chat requests so far."""
        return [request for request in self.requests if request.path.endswith("/chat/completions")]

    @property
    def embedding_requests(self) -> list[JudgeRequest]:
        """The embedding requests so far."""
        return [request for request in self.requests if request.path.endswith("/embeddings")]

    def settings(self) -> dict[str, Any]:
        """Return the settings that make germane use this judge and disable proxy scores."""
        return {
            "base_url": self.base_url,
            "api_key": "test",
            "judge": self.model,
            "embedder": self.embedding_model,
            "proxy_cpu": "0",
        }

    def close(self) -> None:
        """Stop listening, disconnect all clients, and wait for the threads to exit. Idempotent."""
        if self.closing.is_set():
            return
        self.closing.set()
        self._server.shutdown()
        self._server.end_connections()
        self._server.server_close()
        self._thread.join()

    @contextmanager
    def track_request(self, request: JudgeRequest) -> Iterator[Fault | None]:
        """Record a request, count it as in flight while the block runs, and yield its fault.

        The server calls this method.
        """
        is_embedding = request.path.endswith("/embeddings")
        with self._lock:
            self.requests.append(request)
            if is_embedding:
                self.embeddings_in_flight += 1
                self.max_embeddings_in_flight = max(self.max_embeddings_in_flight, self.embeddings_in_flight)
            else:
                self.in_flight += 1
                self.max_in_flight = max(self.max_in_flight, self.in_flight)
            faults = self.embedding_faults if is_embedding else self.faults
            fault = faults.popleft() if faults else None
        latency = self.embedding_latency if is_embedding and self.embedding_latency is not None else self.latency
        try:
            if latency:
                self.closing.wait(latency)
            yield self.outage or fault
        finally:
            with self._lock:
                if is_embedding:
                    self.embeddings_in_flight -= 1
                else:
                    self.in_flight -= 1

    def reply(self, request: JudgeRequest, fault: Fault | None) -> JudgeReply:
        """Return the reply to a request, with a fault applied. The server calls this method."""
        match fault:
            case Fault(kind="status"):
                return _error_reply(fault)
            case Fault(kind="garbage"):
                return JudgeReply(b"<html>it works!</html>", headers={"Content-Type": "text/html"})
            case Fault(kind="not_json"):
                return JudgeReply(b'{"choices": [')
            case Fault(kind="empty_body"):
                return JudgeReply(b"")
            case Fault(kind="error_body"):
                return JudgeReply({"error": {"message": fault.message, "code": fault.code}})
            case Fault(kind="compressed"):
                body = gzip.compress(b" " * 100_000_000, compresslevel=1)
                return JudgeReply(body, headers={"Content-Encoding": "gzip"})
            case Fault(kind="redirect"):
                return JudgeReply(b"", 307, {"Location": request.path})
        if request.path.endswith("/chat/completions"):
            return self._reply_to_chat(request, fault)
        if request.path.endswith("/embeddings"):
            return self._reply_to_embedding(request, fault)
        return JudgeReply({"error": {"message": "no such path"}}, 404)

    def _reply_to_chat(self, request: JudgeRequest, fault: Fault | None) -> JudgeReply:
        for option, support in (("response_format", self.response_format), ("logprobs", self.logprobs)):
            if support == "rejected" and request.body.get(option):
                return _error_reply(Fault("status", status=400, message=f"{option} is not supported here"))
        probabilities = self.first_token(request) if callable(self.first_token) else self.first_token
        contents = self._contents(request, probabilities)
        logprobs = None
        if probabilities and request.body.get("logprobs") and self.logprobs == "supported":
            tokens = [
                {"token": token, "logprob": math.log(probability) if probability > 0 else -9999.0, "bytes": None}
                for token, probability in sorted(probabilities.items(), key=lambda item: -item[1])
            ]
            logprobs = {
                "content": [{**tokens[0], "top_logprobs": tokens[: int(request.body.get("top_logprobs") or 0)]}],
                "refusal": None,
            }
        choices = [
            {
                "index": index,
                "message": {"role": "assistant", "content": content},
                "finish_reason": "stop",
                "logprobs": copy.deepcopy(logprobs),
            }
            for index, content in enumerate(contents)
        ]
        corrupt_choices(choices, fault)
        input_tokens = sum(len(text.split()) for text in request.texts)
        output_tokens = sum(len(content.split()) for content in contents)
        return JudgeReply(
            {
                "id": "chatcmpl-fake",
                "object": "chat.completion",
                "created": 0,
                "model": self.model,
                "choices": choices,
                "usage": {
                    "prompt_tokens": input_tokens,
                    "completion_tokens": output_tokens,
                    "total_tokens": input_tokens + output_tokens,
                },
            }
        )

    def _contents(self, request: JudgeRequest, probabilities: TokenProbabilities | None) -> list[str]:
        """Return the content of each choice."""
        with self._lock:
            if isinstance(self._replies, deque):
                scripted = self._replies.popleft() if self._replies else None
            else:
                scripted = self._replies(request)
        if isinstance(scripted, Sequence) and not isinstance(scripted, str):
            return list(scripted)
        n = request.n if self.supports_n else 1
        if scripted is not None:
            return [scripted if isinstance(scripted, str) else json.dumps(scripted, ensure_ascii=False)] * n
        if probabilities and request.is_single_token:
            return [max(probabilities, key=lambda token: probabilities[token])] * n
        defaults = self._default_contents(request)
        return [defaults[index % len(defaults)] if defaults else "" for index in range(n)]

    def _default_contents(self, request: JudgeRequest) -> list[str]:
        """Return the contents of the default reply. The choices cycle through them."""
        if request.asks_for_rating:
            return [DEFAULT_RATING]
        if request.schema is not None and not request.asks_for_questions:
            content = json.dumps(schema_instance(request.schema, items=request.numbered_questions or 1))
            return [f"Here you are: {content} - any time." if self.response_format == "ignored" else content]
        questions = list(self.questions(request.answer))
        if not request.asks_for_questions:
            return questions
        if self.response_format == "ignored":
            return ["\n".join(questions)] if request.asks_for_question_list else questions
        votes = self.noncommittal(request.answer) if callable(self.noncommittal) else self.noncommittal
        objects: list[dict[str, Any]] = [{"question": question} for question in questions]
        for index, item in enumerate(objects):
            vote = votes[index % len(votes)] if isinstance(votes, Sequence) else votes
            if vote is not None and request.asks_for_votes:
                item["noncommittal"] = vote
        if request.asks_for_question_list:
            return [json.dumps({"questions": objects})]
        return [json.dumps(item) for item in objects]

    def _reply_to_embedding(self, request: JudgeRequest, fault: Fault | None) -> JudgeReply:
        support = self.encoding_format if request.body.get("encoding_format") == "base64" else "ignored"
        if support == "rejected":
            return _error_reply(Fault("status", status=400, message="encoding_format is not supported here"))
        texts = request.body.get("input", [])
        texts = [texts] if isinstance(texts, str) else list(texts)
        dimension = len(next(iter(self.vectors.values()))) if self.vectors else self.dimension
        rows = [list(self.vectors.get(text) or hashed_words(text, dimension)) for text in texts]
        rows = corrupt_vectors(rows, fault)
        vectors: list[Any] = list(rows)
        if support == "supported":
            vectors = [base64.b64encode(struct.pack(f"<{len(row)}f", *row)).decode() for row in rows]
        data = [{"object": "embedding", "index": index, "embedding": vector} for index, vector in enumerate(vectors)]
        corrupt_indexes(data, fault)
        tokens = sum(len(text.split()) for text in texts)
        usage = {"prompt_tokens": tokens, "total_tokens": tokens}
        return JudgeReply({"object": "list", "data": data, "model": self.embedding_model, "usage": usage})


def _error_reply(fault: Fault) -> JudgeReply:
    body = {"error": {"message": fault.message, "type": fault.code or "test_error", "code": fault.code, "param": None}}
    headers = {} if fault.retry_after is None else {"Retry-After": str(fault.retry_after)}
    return JudgeReply(body, fault.status, headers)
