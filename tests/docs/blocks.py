"""Fenced code blocks in the documents."""

from __future__ import annotations

import re
import shlex
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
GENERATED = DOCS / "command-line"
"""Pages that exist only after the site was built."""
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted(set(DOCS.rglob("*.md")) - set(GENERATED.glob("*")))]
FENCED = re.compile(r"(?ms)^(?P<indent>[ ]*)```(?P<language>[^\n`]*)\n(?P<text>.*?)^(?P=indent)```[ ]*$")


@dataclass(frozen=True)
class Block:
    """One code block of a page."""

    page: Path
    number: int
    """Number of the block on its page, starting at 1."""
    language: str
    text: str

    @property
    def name(self) -> str:
        """Test id: the page and the number."""
        return f"{self.page.name}-{self.number}"


def _read() -> Iterator[Block]:
    for page in PAGES:
        for number, found in enumerate(FENCED.finditer(page.read_text(encoding="utf-8")), 1):
            yield Block(page, number, found["language"].strip(), textwrap.dedent(found["text"]))


BLOCKS = list(_read())


def of(*languages: str) -> list[Block]:
    """Return the blocks in these languages."""
    return [block for block in BLOCKS if block.language in languages]


def commands(block: Block) -> list[list[str]]:
    """Return a block's commands, each as a list of words. Output in console blocks is omitted."""
    text = block.text.replace("\\\n", " ")
    lines = [line.strip() for line in text.splitlines()]
    if block.language == "console":
        lines = [line.removeprefix("$ ") for line in lines if line.startswith("$ ")]
    return [command for line in lines for command in _split(line)]


def _split(line: str) -> Iterator[list[str]]:
    """Yield the commands of a line, without the variables that are set before them."""
    lexer = shlex.shlex(line, posix=True, punctuation_chars="|&;()")
    lexer.whitespace_split = True
    words: list[str] = []
    for word in [*lexer, ";"]:
        if word and set(word) <= set("|&;()"):
            if words:
                yield words
            words = []
        elif words or not re.match(r"^[A-Z_]+=", word):
            words.append(word)
