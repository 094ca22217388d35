"""``germane completion``: what a shell needs to complete verbs and options."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

from germane.cli.core.output import COMPLETE

PROGRAM = "germane"
_PLACES = {
    "bash": 'eval "$(germane completion bash)"   in ~/.bashrc',
    "zsh": 'eval "$(germane completion zsh)"   in ~/.zshrc, after compinit',
    "fish": "germane completion fish > ~/.config/fish/completions/germane.fish",
}


@click.command("completion", epilog=f"\b\n{chr(10).join(_PLACES.values())}")
@click.argument("shell", type=click.Choice(list(_PLACES)))
@click.pass_context
def command(context: click.Context, shell: str) -> None:
    """Print the completion script of a shell."""
    of_shell = get_completion_class(shell)
    if of_shell is None:
        context.fail(f"There is no completion for {shell}.")
    click.echo(of_shell(context.find_root().command, {}, PROGRAM, COMPLETE).source(), nl=False)
