"""FastAPI, an answer that is streamed, and an application that has its own OpenTelemetry set-up.

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
# The processor that exports is wrapped, so that scores still land on the spans they belong to.
provider.add_span_processor(germane.hold(BatchSpanProcessor(OTLPSpanExporter())))
trace.set_tracer_provider(provider)


def lifespan(app: FastAPI) -> AbstractAsyncContextManager[None]:
    """Run germane for as long as the application lives."""
    return germane.lifespan(app, service="fastapi-example")


app = FastAPI(lifespan=lifespan)


class Body(BaseModel):
    """What is asked."""

    question: str
    session: str = "anonymous"


@germane.retrieval(content="text")
async def search(query: str) -> list[dict[str, str]]:
    """Find what answers the question; here it is always the same."""
    return [{"id": "returns", "text": f"Shoes can be returned within thirty days of delivery. ({len(query)})"}]


async def generate(question: str) -> AsyncIterator[str]:
    """Write the answer word by word, as server-sent events."""
    documents = await search(question)
    for word in documents[0]["text"].split():
        yield f"data: {word} \n\n"


@app.post("/ask")
@germane.observe(question="body.question", attributes={"session": "body.session"})
async def ask(body: Body) -> StreamingResponse:
    """Answer; the decorator stands below the framework's, directly above the function."""
    return StreamingResponse(generate(body.question), media_type="text/event-stream")


if __name__ == "__main__":
    import uvicorn

    uvicorn.run(app, host="127.0.0.1", port=8000)
