"""A FastAPI application with a Pydantic AI agent. Both are traced, and germane watches them.

Run: PYTHONPATH=examples/frameworks python examples/frameworks/fastapi/watched.py, then POST a question to /ask.
"""

from __future__ import annotations

from departures import search
from fastapi import FastAPI
from fastapi.responses import PlainTextResponse
from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.instrumentation.fastapi import FastAPIInstrumentor
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from pydantic import BaseModel
from pydantic_ai import Agent

import germane

provider = TracerProvider()
provider.add_span_processor(germane.ScoreSpanProcessor(BatchSpanProcessor(OTLPSpanExporter())))
trace.set_tracer_provider(provider)
Agent.instrument_all()
germane.start(service="fastapi-example")
germane.watch()
app = FastAPI()
FastAPIInstrumentor.instrument_app(app)
agent = Agent("openai-chat:gpt-5-mini", name="departures", instructions="Answer from the timetable.")


class Body(BaseModel):
    """The request body."""

    question: str


@agent.tool_plain
def search_departures(query: str) -> list[str]:
    """Search the timetable. Results of tools whose names contain "search" become the contexts."""
    return search(query)


@app.post("/ask")
async def ask(body: Body) -> PlainTextResponse:
    """Answer a question from the timetable."""
    result = await agent.run(body.question)
    return PlainTextResponse(result.output)


if __name__ == "__main__":
    import uvicorn

    uvicorn.run(app, host="127.0.0.1", port=8000)
