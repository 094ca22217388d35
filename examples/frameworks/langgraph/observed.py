"""A decorated LangGraph agent with a search tool, without another instrumentation.

Run: PYTHONPATH=examples/frameworks python examples/frameworks/langgraph/observed.py
"""

from __future__ import annotations

import asyncio

from departures import search
from langchain.agents import create_agent
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI

import germane

germane.start(service="langgraph-example")


@tool
@germane.retrieval
def search_departures(query: str) -> list[str]:
    """Search the timetable."""
    return search(query)


agent = create_agent(ChatOpenAI(model="gpt-5-mini"), [search_departures], system_prompt="Answer from the timetable.")


@germane.observe
async def ask(question: str) -> str:
    """Answer a question from the timetable."""
    result = await agent.ainvoke({"messages": [{"role": "user", "content": question}]})
    return result["messages"][-1].text


if __name__ == "__main__":
    print(asyncio.run(ask("From which platform do trains to Lyon leave?")))
