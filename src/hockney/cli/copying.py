"""Commands in what is printed do the same where they are copied: with the results file that this one was given.

That of the environment is left out: it still holds for whoever copies.
"""

from __future__ import annotations

import re
import shlex
from contextvars import ContextVar

named_store: ContextVar[str | None] = ContextVar("named_store", default=None)  # as --store has it

# Before it may stand variables and a place: `env -u UCX_TLS OMPI_MCA_btl=self,tcp taskset -c 0 hockney run …`.
_BEFORE = r"""(?:env (?:-u \w+ )+)?(?:\w+=(?:'[^'`\n]*'|\\?"[^"`\n]*"|[^\s'"`\\]|\\(?!"))* |taskset -c \S+ )*"""
_READS_A_STORE = re.compile(rf"`{_BEFORE}hockney (?:run|show|explain|compare|check|export|runs|quick)\b[^`\n]*(?=`)")
_COMMAND = re.compile(rf"`({_BEFORE}hockney [^`\n]*)`")


def copyable(text: str, *, in_json: bool = False) -> str:
    """A text whose commands in `…` name the results file, if --store did; `in_json`: the text is a JSON document."""
    store = named_store.get()
    if store is None:
        return text
    option = f" --store {shlex.quote(store)}"
    if in_json:
        import json

        option = json.dumps(option)[1:-1]
    return _READS_A_STORE.sub(lambda match: match[0] + ("" if " --store" in match[0] else option), text)


def commands_in(*texts: str | None) -> list[str]:
    """The commands that texts have in `…`, each once and as it is typed: with the results file, if --store named it."""
    return list(dict.fromkeys(command for text in texts if text for command in _COMMAND.findall(copyable(text))))
