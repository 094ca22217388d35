"""An agent of the OpenAI Agents SDK, which OpenInference traces and germane watches.

Run: PYTHONPATH=examples/frameworks python examples/frameworks/openai-agents/watched.py
"""

from __future__ import annotations

import asyncio

from agents import Agent, Runner, function_tool
from departures import search
from openinference.instrumentation.openai_agents import OpenAIAgentsInstrumentor
from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor

import germane

provider = TracerProvider()
provider.add_span_processor(germane.ScoreSpanProcessor(BatchSpanProcessor(OTLPSpanExporter())))
trace.set_tracer_provider(provider)
OpenAIAgentsInstrumentor().instrument()
germane.start(service="openai-agents-example")
germane.watch()


@function_tool
def search_departures(query: str) -> list[str]:
    """Search the timetable. Results of tools whose names contain "search" become the contexts."""
    return search(query)


agent = Agent("Departures", instructions="Answer from the timetable.", model="gpt-5-mini", tools=[search_departures])


async def ask(question: str) -> str:
    """Answer a question from the timetable."""
    result = await Runner.run(agent, question)
    return str(result.final_output)


if __name__ == "__main__":
    print(asyncio.run(ask("From which platform do trains to Lyon leave?")))
