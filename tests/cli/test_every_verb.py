"""Conventions that all commands follow: help, JSON, streams and misspelled names."""

from __future__ import annotations

import os
import re
import shlex
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click
import pytest
from tests.cases import each
from tests.dashboard.seeding import seed
from tests.schemas import schema_of

from germane.cli.app import SECTIONS, SUMMARIES, group
from germane.cli.core.store import MAY_BE_NEW
from germane.storage import TrackingStore

Call = Callable[..., Any]
READ_COMMANDS: Mapping[str, Sequence[str]] = {
    "report": ("--since", "7d", "--compare"),
    "trend": (),
    "worst": ("-n", "3"),
    "alerts": ("--all",),
    "alerts show": ("{alert}",),
    "alerts --undelivered": (),
    "alerts backtest": ("--rule", "mean_threshold", "--set", "threshold=0.9", "--since", "2d"),
    "alerts sensitivity": ("--runs", "10"),
    "baseline show": (),
    "labels status": (),
    "sinks status": (),
    "calibrate": (),
    "score": ("--estimate",),
    "doctor": ("--offline",),
    "config": (),
    "db check": (),
}
"""Commands that read data, some with the action or option that selects what they print, with their other arguments."""
WITHOUT_JSON = {"completion", "export", "grafana", "import", "init", "receive", "serve", "worker"}
"""Commands that write files, or run until they are stopped."""
CHANGING = {
    "alerts respond", "alerts test", "archive", "baseline accept", "baseline import", "demo", "forget", "labels draw",
    "mark", "prune", "pull", "rescore", "sinks resend", "sinks test",
}  # fmt: skip
"""Commands that change the database or send something."""


def command_line(verb: str, alert: str) -> list[str]:
    """Return the command line of a command that reads data."""
    return [*verb.split(), *(part.format(alert=alert) for part in READ_COMMANDS[verb]), "--json"]


def verbs() -> Iterator[tuple[str, click.Command, click.Context]]:
    """Return all commands, including subcommands."""
    yield from _verbs(group, click.Context(group, info_name="germane", **group.context_settings), ())


def _verbs(
    command: click.Command, context: click.Context, path: tuple[str, ...]
) -> Iterator[tuple[str, click.Command, click.Context]]:
    if path:
        yield " ".join(path), command, context
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            inner = command.get_command(context, name)
            assert inner is not None
            yield from _verbs(inner, click.Context(inner, parent=context, info_name=name), (*path, name))


ALL = {name: command for name, command, _ in verbs()}


@pytest.fixture(scope="module")
def week(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """A database with a sample week of data that ends now, and the id of the open alert in it."""
    path = tmp_path_factory.mktemp("week") / "germane.db"
    now = datetime.now(UTC)
    with closing(TrackingStore(f"sqlite:///{path}", clock=lambda: now)) as store:
        store.migrate()
        return path, seed(store, now).open_alert


@pytest.fixture
def alert(week: tuple[Path, str], bare: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Configure a copy of the sample week, and return the id of its open alert."""
    monkeypatch.setenv("GERMANE_DATABASE", f"sqlite:///{shutil.copy(week[0], bare / 'week.db')}")
    return week[1]


def test_help_summaries_match_the_commands() -> None:
    """`germane --help` lists commands without importing them, with the summaries from their own help."""
    assert {name: ALL[name].get_short_help_str(1000) for name in SUMMARIES} == SUMMARIES
    assert sorted(SUMMARIES) == sorted(name for name in ALL if " " not in name)


def test_every_command_has_a_help_heading() -> None:
    """Each command is listed exactly once."""
    listed = [name for names in SECTIONS.values() for name in names]

    assert sorted(listed) == sorted(name for name in ALL if " " not in name)


@each("verb", ALL)
def test_help_texts_have_a_consistent_form(call: Call, verb: str) -> None:
    """`-h` equals `--help`. Summaries fit on one line, and options are sentences."""
    ended = call(*verb.split(), "-h")

    assert (ended.code, ended.err) == (0, "")
    assert ended.out == call(*verb.split(), "--help").out
    short = ALL[verb].get_short_help_str(66)
    assert re.fullmatch(r"[A-Z].*[.?]", short), short
    assert not short.endswith("...")
    for parameter in ALL[verb].get_params(click.Context(ALL[verb])):
        if isinstance(parameter, click.Option):
            assert re.fullmatch(r"(?s)[A-Z0-9].*[.?]", parameter.help or ""), f"{parameter.name}: {parameter.help}"


@each("verb", ["", *ALL])
def test_help_ends_with_two_examples(call: Call, bare: Path, verb: str) -> None:
    """Both are examples of this command, and the command line accepts them."""
    help_text = call(*verb.split(), "--help").out
    lines = help_text.rpartition("\nExamples:\n")[2].splitlines()
    examples = [line.strip() for line in lines[1::2]]

    assert [line[:4] for line in lines[::2]] == ["  # "] * 2
    assert all(f"{line} ".startswith(f"germane {verb}".rstrip() + " ") for line in examples)
    for line in examples:
        words = shlex.split(line.partition(" > ")[0])
        for word in words:
            if word.endswith((".jsonl", ".csv", ".txt")):
                (bare / word).touch()
        accept(words)


def accept(words: list[str]) -> None:
    """Parse a command line without running it. Raises click's errors."""
    command: click.Command = group
    context, rest = click.Context(group, info_name="germane", **group.context_settings), words[1:]
    while isinstance(command, click.Group) and rest and (found := command.get_command(context, rest[0])):
        context, command = click.Context(found, info_name=rest[0], parent=context), found
        rest = rest[1:]
    command.make_context(context.info_name, rest, parent=context.parent).close()


def test_every_command_with_a_result_has_a_json_option() -> None:
    """All commands except those that write files or run until they are stopped."""
    ends = [
        (name, command.get_params(context))
        for name, command, context in verbs()
        if not isinstance(command, click.Group)
    ]

    lacking = {name for name, parameters in ends if not any("--json" in one.opts for one in parameters)}
    assert lacking == WITHOUT_JSON


def test_json_output_of_every_read_command_is_documented() -> None:
    """The tests below run all commands with --json that change nothing, and every command with --json has a schema."""
    names = {name for name, command in ALL.items() if not isinstance(command, click.Group)}

    documented = {verb.removesuffix(" --undelivered").removesuffix(" check") for verb in READ_COMMANDS}
    assert documented - {"alerts"} == names - WITHOUT_JSON - CHANGING
    assert [verb for verb in names - WITHOUT_JSON if schema_of(verb.split()) == "cli/"] == []


@pytest.mark.slow
@pytest.mark.parametrize("verb", READ_COMMANDS)
def test_json_output_is_one_documented_object(call: Call, alert: str, verb: str) -> None:
    """Standard output contains only this object, on one line. ``call`` compares it with its schema."""
    ended = call(*command_line(verb, alert))

    assert ended.code in {0, 4, 5}
    assert ended.out.count("\n") == 1
    assert ended.content["schema_version"] == 1
    assert "\x1b" not in ended.err


@pytest.mark.parametrize("verb", READ_COMMANDS)
def test_errors_are_json_objects_with_the_json_option(call: Call, bare: Path, verb: str) -> None:
    """If there is no database, the plain-text error also goes to standard error."""
    ended = call(*command_line(verb, "a1"), *(() if verb == "config" else ("--database", "sqlite:////x/y/z")))

    assert ended.out.count("\n") == 1
    if ended.code == 1:
        assert set(ended.content) == {"schema_version", "error"}
        assert ended.err.startswith("germane: ")
    else:
        assert (verb, ended.code) in {("config", 0), ("doctor", 4), ("db check", 4)}


@pytest.mark.parametrize("verb", [one for one in READ_COMMANDS if one not in {"alerts sensitivity", "alerts backtest"}])
def test_piped_output_contains_no_escape_sequences(call: Call, alert: str, verb: str) -> None:
    """The text contains no colors or control characters."""
    ended = call(*command_line(verb, alert)[:-1])

    assert ended.code in {0, 4, 5}
    assert not re.findall(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e]", ended.out + ended.err)


@each(
    ("typed", "meant"),
    [
        (("rapport",), "report"),
        (("trends",), "trend"),
        (("alerts", "bactest"), "backtest"),
        (("baseline", "imprt"), "import"),
        (("report", "--fail-undr", "1"), "--fail-under"),
        (("report", "--window", "3d"), "--since"),
    ],
)
def test_an_error_for_a_misspelled_name_suggests_the_correct_one(
    call: Call, typed: tuple[str, ...], meant: str
) -> None:
    """This covers commands, subcommands and options, with every version of click. It is still a usage error."""
    ended = call(*typed)

    assert (ended.code, ended.out) == (2, "")
    assert re.search(rf"(Did you mean|Possible options).*{meant}", ended.err)  # click before 8.4 lists several options


def test_an_error_for_an_unknown_name_without_a_similar_one_suggests_nothing(call: Call) -> None:
    """Nothing is guessed."""
    ended = call("xyzzy")

    assert ended.code == 2
    assert "No such command 'xyzzy'." in ended.err
    assert "Did you mean" not in ended.err


NAMED = [
    (verb, parameter)
    for verb, command in ALL.items()
    for parameter in command.params
    if parameter.name in {"service", "route", "scorer", "scorers"} and verb not in {"score", "calibrate"}
]
"""Commands and parameters that name something in the database."""
REQUIRED = {"mark": ["v2"], "alerts respond": ["silence", "--for", "2h"], "baseline import": ["--since", "7d"]}


def test_the_tests_for_misspelled_names_cover_all_commands_with_a_name() -> None:
    """The list is generated from the parameters of all commands."""
    assert len(NAMED) >= 18
    assert {verb for verb, _ in NAMED} >= {"report", "trend", "worst", "export", "rescore", "mark", "baseline show"}


@pytest.mark.parametrize(("verb", "parameter"), NAMED)
def test_a_misspelled_name_is_a_usage_error(call: Call, alert: str, verb: str, parameter: click.Parameter) -> None:
    """A typo is not reported as missing data: the exit code is 2, and the message suggests the right name.

    Commands that may name a new service only warn, because shop-eu next to shop-us is not a typo.
    """
    kind = str(parameter.name)
    with closing(TrackingStore(str(os.environ["GERMANE_DATABASE"]))) as store:
        names = {getattr(coverage, kind.removesuffix("s")) for coverage in store.trends.coverage()}
    right = max(names, key=len)
    wrong = right[:-2] + right[-1] + right[-2] if right[-1] != right[-2] else right + "x"
    given = [wrong] if isinstance(parameter, click.Argument) else [f"--{kind.removesuffix('s')}", wrong]

    ended = call(*verb.split(), *REQUIRED.get(verb, []), *given)

    assert (ended.code != 2) is (verb in MAY_BE_NEW), ended.err
    assert f"did you mean {right!r}?" in " ".join(ended.err.split())


@pytest.mark.parametrize("verb", ["score", "calibrate"])
def test_a_misspelled_scorer_to_run_is_a_usage_error(call: Call, bare: Path, verb: str) -> None:
    """The message names the right scorer before anything is scored."""
    (bare / "rows.jsonl").write_text('{"question": "How?", "answer": "By card.", "label": 1}\n')
    file = {"score": ["rows.jsonl"], "calibrate": ["--file", "rows.jsonl"]}[verb]

    ended = call(verb, *file, "--scorer", "noncomittal")

    assert ended.code == 2, ended.err
    assert "did you mean 'noncommittal'?" in ended.err
