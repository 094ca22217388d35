"""A LangGraph agent that OpenLLMetry traces."""

from __future__ import annotations

from departures import search
from langchain.agents import create_agent
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI
from opentelemetry.instrumentation.langchain import LangchainInstrumentor
from tracing import export_traces

export_traces()
LangchainInstrumentor().instrument()


@tool
def search_departures(query: str) -> list[str]:
    """Search the timetable."""
    return search(query)


agent = create_agent(ChatOpenAI(model="gpt-5-mini"), [search_departures], system_prompt="Answer from the timetable.")


def ask(question: str) -> str:
    """Answer a question from the timetable."""
    result = agent.invoke({"messages": [{"role": "user", "content": question}]})
    return result["messages"][-1].text
