"""Python code in the documents runs, and links work."""

from __future__ import annotations

import importlib.util
import os
import re
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from types import ModuleType

import pytest
from opentelemetry import trace
from tests.cases import each
from tests.docs.blocks import DOCS, PAGES, of

import germane
from germane.storage import TrackingStore
from germane.testing import FakeJudge

BLOCKS = [
    pytest.param(block.text, id=block.name)
    for block in of("python")
    if block.page.parent != DOCS / "frameworks"  # parts of examples: test_frameworks.py
    and block.page.name != "job-queues.md"  # test_job_queues.py
]


@pytest.fixture
def judged(bare: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeJudge]:
    """A judge in the environment, and a directory with an empty database. germane is stopped afterwards."""
    with closing(TrackingStore("sqlite:///germane.db")) as store:
        store.migrate()
    with FakeJudge() as judge:
        for name, value in judge.settings().items():
            monkeypatch.setenv(f"GERMANE_{name.upper()}", value)
        yield judge
        germane.stop()


def module(code: str, path: Path) -> ModuleType:
    """Run code as a module, so that annotations and signatures can be resolved."""
    path.write_text(code, encoding="utf-8")
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    made = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = made
    try:
        spec.loader.exec_module(made)
    finally:
        del sys.modules[path.stem]
    return made


def test_the_search_finds_code_blocks_in_the_documents() -> None:
    """The search finds the pages and their code."""
    assert any("README" in str(block.id) for block in BLOCKS)


@pytest.mark.slow
@pytest.mark.parametrize("code", BLOCKS)
@pytest.mark.usefixtures("judged")
def test_each_code_block_in_a_document_runs(code: str, bare: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each block runs on its own."""
    # An application sets its provider once, but this process runs many applications.
    monkeypatch.setattr(trace, "set_tracer_provider", lambda provider: provider.shutdown())

    module(code, bare / "from_a_document.py")


@each("page", PAGES)
def test_links_between_documents_lead_to_existing_files(page: Path) -> None:
    """Every linked file exists."""
    links = re.findall(r"\]\((?!https?://|#|mailto:)([^)#\s]+)", page.read_text(encoding="utf-8"))

    assert [link for link in links if not os.path.exists(page.parent / link)] == []  # noqa: PTH110 - a joined path
