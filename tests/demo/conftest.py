"""The corpus, and the application with a real embedder."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from germane.demo.application import Documentation
from germane.demo.corpus import DemoCorpus, Embed, PassageIndex, load_corpus
from germane.errors import ModelError


@pytest.fixture(scope="session")
def corpus() -> DemoCorpus:
    """The corpus in the package."""
    return load_corpus()


@pytest.fixture(scope="session")
def embed() -> Iterator[Embed]:
    """The real embedder; skips the test if it is not installed."""
    from germane.scorers.local.minilm import MiniLM

    try:
        embedder = MiniLM()
    except ModelError as error:
        pytest.skip(str(error))
    yield embedder.embed
    asyncio.run(embedder.aclose())


@pytest.fixture(scope="session")
def built(corpus: DemoCorpus, embed: Embed) -> Documentation:
    """The application with its initial indexes. Tests must not change it."""
    return asyncio.run(Documentation.open(corpus, embed))


@pytest.fixture
def application(built: Documentation, embed: Embed) -> Documentation:
    """A separate application with healthy indexes."""
    return Documentation(
        {route: PassageIndex(index.passages, index.vectors) for route, index in built.indexes.items()}, embed
    )
