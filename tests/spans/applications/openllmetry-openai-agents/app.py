"""An agent of the OpenAI Agents SDK that OpenLLMetry traces."""

from __future__ import annotations

from agents import Agent, Runner, function_tool
from departures import search
from opentelemetry.instrumentation.openai_agents import OpenAIAgentsInstrumentor
from tracing import export_traces

export_traces()
OpenAIAgentsInstrumentor().instrument()


@function_tool
def search_departures(query: str) -> list[str]:
    """Search the timetable."""
    return search(query)


agent = Agent("Departures", instructions="Answer from the timetable.", model="gpt-5-mini", tools=[search_departures])


async def ask(question: str) -> str:
    """Answer a question from the timetable."""
    result = await Runner.run(agent, question)
    return str(result.final_output)
