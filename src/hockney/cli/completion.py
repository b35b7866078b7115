"""`hockney completion`: completion of commands, options and runs in a shell."""

from __future__ import annotations

from pathlib import Path

import click

from hockney.cli.common import OneOf, command
from hockney.render.json import print_json

_SHELLS = ("bash", "zsh", "fish")
# bash breaks a name such as mpi@openmpi:rma into words, and replaces only the last of them.
_WHOLE_WORDS = r"""
_hockney_whole_words() {
    local -a COMP_WORDS
    read -ra COMP_WORDS <<< "${COMP_LINE:0:COMP_POINT}"
    [[ ${COMP_LINE:COMP_POINT-1:1} != ' ' ]] || COMP_WORDS+=('')
    local COMP_CWORD=$((${#COMP_WORDS[@]} - 1)) breaks=${COMP_WORDBREAKS//[^:@]/}
    local word=${COMP_WORDS[COMP_CWORD]}
    _hockney_completion "$@"
    [[ -z $breaks ]] || COMPREPLY=("${COMPREPLY[@]#"${word%"${word##*[$breaks]}"}"}")
}
complete -o nosort -F _hockney_whole_words hockney
"""


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
    if shell == "bash":
        script = script.rstrip("\n") + _WHOLE_WORDS
    if as_json:
        print_json("completion", {"shell": shell, "script": script})
    else:
        click.echo(script)
