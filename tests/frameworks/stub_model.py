"""A model server with an OpenAI-compatible API, which answers from the documents in its prompt."""

from __future__ import annotations

import asyncio
import json
import re
import sys
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

sys.path.insert(0, str(Path(__file__).parents[2] / "examples" / "frameworks"))
from departures import DOCUMENTS, TOWNS

MODEL = "stub-model"
LATENCY = 0.02
"""Seconds before each reply, so that requests overlap."""
QUESTION = "Ticket {number}: from which platform do trains to {town} leave?"
ANSWER = "Ticket {number}: trains to {town} leave from platform {platform}."
_QUESTION = re.compile(r"Ticket (\d+): from which platform do trains to (\w+) leave\?")
_USAGE = {"prompt_tokens": 20, "completion_tokens": 10, "total_tokens": 30}


def questions(number: int) -> dict[str, tuple[str, str]]:
    """Return different questions, each with its answer and the document that contains the answer."""
    asked = {}
    for ticket in range(1001, 1001 + number):  # no platform has such a number
        platform = ticket % len(TOWNS)
        names: dict[str, Any] = {"number": ticket, "town": TOWNS[platform], "platform": platform + 1}
        asked[QUESTION.format(**names)] = ANSWER.format(**names), DOCUMENTS[platform]
    return asked


def answer_from(prompt: str) -> str:
    """Answer the last question in a prompt, if the prompt contains the document."""
    asked = _QUESTION.findall(prompt)
    number, town = asked[-1] if asked else ("", "nowhere")
    known = re.search(rf"Trains to {town} leave from platform (\d+)\.", prompt)
    text = ANSWER.format(number=number, town=town, platform=known[1]) if known else "The timetable does not say."
    if "[[ ## answer ## ]]" in prompt:  # the format that DSPy asks for
        return f"[[ ## answer ## ]]\n{text}\n\n[[ ## completed ## ]]"
    return text


def tool_call(tools: list[dict[str, Any]], prompt: str) -> tuple[str, str]:
    """Return the name of the first tool, and its arguments as JSON: the question for each of its parameters."""
    function = tools[0].get("function", tools[0])
    question = next((match[0] for match in _QUESTION.finditer(prompt)), "")
    parameters = function.get("parameters", {}).get("properties", {})
    return function["name"], json.dumps(dict.fromkeys(parameters, question))


async def complete_chat(request: Request) -> Response:
    """Reply to a chat request: with a tool call if there are tools and no result yet, otherwise with an answer."""
    body = await request.json()
    await asyncio.sleep(LATENCY)
    messages, tools = body["messages"], body.get("tools")
    prompt = json.dumps(messages, ensure_ascii=False).replace("\\n", "\n")
    message: dict[str, Any] = {"role": "assistant", "content": answer_from(prompt)}
    finish_reason = "stop"
    if tools and messages[-1]["role"] != "tool":
        name, arguments = tool_call(tools, prompt)
        call = {"id": "call_1", "type": "function", "function": {"name": name, "arguments": arguments}}
        message, finish_reason = {"role": "assistant", "content": None, "tool_calls": [call]}, "tool_calls"
    head = {"id": "chatcmpl-stub", "created": 1, "model": MODEL}
    if body.get("stream"):
        return StreamingResponse(_chunks(head, message, finish_reason), media_type="text/event-stream")
    choice = {"index": 0, "message": message, "finish_reason": finish_reason, "logprobs": None}
    return JSONResponse({**head, "object": "chat.completion", "choices": [choice], "usage": _USAGE})


async def _chunks(head: dict[str, Any], message: dict[str, Any], finish_reason: str) -> AsyncIterator[str]:
    """Yield a message as server-sent events: a tool call at once, a text word by word."""
    if message["content"] is None:
        calls = [{"index": number, **call} for number, call in enumerate(message["tool_calls"])]
        deltas: list[dict[str, Any]] = [{"role": "assistant", "tool_calls": calls}]
    else:
        words = re.findall(r"\S+\s*", message["content"])
        deltas = [{"role": "assistant", "content": ""}, *({"content": word} for word in words)]
    ends = [None] * len(deltas) + [finish_reason]
    for delta, end in zip([*deltas, {}], ends, strict=True):
        chunk = {**head, "object": "chat.completion.chunk"}
        chunk["choices"] = [{"index": 0, "delta": delta, "finish_reason": end}]
        yield f"data: {json.dumps(chunk)}\n\n"
    yield f"data: {json.dumps({**head, 'object': 'chat.completion.chunk', 'choices': [], 'usage': _USAGE})}\n\n"
    yield "data: [DONE]\n\n"


async def create_response(request: Request) -> Response:
    """Reply to a request of the Responses API."""
    body = await request.json()
    await asyncio.sleep(LATENCY)
    items = body["input"] if isinstance(body["input"], list) else [{"role": "user", "content": body["input"]}]
    prompt = json.dumps([body.get("instructions"), items], ensure_ascii=False).replace("\\n", "\n")
    tools = body.get("tools")
    output: dict[str, Any]
    if tools and items[-1].get("type") != "function_call_output":
        name, arguments = tool_call(tools, prompt)
        output = {"type": "function_call", "id": "fc_1", "call_id": "call_1", "name": name, "arguments": arguments}
    else:
        content = {"type": "output_text", "text": answer_from(prompt), "annotations": []}
        output = {"type": "message", "id": "msg_1", "role": "assistant", "content": [content]}
    details = {"input_tokens_details": {"cached_tokens": 0}, "output_tokens_details": {"reasoning_tokens": 0}}
    return JSONResponse(
        {
            "id": "resp_stub",
            "object": "response",
            "created_at": 1,
            "status": "completed",
            "model": MODEL,
            "output": [{**output, "status": "completed"}],
            "parallel_tool_calls": False,
            "tool_choice": "auto",
            "tools": tools or [],
            "usage": {"input_tokens": 20, "output_tokens": 10, "total_tokens": 30, **details},
        }
    )


@contextmanager
def serve_model() -> Iterator[str]:
    """Serve the model on a free port, and yield its base URL."""
    routes = [
        Route("/v1/chat/completions", complete_chat, methods=["POST"]),
        Route("/v1/responses", create_response, methods=["POST"]),
    ]
    config = uvicorn.Config(Starlette(routes=routes), host="127.0.0.1", port=0, log_level="warning", backlog=512)
    server = uvicorn.Server(config)
    socket = config.bind_socket()
    thread = threading.Thread(target=server.run, args=([socket],), daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{socket.getsockname()[1]}/v1"
    finally:
        server.should_exit = True
        thread.join()
