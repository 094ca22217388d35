"""The pages for contributors match the code."""

from __future__ import annotations

import re
import runpy
from pathlib import Path

from tests.cases import each
from tests.docs.blocks import DOCS, ROOT

from germane.alerting.facts import KINDS
from germane.alerting.rules import EVALUATIONS
from germane.settings import RULE_TYPES, load_settings

FOLDER = DOCS / "contributing"
PAGE = (FOLDER / "architecture.md").read_text(encoding="utf-8")
SOURCES = ROOT / "src" / "germane"


def test_the_architecture_picture_matches_the_imports() -> None:
    """architecture.svg is identical to the output of architecture.py."""
    picture = runpy.run_path(str(FOLDER / "architecture.py"))["picture"]

    assert (FOLDER / "architecture.svg").read_text(encoding="utf-8") == picture()


def test_every_module_on_the_architecture_page_exists() -> None:
    """Module and directory paths are relative to src/germane."""
    paths = re.findall(r"`([a-z_/]+(?:\.py|/))`", PAGE)

    assert len(paths) > 25
    assert [path for path in paths if not (SOURCES / path).exists()] == []


def test_the_architecture_page_describes_every_package() -> None:
    """The table has one row per package."""
    packages = {path.parent.name for path in SOURCES.glob("*/__init__.py")}

    assert packages - set(re.findall(r"(?m)^\| `(\w+)` \|", PAGE)) == set()


def test_the_code_layout_names_every_package_and_module() -> None:
    """Each is in the table of layers in CONTRIBUTING.md, apart from those that the text below it names."""
    table = re.findall(r"(?m)^\| (`.+?) \|", (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8"))
    named = set(re.findall(r"`([a-z_]+(?:\.py|/))`", " ".join(table)))
    packages = {f"{path.parent.name}/" for path in SOURCES.glob("*/__init__.py")}
    modules = {path.name for path in SOURCES.glob("*.py")}

    assert named == (packages | modules) - {"testing/", "__init__.py", "__main__.py"}


def test_glossary_terms_are_sorted() -> None:
    """Each term is defined once, in alphabetical order."""
    terms = re.findall(r"(?m)^- \*\*(.+?)\*\*: ", (FOLDER / "glossary.md").read_text(encoding="utf-8"))

    assert len(terms) > 40
    assert terms == sorted(set(terms), key=str.lower)


@each("rule_type", RULE_TYPES)
def test_every_rule_type_has_settings_an_evaluation_and_a_message(rule_type: str, bare: Path) -> None:
    """The settings accept each rule type, and each has an evaluation and a message."""
    required = {name: 0.5 for name, field in RULE_TYPES[rule_type].model_fields.items() if field.is_required()}

    assert [rule.type for rule in load_settings(rules=[{"type": rule_type, **required}]).rules] == [rule_type]
    assert rule_type in {"drop", *EVALUATIONS}
    assert rule_type in KINDS


def test_recipes_name_files_that_exist() -> None:
    """This covers the paths of sources, tests and scripts."""
    text = (FOLDER / "recipes.md").read_text(encoding="utf-8")
    paths = re.findall(r"(?:`|python |\")((?:src|tests|docs)/[\w/.-]+)", text)

    assert len(paths) > 30
    assert [path for path in paths if not (ROOT / path).exists()] == []
