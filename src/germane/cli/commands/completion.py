"""``germane completion``: print shell completion scripts."""

from __future__ import annotations

from typing import Final

import click
from click.shell_completion import get_completion_class

from germane.cli.core.command import Command
from germane.cli.core.output import COMPLETION_VARIABLE

INSTRUCTIONS: Final = {
    "bash": 'bash: add to ~/.bashrc:  eval "$(germane completion bash)"',
    "zsh": 'zsh: add to ~/.zshrc, after compinit:  eval "$(germane completion zsh)"',
    "fish": "fish: run once:  germane completion fish > ~/.config/fish/completions/germane.fish",
}


@click.command("completion", cls=Command, shared=(), epilog=f"\b\n{chr(10).join(INSTRUCTIONS.values())}")
@click.argument("shell", type=click.Choice(list(INSTRUCTIONS)))
@click.pass_context
def command(context: click.Context, shell: str) -> None:
    """Print the completion script for a shell."""
    completion = get_completion_class(shell)
    if completion is None:
        context.fail(f"Completion for {shell} is not supported.")
    click.echo(completion(context.find_root().command, {}, "germane", COMPLETION_VARIABLE).source(), nl=False)
