"""Variables that set an MPI, and those that it does not know."""

from __future__ import annotations

from pathlib import Path

import pytest

from hockney.worker.build import Recipe
from hockney.worker.libraries import Library
from hockney.worker.variables import settings, unknown_variables

OMPI_INFO = """#!/bin/sh
test -z "$OMPI_MCA_btl" || exit 1
echo 'mca:btl:base:param:btl:value:'
echo 'mca:coll:tuned:param:coll_tuned_allgather_algorithm:value:0'
echo 'mca:coll:tuned:param:coll_tuned_allgather_algorithm:help:Which one'
"""
MPIVARS = """#!/bin/sh
echo '2 MPI Control Variables'
printf '\\tMPIR_CVAR_ALLGATHER_INTRA_ALGORITHM=0\\tSCOPE_ALL_EQ\\n\\tMPIR_CVAR_X  =1\\tSCOPE\\n'
"""


def library(kind: str, folder: Path, tool: str, text: str) -> Library:
    """One of that kind, with a program next to its wrapper that lists its variables."""
    for name, content in (("mpicc", "#!/bin/sh\n"), (tool, text)):
        (folder / name).write_text(content)
        (folder / name).chmod(0o755)
    return Library(kind, kind.upper(), kind, folder / "mpiexec", Recipe("mpi", compiler=(str(folder / "mpicc"),)))


def test_a_misspelt_variable_of_open_mpi_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMPI_MCA_btl", "^tcp")  # it would hide variables
    mpi = library("openmpi", tmp_path, "ompi_info", OMPI_INFO)
    names = ["OMPI_MCA_btl", "OMPI_MCA_coll_tuned_algather_algorithm", "OMPI_MCA_plm_rsh_agent", "MPIR_CVAR_Y", "UCX_Z"]
    (said,) = unknown_variables(mpi, names)
    assert said.startswith("OPENMPI has no variable OMPI_MCA_coll_tuned_algather_algorithm, so it changes nothing: ")
    assert said.endswith(": did you mean OMPI_MCA_coll_tuned_allgather_algorithm?")


def test_a_misspelt_variable_of_mpich_is_named(tmp_path: Path) -> None:
    mpi = library("mpich", tmp_path, "mpivars", MPIVARS)
    names = ["MPIR_CVAR_ALLGATHER_INTRA_ALGORITHM", "MPIR_CVAR_QQQQQQ", "OMPI_MCA_z"]
    assert list(unknown_variables(mpi, names)) == ["MPICH has no variable MPIR_CVAR_QQQQQQ, so it changes nothing"]


@pytest.mark.parametrize("ends", ["exit 1", "echo 0 MPI Control Variables"])
def test_without_a_list_nothing_is_named(ends: str, tmp_path: Path) -> None:
    text = f'#!/bin/sh\necho >>"$0.started"\n{ends}\n'
    assert list(unknown_variables(library("mpich", tmp_path, "mpivars", text), ["MPIR_CVAR_Y"])) == []
    assert (tmp_path / "mpivars.started").exists()
    assert list(unknown_variables(library("intel", tmp_path, "x", text), ["I_MPI_Y"])) == []


def test_settings_are_those_of_the_library_and_its_parts(tmp_path: Path) -> None:
    environment = {"UCX_TLS": "sm", "MPIR_CVAR_X": "1", "OMPI_MCA_btl": "sm", "HOME": "h"}
    assert settings(library("mpich", tmp_path, "mpivars", ""), environment) == ["MPIR_CVAR_X=1", "UCX_TLS=sm"]
