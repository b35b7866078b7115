"""The variables that set an MPI: those that a job has, and those that its library does not know."""

from __future__ import annotations

import difflib
import os
import re
import shutil
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from hockney.worker.libraries import Library
from hockney.worker.programs import output_of

# By the kind of a library: what the names of its variables begin with, the program next to its wrapper that lists all
# of them, and how that begins the line of each.
_OPENMPI = "OMPI_MCA_", ("ompi_info", "--all", "--parsable"), r"^mca:.*?:param:(\w+):"
_KINDS = {
    "openmpi": _OPENMPI,
    "oshrun": _OPENMPI,
    "mpich": ("MPIR_CVAR_", ("mpivars",), r"^\s*MPIR_CVAR_(\w+)\s*="),
}
_OF_ALL = ("FI_", "I_MPI_", "UCX_")


def settings(library: Library, environment: Mapping[str, str]) -> list[str]:
    """`NAME=VALUE` of the variables that set this library, or what it is made of."""
    prefixes = (*_OF_ALL, *(_KINDS[library.kind][:1] if library.kind in _KINDS else ()))
    return [f"{name}={environment[name]}" for name in sorted(environment) if name.startswith(prefixes)]


def unknown_variables(library: Library, names: Iterable[str]) -> Iterator[str]:
    """A sentence for each of these variables that begins like those of the library, which does not know it.

    Nothing where the library cannot list its own. Of Open MPI a name is judged only if others begin with the same word,
    as `coll`: its launcher has variables of its own.
    """
    if library.kind not in _KINDS:
        return
    prefix, (tool, *words), line = _KINDS[library.kind]
    asked = [name.removeprefix(prefix) for name in names if name.startswith(prefix)]
    wrapper = shutil.which(library.recipe.compiler[0]) if asked else None
    if wrapper is None:
        return
    set_here = [word for name in os.environ if name.startswith(prefix) for word in ("-u", name)]
    listed = output_of(["env", *set_here, Path(wrapper).with_name(tool), *words])
    known = re.findall(line, listed, re.MULTILINE)
    groups = {name.partition("_")[0] for name in known}
    for name in dict.fromkeys(asked):
        is_own = prefix == "MPIR_CVAR_" or name.partition("_")[0] in groups
        if known and is_own and name not in known:
            close = difflib.get_close_matches(name, known, n=1)
            hint = f": did you mean {prefix}{close[0]}?" if close else ""
            yield f"{library.name} has no variable {prefix}{name}, so it changes nothing{hint}"
