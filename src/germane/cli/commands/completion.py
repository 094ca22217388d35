"""``germane completion``: shell completion scripts."""

from __future__ import annotations

from typing import Final

import click
from click.shell_completion import get_completion_class

from germane.cli.core.output import COMPLETION_VARIABLE

INSTRUCTIONS: Final = {
    "bash": 'eval "$(germane completion bash)"   in ~/.bashrc',
    "zsh": 'eval "$(germane completion zsh)"   in ~/.zshrc, after compinit',
    "fish": "germane completion fish > ~/.config/fish/completions/germane.fish",
}


@click.command("completion", epilog=f"\b\n{chr(10).join(INSTRUCTIONS.values())}")
@click.argument("shell", type=click.Choice(list(INSTRUCTIONS)))
@click.pass_context
def command(context: click.Context, shell: str) -> None:
    """Print the completion script of a shell."""
    completion = get_completion_class(shell)
    if completion is None:
        context.fail(f"Completion for {shell} is not supported.")
    click.echo(completion(context.find_root().command, {}, "germane", COMPLETION_VARIABLE).source(), nl=False)
