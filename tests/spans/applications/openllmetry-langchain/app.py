"""A LangChain chain that OpenLLMetry traces."""

from __future__ import annotations

from departures import PROMPT, search
from langchain_core.documents import Document
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import RunnablePassthrough
from langchain_openai import ChatOpenAI
from opentelemetry.instrumentation.langchain import LangchainInstrumentor
from tracing import export_traces

export_traces()
LangchainInstrumentor().instrument()


class Departures(BaseRetriever):
    """Finds departures."""

    def _get_relevant_documents(self, query: str, **_options: object) -> list[Document]:
        return [Document(page_content=text) for text in search(query)]


def join(documents: list[Document]) -> str:
    """Return the texts of documents, one per line."""
    return "\n".join(document.page_content for document in documents)


prompt = ChatPromptTemplate.from_messages([("system", PROMPT), ("user", "{question}")])
chain = (
    {"context": Departures() | join, "question": RunnablePassthrough()}
    | prompt
    | ChatOpenAI(model="gpt-5-mini")
    | StrOutputParser()
)


def ask(question: str) -> str:
    """Answer a question from the timetable."""
    return chain.invoke(question)
