"""A decorated Pydantic AI agent, without another instrumentation.

Run: PYTHONPATH=examples/frameworks python examples/frameworks/pydantic-ai/observed.py
"""

from __future__ import annotations

import asyncio

from departures import search
from pydantic_ai import Agent

import germane

germane.start(service="pydantic-ai-example")
agent = Agent("openai-chat:gpt-5-mini", name="departures", instructions="Answer from the timetable.")


@agent.tool_plain
@germane.retrieval
def search_departures(query: str) -> list[str]:
    """Search the timetable."""
    return search(query)


@germane.observe
async def ask(question: str) -> str:
    """Answer a question from the timetable."""
    result = await agent.run(question)
    return result.output


if __name__ == "__main__":
    print(asyncio.run(ask("From which platform do trains to Lyon leave?")))
