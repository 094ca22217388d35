"""A decorated agent of the OpenAI Agents SDK, without another instrumentation.

Run: PYTHONPATH=examples/frameworks python examples/frameworks/openai-agents/observed.py
"""

from __future__ import annotations

import asyncio

from agents import Agent, Runner, function_tool, set_tracing_disabled
from departures import search

import germane

germane.start(service="openai-agents-example")
set_tracing_disabled(True)  # otherwise, the SDK sends its traces to OpenAI


@function_tool
@germane.retrieval
def search_departures(query: str) -> list[str]:
    """Search the timetable."""
    return search(query)


agent = Agent("Departures", instructions="Answer from the timetable.", model="gpt-5-mini", tools=[search_departures])


@germane.observe
async def ask(question: str) -> str:
    """Answer a question from the timetable."""
    result = await Runner.run(agent, question)
    return str(result.final_output)


if __name__ == "__main__":
    print(asyncio.run(ask("From which platform do trains to Lyon leave?")))
