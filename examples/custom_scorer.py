"""Scorers of your own: two functions, named in the settings. Run: python examples/custom_scorer.py

It needs no judge. A worker process finds them by the setting imports = ["custom_scorer"].
"""

from __future__ import annotations

import germane

CLOSING = ("let me know", "hope this helps", "anything else")


@germane.scorer(requires={"answer"})
def brevity(exchange: germane.Exchange) -> float:
    """Return 1 for an answer of up to 20 words, and less the longer it is."""
    return min(1.0, 20 / len((exchange.answer or "").split()))


@germane.scorer(name="no_small_talk", requires={"answer"}, version="2")
async def without_small_talk(exchange: germane.Exchange) -> germane.Score:
    """Return 0 for an answer with a phrase that says nothing, and say which."""
    found = [phrase for phrase in CLOSING if phrase in (exchange.answer or "").lower()]
    said = f"It says {found[0]!r}." if found else None
    return germane.Score(value=0.0 if found else 1.0, explanation=said)


@germane.observe
def ask(question: str) -> str:
    """Answer at length."""
    return f"Shoes can be returned within thirty days. {question} I hope this helps!"


def main() -> None:
    """Ask two questions, and show what the scorers make of the answers."""
    germane.start(service="custom-example", scorers=["brevity", "no_small_talk"], tick=0.2)
    ask("Can I return these shoes?")
    ask("Can I return these shoes if I have worn them once on a rainy day and no longer have the box?")
    germane.stop(drain=60)  # a server would not wait: it scores while it runs

    store = germane.Store()
    for name in ("brevity", "no_small_talk"):
        for scored in store.worst(scorer=name):
            print(f"{name} {scored.score.value:.2f} {scored.score.explanation or ''}".strip())
    store.close()


if __name__ == "__main__":
    main()
