"""What ``@germane.observe`` without options captures from the commonest shapes of handlers, with the real frameworks.

FastAPI, Flask and the openai package are always installed. The other frameworks are installed by ``make frameworks``,
which runs this file; without them, their tests are skipped.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from http import HTTPStatus
from pathlib import Path
from typing import Any

import flask
import pytest
from fastapi import FastAPI, Request
from fastapi.responses import FileResponse, RedirectResponse, Response, StreamingResponse
from fastapi.testclient import TestClient
from openai.types.chat import ChatCompletion
from pydantic import BaseModel

import germane
from germane.testing import collect

QUESTION, ANSWER = "Can I return shoes?", "Shoes can be returned within thirty days."
WORDS = [f"{word} " for word in ANSWER.split()]
WORDS[-1] = WORDS[-1].strip()
CONVERSATION = [
    {"role": "system", "content": "Answer from the documents."},
    {"role": "user", "content": "Hello!"},
    {"role": "assistant", "content": "How can I help?"},
    {"role": "user", "content": QUESTION},
]
COMPLETION = {
    "id": "1", "object": "chat.completion", "created": 1, "model": "m",
    "choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": ANSWER}}],
}  # fmt: skip


class Message(BaseModel):
    role: str
    content: str


class ChatRequest(BaseModel):
    model: str = "m"
    messages: list[Message]


class Ask(BaseModel):
    question: str
    language: str = "en"


def assert_captured(exchanges: list[germane.Exchange], question: str | None = QUESTION) -> germane.Exchange:
    """Check that there is one exchange with the question and the answer."""
    (exchange,) = exchanges
    assert (exchange.question, exchange.answer, exchange.status) == (question, ANSWER, "ok")
    return exchange


def post(app: FastAPI, body: Any) -> str:
    """Return the body of the response to a request."""
    with TestClient(app) as client:
        response = client.post("/ask", json=body)
    assert response.status_code == 200
    return response.text


def events() -> Iterator[str]:
    """Yield the events of a stream in OpenAI's format."""
    for delta in ({"role": "assistant"}, *({"content": word} for word in WORDS)):
        yield f"data: {json.dumps({'choices': [{'index': 0, 'delta': delta}]})}\n\n"
    yield f"data: {json.dumps({'choices': [], 'usage': {'total_tokens': 9}})}\n\ndata: [DONE]\n\n"


def test_fastapi_with_server_sent_events() -> None:
    """The question is the last message of the body, with the earlier ones as history. The answer is the deltas."""
    app = FastAPI()

    @app.post("/ask")
    @germane.observe
    async def ask(body: ChatRequest) -> StreamingResponse:
        return StreamingResponse(events(), media_type="text/event-stream")

    with collect() as exchanges:
        assert post(app, {"messages": CONVERSATION}).endswith("data: [DONE]\n\n")

    assert [message.content for message in assert_captured(exchanges).history] == ["Hello!", "How can I help?"]


@pytest.mark.parametrize("name", ["delta", "text", "token", "content"])
def test_fastapi_with_lines_of_json(name: str) -> None:
    """The text is read from each line, even if chunks end in the middle of one."""
    app = FastAPI()
    lines = "".join(json.dumps({name: word}) + "\n" for word in WORDS) + json.dumps({"done": True}) + "\n"

    @app.post("/ask")
    @germane.observe
    async def ask(body: Ask) -> StreamingResponse:
        async def stream() -> AsyncIterator[str]:
            for start in range(0, len(lines), 7):
                yield lines[start : start + 7]

        return StreamingResponse(stream(), media_type="application/x-ndjson")

    with collect() as exchanges:
        assert post(app, {"question": QUESTION}) == lines

    assert_captured(exchanges)


@pytest.mark.parametrize("kind", ["dict", "object"])
def test_an_endpoint_with_the_protocol_of_openai(kind: str) -> None:
    """The answer is the first choice, in a dict or an object of the openai package."""
    app = FastAPI()

    @app.post("/ask")
    @germane.observe
    def complete(request: dict[str, Any]) -> Any:
        return COMPLETION if kind == "dict" else ChatCompletion.model_validate(COMPLETION)

    with collect() as exchanges:
        post(app, {"model": "m", "messages": CONVERSATION})

    assert_captured(exchanges)


def test_a_handler_that_reads_its_request() -> None:
    """The question is in what the handler has read from the request, whose body germane does not read."""
    app = FastAPI()

    @app.post("/ask")
    @germane.observe
    async def ask(request: Request) -> dict[str, Any]:
        body = await request.json()
        return {"answer": ANSWER, "sources": [body["question"]]}

    with collect() as exchanges:
        post(app, {"question": QUESTION})

    assert_captured(exchanges)


@pytest.mark.parametrize("kind", ["dict", "response", "status"])
def test_flask_with_a_json_request(kind: str) -> None:
    """The question is in the JSON that the handler has read, not in the parameters of the route."""
    app = flask.Flask(__name__)

    @app.post("/<tenant>/ask")
    @germane.observe
    def ask(tenant: str) -> Any:
        assert flask.request.json == {"question": QUESTION}
        result = {"answer": ANSWER, "tenant": tenant}
        return {"dict": result, "response": flask.jsonify(result), "status": (result, 200)}[kind]

    with collect() as exchanges:
        response = app.test_client().post("/acme/ask", json={"question": QUESTION})

    assert response.json == {"answer": ANSWER, "tenant": "acme"}
    assert_captured(exchanges)


def test_flask_with_a_body_that_is_text() -> None:
    """A body without a structure is the question as a whole."""
    app = flask.Flask(__name__)

    @app.post("/ask")
    @germane.observe
    def ask() -> str:
        return ANSWER if flask.request.get_data(as_text=True) == QUESTION else ""

    with collect() as exchanges:
        app.test_client().post("/ask", data=QUESTION, content_type="text/plain")

    assert_captured(exchanges)


def test_flask_with_an_error_status() -> None:
    """A body with the status of an error is not an answer."""
    app = flask.Flask(__name__)

    @app.post("/ask")
    @germane.observe
    def ask() -> Any:
        return {"answer": f"Cannot answer {flask.request.json['question']}"}, 503

    with collect() as exchanges:
        assert app.test_client().post("/ask", json={"question": QUESTION}).status_code == 503

    (exchange,) = exchanges
    assert (exchange.question, exchange.answer, exchange.status) == (QUESTION, None, "error")
    assert exchange.error == "HTTP 503"


@pytest.mark.parametrize("rest", [({"Content-Type": "text/plain"},), (200, [("X-Id", "1")]), ("201 CREATED",)])
def test_flask_with_a_stream_and_headers(rest: tuple[Any, ...]) -> None:
    """The body before a status or headers may be a stream. The question is a parameter of the URL."""
    app = flask.Flask(__name__)

    @app.get("/ask")
    @germane.observe
    def ask() -> Any:
        assert flask.request.args["q"] == QUESTION
        return iter(WORDS), *rest

    with collect() as exchanges:
        assert app.test_client().get("/ask", query_string={"q": QUESTION, "tenant": "acme"}).text == ANSWER

    assert_captured(exchanges)


@pytest.mark.parametrize("status", [HTTPStatus.BAD_GATEWAY, "502 BAD GATEWAY", 502])
def test_flask_with_any_form_of_an_error_status(status: Any) -> None:
    """The status is a number, a member of ``HTTPStatus`` or a text."""
    app = flask.Flask(__name__)

    @app.post("/ask")
    @germane.observe
    def ask() -> Any:
        return f"Cannot answer {flask.request.json['question']}", status

    with collect() as exchanges:
        assert app.test_client().post("/ask", json={"question": QUESTION}).status_code == 502

    assert [(exchange.answer, exchange.error) for exchange in exchanges] == [(None, "HTTP 502")]


@pytest.mark.parametrize("result", [(ANSWER, ["a source"]), ("A title", ANSWER)])
def test_a_function_called_by_a_flask_view_may_return_other_tuples(result: tuple[Any, ...]) -> None:
    """Texts and sources are neither a status nor headers. Of two texts, either may be the answer."""

    @germane.observe
    def ask(question: str) -> Any:
        return result

    with collect() as exchanges, flask.Flask(__name__).test_request_context():
        ask(QUESTION)

    assert [exchange.answer for exchange in exchanges] == [ANSWER if result[0] == ANSWER else None]


def test_flask_with_a_stream_that_is_not_text(caplog: pytest.LogCaptureFixture) -> None:
    """The content type in the headers says that the chunks are not text."""
    app = flask.Flask(__name__)

    @app.post("/ask")
    @germane.observe(route="picture of Flask")
    def ask() -> Any:
        return iter([f"{flask.request.json['question']}".encode()]), {"Content-Type": "image/png"}

    with collect() as exchanges:
        app.test_client().post("/ask", json={"question": QUESTION})

    assert [exchange.answer for exchange in exchanges] == [None]
    assert "answer of picture of Flask: image/png is not text" in caplog.text


@pytest.mark.parametrize("response", ["redirect", "image", "file", "empty"])
def test_a_response_without_text_is_reported_once(
    response: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Redirects, images and files are not answers."""
    app, path = FastAPI(), tmp_path / "answer.txt"
    path.write_text(ANSWER, encoding="utf-8")
    responses = {
        "redirect": lambda: RedirectResponse("/elsewhere"),
        "image": lambda: Response(b"\x89PNG", media_type="image/png"),
        "file": lambda: FileResponse(path),
        "empty": lambda: Response(status_code=204),
    }

    @app.post("/ask", response_model=None)
    @germane.observe(route=f"answers with {response}")
    def ask(body: Ask) -> Response:
        return responses[response]()

    with collect() as exchanges, TestClient(app) as client:
        for _ in range(2):
            client.post("/ask", json={"question": QUESTION}, follow_redirects=False)

    assert [(exchange.question, exchange.answer) for exchange in exchanges] == [(QUESTION, None)] * 2
    assert [f"answer of answers with {response}: " in message for message in caplog.messages] == [True]


def test_flask_that_does_not_read_its_request(caplog: pytest.LogCaptureFixture) -> None:
    """The body is left to the application, and the missing question is reported once."""
    app = flask.Flask(__name__)

    @app.post("/ask")
    @germane.observe(route="unread")
    def ask() -> str:
        return ANSWER

    with collect() as exchanges:
        for _ in range(2):
            app.test_client().post("/ask", json={"question": QUESTION})

    assert [exchange.question for exchange in exchanges] == [None, None]
    assert [message for message in caplog.messages if "question of unread" in message] == caplog.messages[:1]


def test_django_view() -> None:
    """The question is in the body that the view has read; the answer is in its JSON response."""
    pytest.importorskip("django")
    from django.conf import settings
    from django.http import HttpRequest, JsonResponse
    from django.test import RequestFactory

    if not settings.configured:
        settings.configure(ALLOWED_HOSTS=["testserver"])

    @germane.observe
    def ask(request: HttpRequest, tenant: str) -> JsonResponse:
        return JsonResponse({"answer": ANSWER, "asked": json.loads(request.body)["question"], "tenant": tenant})

    with collect() as exchanges:
        request = RequestFactory().post("/ask", {"question": QUESTION}, content_type="application/json")
        response = ask(request, "acme")

    assert json.loads(response.content)["asked"] == QUESTION
    assert_captured(exchanges)


def test_django_view_with_parameters() -> None:
    """The question is in the parameters that the view has read."""
    pytest.importorskip("django")
    from django.conf import settings
    from django.http import HttpRequest, HttpResponse
    from django.test import RequestFactory

    if not settings.configured:
        settings.configure(ALLOWED_HOSTS=["testserver"])

    @germane.observe
    def ask(request: HttpRequest) -> HttpResponse:
        return HttpResponse(ANSWER if request.GET["q"] == QUESTION else "")

    with collect() as exchanges:
        ask(RequestFactory().get("/ask", {"q": QUESTION, "language": "en"}))

    assert_captured(exchanges)


def test_django_rest_framework() -> None:
    """The answer is in the data of a response that is rendered later."""
    pytest.importorskip("rest_framework")
    from django.conf import settings

    if not settings.configured:
        settings.configure(ALLOWED_HOSTS=["testserver"])
    from rest_framework.parsers import JSONParser
    from rest_framework.request import Request as RestRequest
    from rest_framework.response import Response as RestResponse
    from rest_framework.test import APIRequestFactory

    @germane.observe
    def ask(request: RestRequest, status: int) -> RestResponse:
        return RestResponse({"answer": ANSWER, "asked": request.data["question"]}, status=status)

    for status in (200, 400):
        with collect() as exchanges:
            posted = APIRequestFactory().post("/ask", {"question": QUESTION}, format="json")
            ask(RestRequest(posted, parsers=[JSONParser()]), status)
        if status == 200:
            assert_captured(exchanges)
    assert [(exchange.question, exchange.answer, exchange.error) for exchange in exchanges] == [
        (QUESTION, None, "HTTP 400")
    ]


@pytest.mark.parametrize("kind", ["struct", "request", "response", "parameters"])
def test_litestar_and_msgspec(kind: str) -> None:
    """Requests without a ``__dict__``, responses that are rendered later, and msgspec's objects are read."""
    pytest.importorskip("litestar")
    msgspec = pytest.importorskip("msgspec")
    from litestar import Litestar, Request, Response, get, post
    from litestar.testing import TestClient as LitestarClient

    asked = msgspec.defstruct("Asked", [("question", str)])
    answered = msgspec.defstruct("Answered", [("answer", str), ("sources", list[str], [])])

    async def ask_struct(data: Any) -> Any:
        return answered(ANSWER)

    async def ask_request(request: Any) -> Any:
        await request.json()
        return {"answer": ANSWER}

    async def ask_response(data: Any) -> Any:
        return Response(answered(ANSWER))

    async def ask_parameters(request: Any) -> Any:
        return ANSWER if request.query_params["q"] == QUESTION else ""

    handlers = {"struct": ask_struct, "request": ask_request, "response": ask_response, "parameters": ask_parameters}
    returned = {"struct": answered, "request": dict[str, str], "response": Response[answered], "parameters": str}
    handler = handlers[kind]
    handler.__annotations__ = {next(iter(handler.__annotations__)): asked, "return": returned[kind]}
    if kind in {"request", "parameters"}:
        handler.__annotations__["request"] = Request
    decorate = get if kind == "parameters" else post
    with collect() as exchanges, LitestarClient(Litestar([decorate("/ask")(germane.observe(handler))])) as client:
        if kind == "parameters":
            response = client.get("/ask", params={"q": QUESTION})
        else:
            response = client.post("/ask", json={"question": QUESTION})

    assert response.status_code in {200, 201}, response.text
    assert_captured(exchanges)


def test_langgraph_node_and_graph() -> None:
    """The question is the last message of the state; the answer is the message that the node adds."""
    pytest.importorskip("langgraph")
    from langchain_core.messages import AIMessage
    from langgraph.graph import START, MessagesState, StateGraph

    @germane.observe
    def generate(state: MessagesState) -> dict[str, Any]:
        return {"messages": [AIMessage(ANSWER)]}

    graph = StateGraph(MessagesState).add_node("generate", generate).add_edge(START, "generate").compile()

    @germane.observe
    def ask(state: dict[str, Any]) -> Any:
        return graph.invoke(state)  # type: ignore[arg-type]  # a dict is enough

    for run in (graph.invoke, ask):
        with collect() as exchanges:
            run({"messages": CONVERSATION})
        assert len(assert_captured(exchanges).history) == 2
    for messages in ([("user", QUESTION)], ("human", QUESTION)):
        with collect() as exchanges:
            ask({"messages": messages})
        assert_captured(exchanges)


def test_langgraph_streams() -> None:
    """The answer is the message of the last call of a model, in whatever mode the graph is streamed."""
    pytest.importorskip("langgraph")
    from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
    from langchain_core.messages import AIMessage
    from langgraph.graph import START, MessagesState, StateGraph

    def rewrite(state: MessagesState) -> None:
        GenericFakeChatModel(messages=iter([AIMessage("return policy of shoes")])).invoke(state["messages"])

    def generate(state: MessagesState) -> dict[str, Any]:
        model = GenericFakeChatModel(messages=iter([AIMessage(ANSWER)]))
        return {"messages": [model.invoke(state["messages"])]}

    nodes = StateGraph(MessagesState).add_sequence([rewrite, generate])
    graph: Any = nodes.add_edge(START, "rewrite").compile()

    @germane.observe
    def ask(question: str, mode: Any) -> Iterator[Any]:
        yield from graph.stream({"messages": CONVERSATION}, stream_mode=mode)

    @germane.observe
    async def events_of(question: str) -> AsyncIterator[Any]:
        async for event in graph.astream_events({"messages": CONVERSATION}, version="v2"):
            yield event

    async def read() -> None:
        assert [event async for event in events_of(QUESTION)]

    for mode in ("values", "updates", "messages", ["updates", "messages"], ["custom", "values", "messages"]):
        with collect() as exchanges:
            assert list(ask(QUESTION, mode))
        assert_captured(exchanges)
    with collect() as exchanges:
        asyncio.run(read())
    assert_captured(exchanges)


def test_langgraph_interrupt() -> None:
    """An interrupt that waits for a person is not an error."""
    pytest.importorskip("langgraph")
    from langgraph.checkpoint.memory import InMemorySaver
    from langgraph.graph import START, MessagesState, StateGraph
    from langgraph.types import interrupt

    @germane.observe
    def approve(state: MessagesState) -> dict[str, Any]:
        return {"messages": [interrupt("Is this right?")]}

    graph = StateGraph(MessagesState).add_node("approve", approve).add_edge(START, "approve")
    with collect() as exchanges:
        graph.compile(checkpointer=InMemorySaver()).invoke(
            {"messages": CONVERSATION},  # type: ignore[arg-type]  # a dict is enough
            {"configurable": {"thread_id": "1"}},
        )

    (exchange,) = exchanges
    assert (exchange.status, exchange.error) == ("cancelled", None)


def test_celery_task_with_retry() -> None:
    """A retry is not an error, and the run that answers is captured."""
    celery = pytest.importorskip("celery")
    app = celery.Celery("shop", broker="memory://", backend="cache+memory://")
    app.conf.task_always_eager = True

    @app.task(bind=True, max_retries=3)
    @germane.observe
    def answer(self: Any, question: str) -> str:
        if self.request.retries == 0:
            raise self.retry(countdown=0)
        return ANSWER

    with collect() as exchanges:
        assert answer.delay(QUESTION).get() == ANSWER

    by_status = {exchange.status: exchange for exchange in exchanges}
    assert sorted(by_status) == ["cancelled", "ok"]
    assert by_status["cancelled"].error is None
    assert_captured([by_status["ok"]])


@pytest.mark.parametrize("kind", ["text", "dict", "blocks"])
def test_mcp_tool(kind: str) -> None:
    """The question is the query; the answer is the text, the named part or the content blocks of the result."""
    fastmcp = pytest.importorskip("fastmcp")
    from mcp.types import TextContent

    server = fastmcp.FastMCP("shop")
    results = {
        "text": ANSWER,
        "dict": {"answer": ANSWER, "score": 1},
        "blocks": [TextContent(type="text", text=ANSWER)],
    }

    @server.tool
    @germane.observe
    async def ask(query: str, limit: int = 5) -> Any:
        return results[kind]

    async def call() -> Any:
        async with fastmcp.Client(server) as client:
            return await client.call_tool("ask", {"query": QUESTION})

    with collect() as exchanges:
        assert ANSWER in asyncio.run(call()).content[0].text

    assert_captured(exchanges)


@pytest.mark.parametrize("kind", ["texts", "records", "objects"])
def test_a_batch_becomes_one_exchange_for_each_question(kind: str) -> None:
    """Each exchange has an id of its own. They share the trace, and have no contexts, because whose is unknown."""
    made = {
        "texts": lambda text: text,
        "records": lambda text: {"question": text},
        "objects": lambda text: Ask(question=text),
    }
    asked = [QUESTION, "Can I return socks?", "Can I return hats?"]
    ids = []

    @germane.retrieval
    def search(questions: list[Any]) -> list[str]:
        return ["Shoes can be returned."]

    @germane.observe
    def answer_all(questions: list[Any], model: str = "m") -> list[Any]:
        ids.append(germane.current_exchange().id)  # type: ignore[union-attr]  # it is inside a handler
        search(questions)
        return [text if kind == "texts" else {"answer": text} for text in (ANSWER, "No.", "Never.")]

    with collect() as exchanges:
        answer_all(list(map(made[kind], asked)), model="m")

    assert {exchange.question: exchange.answer for exchange in exchanges} == dict(
        zip(asked, [ANSWER, "No.", "Never."], strict=True)
    )
    assert len({exchange.id for exchange in exchanges} | {*ids}) == 3
    assert len({(exchange.trace_id, exchange.span_id) for exchange in exchanges}) == 1
    assert [exchange.contexts for exchange in exchanges] == [()] * 3


@pytest.mark.parametrize("results", [[ANSWER], ANSWER, None, {"answers": [ANSWER, ANSWER]}])
def test_a_batch_without_one_answer_for_each_question_is_reported(
    results: Any, caplog: pytest.LogCaptureFixture
) -> None:
    """The log says once to observe the function that answers one question."""

    @germane.observe(route=f"batch of {results}")
    def answer_all(questions: list[str]) -> Any:
        return results

    with collect() as exchanges:
        answer_all([QUESTION, QUESTION])
        answer_all([QUESTION, QUESTION])

    assert [exchange.question for exchange in exchanges] == [None, None]
    assert (
        sum("'questions' is a batch: observe the function that answers one question" in m for m in caplog.messages) == 1
    )


@pytest.mark.parametrize("name", ["texts", "items"])
@pytest.mark.parametrize("ids", [["a1", "b2"], ["shoes", "hats"], [QUESTION, "id-7"], [QUESTION, 3], []])
def test_a_list_of_other_values_is_not_a_batch(name: str, ids: list[Any]) -> None:
    """Documents that are looked up by their ids or keywords are not answers."""
    namespace: dict[str, Any] = {}
    exec(f"def look_up({name}): return ['A text about shoes.'] * len({name})", namespace)
    with collect() as exchanges:
        germane.observe(namespace["look_up"])(ids)

    assert [exchange.question for exchange in exchanges] == [None]


def respond(message: str, history: list[Any]) -> Iterator[str]:
    """Yield the whole text so far, as Gradio requires."""
    text = ""
    for word in WORDS:
        text += word
        yield text


def respond_with_messages(message: str, history: list[Any]) -> Iterator[Any]:
    """Yield the whole conversation so far."""
    for text in respond(message, history):
        yield [*history, {"role": "user", "content": message}, {"role": "assistant", "content": text}]


def respond_with_pairs(message: str, history: list[Any]) -> Iterator[Any]:
    """Yield the conversation so far in pairs of question and answer."""
    for text in respond(message, history):
        yield [["Hello!", "How can I help?"], [message, text]]


def respond_with_pairs_and_clear(message: str, history: list[Any]) -> Iterator[Any]:
    """Yield the new value of the text box and the conversation so far."""
    for text in respond(message, history):
        yield "", [(message, text)]


def respond_and_clear(message: str, history: list[Any]) -> Iterator[Any]:
    """Yield the new value of the text box and the conversation so far."""
    for messages in respond_with_messages(message, history):
        yield "", messages


def test_gradio_chat_interface() -> None:
    """The answer is the last of the texts that a handler yields, each of which begins with the one before."""
    gradio = pytest.importorskip("gradio")
    from gradio_client import Client

    interface = gradio.ChatInterface(germane.observe(respond), api_name="chat")
    with collect() as exchanges:
        _, url, _ = interface.launch(prevent_thread_lock=True, quiet=True)
        try:
            assert Client(url, verbose=False).predict(QUESTION, api_name="/chat") == ANSWER
        finally:
            interface.close()

    assert_captured(exchanges)


@pytest.mark.parametrize(
    "handler",
    [respond, respond_with_messages, respond_and_clear, respond_with_pairs, respond_with_pairs_and_clear],
)
def test_gradio_handlers_that_yield_everything_so_far(handler: Any) -> None:
    """A handler of Gradio yields a text, a conversation, or several components."""
    with collect() as exchanges:
        list(germane.observe(handler)(QUESTION, []))

    assert_captured(exchanges)


def test_gradio_handler_with_files_that_returns_the_conversation() -> None:
    """The question is the text next to the files. Pairs of other texts are not a conversation."""

    @germane.observe
    def answer(message: dict[str, Any], history: list[Any]) -> Any:
        return [*history, [message["text"], ANSWER]]

    with collect() as exchanges:
        answer({"text": QUESTION, "files": []}, [["Hello!", "Hi."]])
        germane.observe(lambda message: [["Returns", "Shoes can be returned."]])(QUESTION)

    assert_captured(exchanges[:1])
    assert [exchange.answer for exchange in exchanges[1:]] == [None]


def test_gradio_messages_as_objects() -> None:
    """Gradio's own message objects are read like dicts."""
    gradio = pytest.importorskip("gradio")

    @germane.observe
    def answer(message: str, history: list[Any]) -> Iterator[Any]:
        for text in respond(message, history):
            yield [gradio.ChatMessage(role="assistant", content=text)]

    with collect() as exchanges:
        list(answer(QUESTION, []))

    assert_captured(exchanges)


def streamlit_app() -> None:
    import streamlit
    from tests.tracer.test_bare_handlers import WORDS

    import germane

    @germane.observe
    def answer(prompt: str):  # type: ignore[no-untyped-def]  # Streamlit runs the text of this function
        if prompt == "stop":
            streamlit.stop()
        yield from WORDS

    if prompt := streamlit.chat_input():
        streamlit.write_stream(answer(prompt))


def test_streamlit_app() -> None:
    """The answer is all chunks of the stream. A script that stops itself is not an error."""
    pytest.importorskip("streamlit")
    from streamlit.testing.v1 import AppTest

    with collect() as exchanges:
        app = AppTest.from_function(streamlit_app).run(timeout=60)
        app.chat_input[0].set_value(QUESTION).run(timeout=60)
        app.chat_input[0].set_value("stop").run(timeout=60)

    assert_captured(exchanges[:1])
    assert [(exchange.status, exchange.error) for exchange in exchanges[1:]] == [("cancelled", None)]
