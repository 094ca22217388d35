"""A judge and an embedder that cost nothing: the OpenAI protocol over real HTTP, on this machine."""

from __future__ import annotations

import base64
import json
import math
import struct
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import TracebackType
from typing import Any, Literal, Self

from germane.testing.fault import Fault, spoil_choices, spoil_rows
from germane.testing.judge_request import Request
from germane.testing.judge_server import JudgeServer, Reply, hashed_words

_EMPTY: Mapping[str, Any] = {"boolean": False, "null": None, "string": "text"}


def instance_of(schema: Mapping[str, Any], *, items: int = 1) -> Any:
    """Return a small value that follows the schema.

    The first of what it may be, the least number (else 0), lists of so many ``items`` unless the schema says otherwise,
    all properties. Numbers in the items of a list count these from 1, which is what they mostly are there for.
    """
    return _instance(schema, schema, items, 0)


def _instance(schema: Mapping[str, Any], root: Mapping[str, Any], items: int, place: int) -> Any:
    schema = _resolved(schema, root)
    if "const" in schema:
        return schema["const"]
    if "enum" in schema:
        return schema["enum"][0]
    kinds = schema.get("type", "object" if "properties" in schema else "null")
    kind = kinds if isinstance(kinds, str) else kinds[0]
    if kind == "object":
        return {name: _instance(each, root, items, place) for name, each in schema.get("properties", {}).items()}
    if kind == "array":
        places = range(1, _length(schema, items) + 1)
        return [_instance(schema.get("items", {}), root, items, at) for at in places]
    if kind in ("number", "integer"):
        return _number(schema, place)
    return _EMPTY.get(kind)


def _resolved(schema: Mapping[str, Any], root: Mapping[str, Any]) -> Mapping[str, Any]:
    for several in ("anyOf", "oneOf", "allOf"):
        if schema.get(several):
            return _resolved(schema[several][0], root)
    if "$ref" not in schema:
        return schema
    found: Any = root
    for step in schema["$ref"].removeprefix("#/").split("/"):
        found = found[step]
    return _resolved(found, root)


def _length(schema: Mapping[str, Any], items: int) -> int:
    least: int = schema.get("minItems", 0)
    most: int = schema.get("maxItems", 1_000)
    return min(max(items, least), most)


def _number(schema: Mapping[str, Any], place: int) -> float:
    least: float = schema.get("minimum", schema.get("exclusiveMinimum", place - 1) + 1)
    most: float = schema.get("maximum", least)
    return min(least, most)


Likely = Mapping[str, float]
"""Token -> how likely it is, 0 to 1."""
FirstToken = Likely | Callable[[Request], Likely | None] | None


def likeliest(tokens: Likely) -> str:
    """Return the token that a judge at temperature 0 writes."""
    return max(tokens, key=lambda token: tokens[token])


def tell(tokens: Likely, most: int) -> dict[str, Any]:
    """Return the ``logprobs`` of a choice of one token, with the ``most`` likeliest in its place."""
    order = sorted(tokens, key=lambda token: -tokens[token])
    entries = [{"token": token, "logprob": _logarithm(tokens[token]), "bytes": None} for token in order]
    return {"content": [{**entries[0], "top_logprobs": entries[:most]}], "refusal": None}


def _logarithm(probability: float) -> float:
    return math.log(probability) if probability > 0 else -9999.0


Questions = Callable[[str], Sequence[str]]
Votes = bool | Sequence[bool] | None
Said = str | Mapping[str, Any] | Sequence[str] | None
"""A text, JSON, a text for each choice, or None for what the judge would say by itself."""
Replies = Callable[[Request], Said]
RATING = "3"
"""What it says by itself within one token."""
Treatment = Literal["honoured", "ignored", "refused"]
"""What a server does with an option of a request; it refuses with HTTP 400."""


def questions_about(answer: str) -> list[str]:
    """Return three questions made of the answer's first words: near to a question that shares those."""
    topic = " ".join(answer.split()[:12]).rstrip(".!?:;,") or "nothing"
    return [f"What about {topic}?", f"Can you say more on {topic}?", f"Is it true that {topic}?"]


class FakeJudge:
    """A server of the OpenAI protocol for tests and demonstrations.

    ::

        with FakeJudge(questions=lambda answer: ["What is the capital of France?"]) as judge:
            germane.start(**judge.settings())

    It answers ``/v1/chat/completions`` (with ``n``, ``response_format`` and ``logprobs``), ``/v1/embeddings`` (see
    :func:`germane.testing.hashed_words`) and ``/v1/models``. Asked for questions, it writes ``questions``; asked for
    any other JSON schema, a small instance of it, which germane's own scorers can read; for one token, a rating of 3;
    ``replies`` says otherwise. Every attribute below may be changed while it runs.
    """

    def __init__(
        self,
        *,
        questions: Questions = questions_about,
        noncommittal: Votes | Callable[[str], Votes] = False,
        replies: Replies | Iterable[Said] = (),
        first_token: FirstToken = None,
        vectors: Mapping[str, Sequence[float]] | None = None,
        latency: float = 0.0,
        embedding_latency: float | None = None,
        faults: Iterable[Fault | None] = (),
        embedding_faults: Iterable[Fault | None] = (),
        honours_n: bool = True,
        response_format: Treatment = "honoured",
        logprobs: Treatment = "honoured",
        packed_vectors: Treatment = "ignored",
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
        self.replies = replies
        self.first_token = first_token
        """How likely the first tokens of a chat reply are, or a function of the request that returns it. None: the
        server tells nothing of them. A reply of one token that nothing scripts is the likeliest."""
        self.vectors = dict(vectors or {})
        """Text -> its vector, for texts whose vectors are to be known; all of one dimension. Others are hashed."""
        self.latency = latency
        """Seconds before each reply."""
        self.embedding_latency = embedding_latency
        """The same for embeddings, where it differs."""
        self.faults: deque[Fault | None] = deque(faults)
        """What happens to the next chat requests, one by one; None: all goes well."""
        self.embedding_faults: deque[Fault | None] = deque(embedding_faults)
        """Likewise for embedding requests."""
        self.outage: Fault | None = None
        """What happens to every request while it is set."""
        self.honours_n = honours_n
        self.response_format = response_format
        self.logprobs = logprobs
        self.packed_vectors = packed_vectors
        """What it does with ``encoding_format`` base64, which keeps numbers of 32 bits only."""
        self.model = model
        self.embedding_model = embedding_model
        self.dimension = dimension
        self.requests: list[Request] = []
        """Everything that was asked, in order of arrival."""
        self.in_flight = 0
        """Chat requests that wait for their reply."""
        self.most_in_flight = 0
        self.embeddings_in_flight = 0
        self.most_embeddings_in_flight = 0
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
    def replies(self) -> Replies | deque[Said]:
        """What the judge says: a function of the request, or a script that is played once, reply by reply.

        A text is sent as it is, a mapping as JSON, both once for each choice asked for; of a list each item is the
        text of a choice. None, and the end of a script, is what the judge would say by itself.
        """
        return self._replies

    @replies.setter
    def replies(self, replies: Replies | Iterable[Said]) -> None:
        self._replies = replies if callable(replies) else deque(replies)

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
        """Return the settings that point germane here, as texts; no proxy loads a model beside the fake judge."""
        return {
            "base_url": self.base_url,
            "api_key": "test",
            "judge": self.model,
            "embedder": self.embedding_model,
            "proxy_cpu": "0",
        }

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
        embeds = request.path.endswith("/embeddings")
        with self._lock:
            self.requests.append(request)
            self._count(embeds, 1)
            script = self.embedding_faults if embeds else self.faults
            scripted = script.popleft() if script else None
        latency = self.latency if self.embedding_latency is None or not embeds else self.embedding_latency
        try:
            if latency:
                self.closing.wait(latency)
            yield self.outage or scripted
        finally:
            with self._lock:
                self._count(embeds, -1)

    def _count(self, embeds: bool, by: int) -> None:  # noqa: FBT001 - one of two counts
        if embeds:
            self.embeddings_in_flight += by
            self.most_embeddings_in_flight = max(self.most_embeddings_in_flight, self.embeddings_in_flight)
        else:
            self.in_flight += by
            self.most_in_flight = max(self.most_in_flight, self.in_flight)

    def reply(self, request: Request, fault: Fault | None) -> Reply:
        """Return the reply to a request, made bad by the fault."""
        if fault is not None and fault.kind == "status":
            return _error(fault)
        if fault is not None and fault.kind == "garbage":
            return Reply(b"<html>it works!</html>", headers={"Content-Type": "text/html"})
        if fault is not None and fault.kind == "not_json":
            return Reply(b'{"choices": [')
        if request.path.endswith("/chat/completions"):
            return self._chat(request, fault)
        if request.path.endswith("/embeddings"):
            return self._embed(request.body, fault)
        return Reply({"error": {"message": "no such path"}}, 404)

    def _chat(self, request: Request, fault: Fault | None) -> Reply:
        refused = [name for name in ("response_format", "logprobs") if getattr(self, name) == "refused"]
        for name in refused:
            if request.body.get(name):
                return _error(Fault("status", status=400, message=f"{name} is not supported here"))
        tokens = self.first_token(request) if callable(self.first_token) else self.first_token
        contents = self._contents(request, tokens)
        choices = [_choice(place, content) for place, content in enumerate(contents)]
        if tokens and request.body.get("logprobs") and self.logprobs == "honoured":
            for choice in choices:
                choice["logprobs"] = tell(tokens, int(request.body.get("top_logprobs") or 0))
        said = sum(len(content.split()) for content in contents)
        spoil_choices(choices, fault)
        words = sum(len(text.split()) for text in request.texts)
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

    def _contents(self, request: Request, tokens: Likely | None) -> list[str]:
        with self._lock:
            scripted = self._scripted(request)
        if isinstance(scripted, Sequence) and not isinstance(scripted, str):
            return list(scripted)
        n = request.choices if self.honours_n else 1
        if scripted is not None:
            return [scripted if isinstance(scripted, str) else json.dumps(scripted, ensure_ascii=False)] * n
        if tokens and request.one_token:
            return [likeliest(tokens)] * n
        said = self._of_itself(request)
        return [said[place % len(said)] if said else "" for place in range(n)]

    def _scripted(self, request: Request) -> Said:
        replies = self._replies
        if isinstance(replies, deque):
            return replies.popleft() if replies else None
        return replies(request)

    def _of_itself(self, request: Request) -> list[str]:
        """Return what the judge says by itself, for one choice after another."""
        if request.one_token:
            return [RATING]
        if request.schema is not None and not request.wants_questions:
            content = json.dumps(instance_of(request.schema, items=request.compared or 1))
            return [f"Here you are: {content} - any time." if self.response_format == "ignored" else content]
        questions = list(self.questions(request.answer))
        if not request.wants_questions:
            return questions
        if self.response_format == "ignored":
            return ["\n".join(questions)] if request.wants_list else questions
        votes = self.noncommittal(request.answer) if callable(self.noncommittal) else self.noncommittal
        voted = [_json_question(question, _vote(votes, place)) for place, question in enumerate(questions)]
        return [json.dumps({"questions": voted})] if request.wants_list else [json.dumps(each) for each in voted]

    def _embed(self, body: Mapping[str, Any], fault: Fault | None) -> Reply:
        given = body.get("input", [])
        texts = [given] if isinstance(given, str) else list(given)
        rows = [list(self.vectors.get(text) or self._hashed(text)) for text in texts]
        rows = spoil_rows(rows, fault)
        packs = body.get("encoding_format") == "base64" and self.packed_vectors
        if packs == "refused":
            return _error(Fault("status", status=400, message="encoding_format is not supported here"))
        vectors = [_packed(row) for row in rows] if packs == "honoured" else rows
        data = [{"object": "embedding", "index": place, "embedding": each} for place, each in enumerate(vectors)]
        words = sum(len(text.split()) for text in texts)
        usage = {"prompt_tokens": words, "total_tokens": words}
        return Reply({"object": "list", "data": data, "model": self.embedding_model, "usage": usage})

    def _hashed(self, text: str) -> list[float]:
        known = next(iter(self.vectors.values()), None)
        return hashed_words(text, self.dimension if known is None else len(known))


def _packed(row: Sequence[float]) -> str:
    return base64.b64encode(struct.pack(f"<{len(row)}f", *row)).decode()


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
