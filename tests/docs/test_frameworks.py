"""The pages about frameworks show the examples, which ``make frameworks`` runs."""

from __future__ import annotations

import json
import re
from pathlib import Path

from tests.cases import each
from tests.docs.blocks import BLOCKS, DOCS, ROOT, Block

EXAMPLES = ROOT / "examples" / "frameworks"
FILES = sorted(path for suffix in ("py", "ts") for path in EXAMPLES.glob(f"*/*.{suffix}"))
CODE = {path: path.read_text(encoding="utf-8") for path in FILES}
PAGES = sorted((DOCS / "frameworks").glob("*.md"))
SHOWN = [block for block in BLOCKS if block.page in PAGES and block.language in {"python", "typescript"}]


@each("block", SHOWN)
def test_code_on_a_framework_page_is_part_of_an_example_it_links_to(block: Block) -> None:
    """Each paragraph of a block is in an example of the page; the common lines are in all watched examples."""
    page = block.page.read_text(encoding="utf-8")
    linked = [path for path in FILES if str(path.relative_to(ROOT)) in page]
    for paragraph in re.split(r"\n\n+", block.text.strip("\n")):
        examples = linked or [path for path in FILES if path.name == "watched.py"]
        assert any(paragraph in CODE[path] for path in examples), paragraph


def test_every_framework_example_is_linked_from_a_page() -> None:
    """There is no example that the documents do not mention."""
    text = "\n".join(page.read_text(encoding="utf-8") for page in PAGES)

    assert [path.name for path in FILES if f"../{path.relative_to(ROOT)}" not in text] == []


@each("path", FILES)
def test_every_framework_example_has_exact_versions(path: Path) -> None:
    """The versions are those that the example was tested with."""
    if path.suffix == ".ts":
        package = json.loads((path.parent / "package.json").read_text(encoding="utf-8"))
        versions = list(package["dependencies"].values())
        assert [version for version in versions if not re.fullmatch(r"\d+\.\d+\.\d+", version)] == []
    else:
        requirements = (path.parent / "requirements.txt").read_text(encoding="utf-8").split()
        assert [line for line in requirements if not re.fullmatch(r"[\w.-]+(\[\w+\])?==[\w.]+", line)] == []
