"""What commands share: the options ``--database``, ``--json`` and ``--import``, and help that ends with examples."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final, TypeVar

import click

_Function = TypeVar("_Function", bound=Callable[..., Any])
_VALUES: Final = "germane.shared_options"
"""Key of the shared options' values in ``click.Context.meta``, which a subcommand shares with its group."""
_EXAMPLES: Final = Path(__file__).with_name("examples.toml")


def _keep(context: click.Context, option: click.Parameter, value: Any) -> None:
    if value not in (None, False):
        context.meta.setdefault(_VALUES, {})[option.name] = value


DATABASE: Final = click.Option(
    ["--database"],
    metavar="URL",
    expose_value=False,
    callback=_keep,
    help="Database URL. Defaults to the `database` setting.",
)
JSON: Final = click.Option(
    ["--json"], is_flag=True, expose_value=False, callback=_keep, help="Print the output as one JSON object."
)


class Command(click.Command):
    """A command that also accepts shared options, by default all of them. See :func:`shared_options`."""

    def __init__(self, *args: Any, shared: Sequence[click.Option] = (DATABASE, JSON), **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._shared = shared

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        params = super().get_params(ctx)  # the command's own, followed by --help
        count = len(self.params)
        return [*params[:count], *self._shared, *params[count:]]

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        super().format_epilog(ctx, formatter)
        with formatter.section("Examples"):
            for purpose, line in read_examples(ctx).items():
                formatter.write(f"  # {purpose}\n  {line}\n")


def read_examples(context: click.Context) -> dict[str, str]:
    """Return the command lines that show how to use a command, by purpose."""
    import tomllib  # only needed for help

    names: list[str] = []
    while context.parent is not None:
        names, context = [str(context.info_name), *names], context.parent
    found: dict[str, str] = tomllib.loads(_EXAMPLES.read_text(encoding="utf-8")).get(" ".join(["germane", *names]), {})
    return found


def import_option(help_text: str) -> Callable[[_Function], _Function]:
    """Return the option ``--import`` as a decorator. Its values are passed as ``modules``."""
    return click.option("--import", "modules", multiple=True, metavar="MODULE", help=help_text)


def shared_options() -> dict[str, Any]:
    """Return the values of the shared options that were passed to the current command, by name."""
    context = click.get_current_context(silent=True)
    return {} if context is None else context.meta.get(_VALUES, {})


def database_setting() -> dict[str, str]:
    """Return the setting that ``--database`` overrides, if it was passed."""
    options = shared_options()
    return {"database": options["database"]} if "database" in options else {}


def wants_json() -> bool:
    """Return whether ``--json`` was passed."""
    return "json" in shared_options()
