"""`hockney completion`: completion of commands, options and runs in a shell."""

from __future__ import annotations

from pathlib import Path

import click

from hockney.cli.common import OneOf, command
from hockney.render.json import print_json

_SHELLS = ("bash", "zsh", "fish")


@command(
    "completion",
    example="""hockney completion bash | install -Dm644 /dev/stdin ~/.local/share/bash-completion/completions/hockney
    hockney completion zsh > "${fpath[1]}/_hockney"
    hockney completion fish | install -Dm644 /dev/stdin ~/.config/fish/completions/hockney.fish""",
)
@click.argument("shell", type=OneOf("shell", _SHELLS))
def completion(shell: str, *, as_json: bool, store: Path | None) -> None:
    """Print the script that completes commands in a shell.

    Save it in the shell's completion folder, and start a new shell. The command must be on PATH as `hockney`.

    It completes commands and options, and as their values suites, patterns, benchmarks of OSU and IMB, transports,
    labels of runs, machine states and machines of the archive.
    """
    from click.shell_completion import get_completion_class

    from hockney.cli.commands import hockney

    kind = get_completion_class(shell)
    assert kind is not None  # click allows only these three shells
    script = kind(hockney, {}, "hockney", "_HOCKNEY_COMPLETE").source()
    if shell == "bash":  # else a word ends at a colon and at "@", which names such as mpi@openmpi:rma contain
        script += "COMP_WORDBREAKS=${COMP_WORDBREAKS//[:@]/}\n"
    if as_json:
        print_json("completion", {"shell": shell, "script": script})
    else:
        click.echo(script)
