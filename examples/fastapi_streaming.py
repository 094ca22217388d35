"""A FastAPI application with a streamed answer and the application's own OpenTelemetry setup.

Run: python examples/fastapi_streaming.py, then
curl -N http://127.0.0.1:8000/ask -H 'content-type: application/json' -d '{"question": "Can I return these shoes?"}'
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager

from fastapi import FastAPI
from fastapi.responses import StreamingResponse
from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from pydantic import BaseModel

import germane

provider = TracerProvider()
# Wrap the exporting processor, so that each score is added to the span of its answer.
provider.add_span_processor(germane.ScoreSpanProcessor(BatchSpanProcessor(OTLPSpanExporter())))
trace.set_tracer_provider(provider)


def lifespan(app: FastAPI) -> AbstractAsyncContextManager[None]:
    """Start and stop germane with the application."""
    return germane.lifespan(app, service="fastapi-example")


app = FastAPI(lifespan=lifespan)


class Body(BaseModel):
    """The request body."""

    question: str
    session: str = "anonymous"


@germane.retrieval(content="text")
async def search(query: str) -> list[dict[str, str]]:
    """Return the same document for every query."""
    return [{"id": "returns", "text": f"Shoes can be returned within thirty days of delivery. ({len(query)})"}]


async def generate(question: str) -> AsyncIterator[str]:
    """Yield the answer word by word, as server-sent events."""
    documents = await search(question)
    for word in documents[0]["text"].split():
        yield f"data: {word} \n\n"


@app.post("/ask")
@germane.observe(question="body.question", attributes={"session": "body.session"})
async def ask(body: Body) -> StreamingResponse:
    """Stream the answer. The germane decorator is below the framework's, directly above the function."""
    return StreamingResponse(generate(body.question), media_type="text/event-stream")


if __name__ == "__main__":
    import uvicorn

    uvicorn.run(app, host="127.0.0.1", port=8000)
