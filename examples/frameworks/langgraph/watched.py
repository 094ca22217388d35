"""A LangGraph agent with a search tool, which OpenInference traces and germane watches.

Run: PYTHONPATH=examples/frameworks python examples/frameworks/langgraph/watched.py
"""

from __future__ import annotations

from departures import search
from langchain.agents import create_agent
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI
from openinference.instrumentation.langchain import LangChainInstrumentor
from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor

import germane

provider = TracerProvider()
provider.add_span_processor(germane.ScoreSpanProcessor(BatchSpanProcessor(OTLPSpanExporter())))
trace.set_tracer_provider(provider)
LangChainInstrumentor().instrument()
germane.start(service="langgraph-example")
germane.watch()


@tool
def search_departures(query: str) -> list[str]:
    """Search the timetable. Results of tools whose names contain "search" become the contexts."""
    return search(query)


agent = create_agent(ChatOpenAI(model="gpt-5-mini"), [search_departures], system_prompt="Answer from the timetable.")


def ask(question: str) -> str:
    """Answer a question from the timetable."""
    result = agent.invoke({"messages": [{"role": "user", "content": question}]})
    return result["messages"][-1].text


if __name__ == "__main__":
    print(ask("From which platform do trains to Lyon leave?"))
