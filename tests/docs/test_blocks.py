"""What the documents show beside Python is what there is: commands, settings, SQL, rules."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections import Counter
from pathlib import Path

import click
import pytest
from sqlalchemy import create_engine, text
from tests.dashboard.seeding import NOW, seed
from tests.docs.blocks import BLOCKS, ROOT, Block, commands, of

from germane.cli.app import group
from germane.settings import load_settings
from germane.storage import TrackingStore
from germane.storage.db.engine import Database

RUN = {"python", "console", "bash", "toml", "sql", "yaml", "promql"}
"""Languages of blocks that are run, or taken by what they are for."""
SHOWN = {
    "{eval-rst}": "Sphinx builds it: test_site.py",
    "{include}": "Sphinx builds it: test_site.py",
}
"""Languages of blocks that another test looks at."""
NOT_RUN = {
    ("alerts.md", "text"): (1, "a diagram of states"),
    ("command-line.md", "text"): (None, "written by docs/commands.py: test_commands_page.py"),
    ("compare.md", "text"): (1, "what a report looks like"),
    ("dashboard.md", "nginx"): (1, "settings of a proxy that is not installed here"),
}
"""By page and language, how many blocks are not run, and why."""
ELSEWHERE = {
    "pip": "installs from the network",
    "git": "asks a server",
    "cd": "changes nothing",
    "gunicorn": "not installed here",
    "uvicorn": "runs until it is stopped",
    "deploy": "stands for the reader's own",
    "rollback": "stands for the reader's own",
    "sleep": "waits",
    "echo": "says something",
    "case": "the shell's",
    "esac": "the shell's",
}
"""First words of commands that are not germane's, and why nothing is looked at."""
SHELL = of("console", "bash")
GERMANE = [(block, words) for block in SHELL for words in commands(block) if words[0] == "germane"]


def name(value: object) -> str:
    """Return what a test of a block is called."""
    return value.name if isinstance(value, Block) else " ".join(value) if isinstance(value, list) else str(value)


def test_every_block_is_run_or_counted_with_a_reason() -> None:
    """Nothing is shown that nobody tries, but what is listed here."""
    kinds = Counter((block.page.name, block.language.split(" ")[0]) for block in BLOCKS)
    others = {kind: count for kind, count in kinds.items() if kind[1] not in RUN | SHOWN.keys()}

    assert others.keys() == NOT_RUN.keys()
    assert {kind: count for kind, count in others.items() if NOT_RUN[kind][0] not in {count, None}} == {}


@pytest.mark.parametrize(("block", "words"), GERMANE, ids=name)
def test_germane_has_the_commands_that_are_shown(block: Block, words: list[str], bare: Path) -> None:
    """Each verb, option and argument is one: the command line reads it without a complaint."""
    files = {word for word in words if re.fullmatch(r"\w+\.(jsonl|json|csv|parquet|toml)", word)}
    for file in files:
        (bare / file).touch()
    command: click.Command = group
    context, rest = click.Context(group, info_name="germane"), words[1:]
    while isinstance(command, click.Group) and rest and (found := command.get_command(context, rest[0])):
        context, command = click.Context(found, info_name=rest[0], parent=context), found
        rest = rest[1:]

    command.make_context(context.info_name, rest, parent=context.parent).close()


def test_commands_of_others_are_known() -> None:
    """What is not germane's is a target of the Makefile, a file that is there, or listed with a reason."""
    targets = set(re.findall(r"(?m)^([a-z]+):", (ROOT / "Makefile").read_text(encoding="utf-8")))
    strange = []
    for block in SHELL:
        for words in commands(block):
            known = words[0] in {"germane", *ELSEWHERE} or re.fullmatch(r"[\d*]+", words[0])
            known = known or (words[0] == "make" and words[1] in targets)
            known = known or (words[0] == "python" and (words[1] == "app.py" or (ROOT / words[1]).is_file()))
            strange += [] if known else [(block.name, words)]

    assert strange == []


@pytest.mark.parametrize("block", of("toml"), ids=name)
def test_the_settings_that_are_shown_are_taken(block: Block, bare: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Who pastes a block gets no error, once the secrets that it names are there."""
    shown = block.text
    for variable in re.findall(r'"env:(\w+)"', shown):
        monkeypatch.setenv(variable, "https://hooks.example.com/0123456789abcdef")
    for place in re.findall(r'"file:(/[^"]+)"', shown):
        secret = bare / Path(place).name
        secret.write_text("0123456789abcdef0123456789abcdef")
        shown = shown.replace(place, str(secret))
    file = "pyproject.toml" if shown.startswith(("[project", "[tool.")) else "germane.toml"
    (bare / file).write_text(shown, encoding="utf-8")

    load_settings()


@pytest.fixture(scope="module")
def week(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A database with a week in it."""
    url = f"sqlite:///{tmp_path_factory.mktemp('week') / 'germane.db'}"
    store = TrackingStore(url, clock=lambda: NOW)
    store.migrate()
    seed(store, NOW)
    store.close()
    return url


@pytest.mark.parametrize("block", of("sql"), ids=name)
def test_the_sql_that_is_shown_finds_something(block: Block, week: str) -> None:
    """It runs on the database as it is, and finds rows."""
    engine = create_engine(week)
    with engine.connect() as connection:
        rows = connection.execute(text(block.text)).all()
    engine.dispose()

    assert len(rows) >= 3
    assert all(0 <= float(row[-1]) <= 1 for row in rows)


@pytest.mark.parametrize("block", of("sql"), ids=name)
def test_the_sql_that_is_shown_is_that_of_postgresql_too(block: Block, migrated_url: str) -> None:
    """Both databases read it."""
    database = Database(migrated_url)
    with database.engine.connect() as connection:
        connection.execute(text(block.text)).all()
    database.close()


@pytest.fixture
def promtool() -> str:
    """Prometheus' own judge of what it is given."""
    return shutil.which("promtool") or pytest.skip(
        "promtool is not installed: what Prometheus is given is not looked at"
    )


@pytest.mark.parametrize("block", of("yaml"), ids=name)
def test_prometheus_takes_the_configuration_that_is_shown(block: Block, promtool: str, bare: Path) -> None:
    """Who pastes it can start Prometheus."""
    (bare / "prometheus.yaml").write_text(block.text, encoding="utf-8")
    command = [promtool, "check", "config", "--syntax-only", "prometheus.yaml"]

    assert subprocess.run(command, capture_output=True, text=True, timeout=60).stderr == ""


@pytest.mark.parametrize("block", of("promql"), ids=name)
def test_prometheus_reads_the_expressions_that_are_shown(block: Block, promtool: str, bare: Path) -> None:
    """Each line is an expression."""
    rules = "".join(f"  - record: shown_{at}\n    expr: {line}\n" for at, line in enumerate(block.text.splitlines()))
    (bare / "rules.yaml").write_text("groups:\n- name: shown\n  rules:\n" + rules, encoding="utf-8")
    done = subprocess.run([promtool, "check", "rules", "rules.yaml"], capture_output=True, text=True, timeout=60)

    assert done.returncode == 0, done.stderr
