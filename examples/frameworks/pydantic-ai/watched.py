"""A Pydantic AI agent that traces itself and that germane watches.

Run: PYTHONPATH=examples/frameworks python examples/frameworks/pydantic-ai/watched.py
"""

from __future__ import annotations

import asyncio

from departures import search
from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from pydantic_ai import Agent

import germane

provider = TracerProvider()
provider.add_span_processor(germane.ScoreSpanProcessor(BatchSpanProcessor(OTLPSpanExporter())))
trace.set_tracer_provider(provider)
Agent.instrument_all()
germane.start(service="pydantic-ai-example")
germane.watch()
agent = Agent("openai-chat:gpt-5-mini", name="departures", instructions="Answer from the timetable.")


@agent.tool_plain
def search_departures(query: str) -> list[str]:
    """Search the timetable. Results of tools whose names contain "search" become the contexts."""
    return search(query)


async def ask(question: str) -> str:
    """Answer a question from the timetable."""
    result = await agent.run(question)
    return result.output


if __name__ == "__main__":
    print(asyncio.run(ask("From which platform do trains to Lyon leave?")))
