"""The hosts of a batch job, from environments as the batch systems make them."""

from __future__ import annotations

from pathlib import Path

import pytest

from hockney.errors import UsageError
from hockney.worker.hosts import Allocation, Host, current_allocation, find_allocation, slurm_counts

SLURM = {
    "SLURM_JOB_ID": "12",
    "SLURM_JOB_NODELIST": "n[1-3,08],login",
    "SLURM_TASKS_PER_NODE": "2(x3),1(x2)",
    "SLURM_JOB_CPUS_PER_NODE": "1,8(x2),4(x2)",
    "SLURM_CPUS_ON_NODE": "1",
}


def written(environment: dict[str, str], **texts: str) -> str:
    known = find_allocation(environment, **texts)
    return "" if known is None else f"{known}: {' '.join(map(str, known.hosts))}"


def test_no_allocation() -> None:
    assert find_allocation({"HOME": "/"}) is None
    assert find_allocation({"SLURM_JOB_ID": "12"}) is None


def test_slurm_with_the_larger_of_cpus_and_tasks_as_slots() -> None:
    assert written(SLURM) == "Slurm job 12: n1:2 n2:8 n3:8 n08:4 login:4"


def test_slurm_without_counts_that_fit() -> None:
    environment = {**SLURM, "SLURM_TASKS_PER_NODE": "2(x4)", "SLURM_JOB_CPUS_PER_NODE": "?"}
    assert written(environment) == "Slurm job 12: n1 n2 n3 n08 login"


@pytest.mark.parametrize(
    ("text", "counts"), [("2(x3),1", [2, 2, 2, 1]), ("4", [4]), ("", []), ("2(x", []), ("2x3", []), ("1,,2", [])]
)
def test_counts_of_slurm(text: str, counts: list[int]) -> None:
    assert slurm_counts(text) == counts


def test_pbs_with_a_line_for_each_rank() -> None:
    environment = {"PBS_NODEFILE": "/var/x", "PBS_JOBID": "9.server"}
    assert written(environment, nodefile="a\na\nb.example.org\n") == "PBS job 9.server: a:2 b.example.org:1"
    assert written(environment, nodefile="a\nb\n") == "PBS job 9.server: a b"


def test_flux_which_may_run_within_slurm() -> None:
    assert written({**SLURM, "FLUX_URI": "local:///x"}, hostlist="f[1-2]") == "Flux job: f1 f2"


def test_flux_is_asked(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    program = tmp_path / "flux"
    program.write_text('#!/bin/sh\ntest "$*" = "hostlist local" && echo "f[1-3]"\n', encoding="ascii")
    program.chmod(0o755)
    monkeypatch.setenv("FLUX_URI", "local:///x")
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    assert current_allocation() == Allocation("Flux", "", (Host("f1"), Host("f2"), Host("f3")))
    program.unlink()
    with pytest.raises(UsageError, match="the hosts of this job cannot be read"):
        current_allocation()


def test_lsf() -> None:
    environment = {"LSB_MCPU_HOSTS": "a 4 b 2 ", "LSB_JOBID": "3"}
    assert written(environment) == "LSF job 3: a:4 b:2"


@pytest.mark.parametrize(
    "environment",
    [{"SLURM_JOB_ID": "1", "SLURM_JOB_NODELIST": "n[1-"}, {"PBS_NODEFILE": "/x"}, {"LSB_MCPU_HOSTS": "a"}],
)
def test_a_list_that_cannot_be_read(environment: dict[str, str]) -> None:
    with pytest.raises(UsageError, match="name them with --hosts"):
        find_allocation(environment)


def test_a_node_file_that_is_not_there(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PBS_NODEFILE", str(tmp_path / "gone"))
    with pytest.raises(UsageError, match="the hosts of this job cannot be read"):
        current_allocation()


def test_one_of_several_that_srun_has_started(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SLURM_STEP_NUM_TASKS", "2")
    with pytest.raises(UsageError, match="srun has started hockney several times: start it once"):
        current_allocation()
    for unknown in ("", "1", "many"):
        monkeypatch.setenv("SLURM_STEP_NUM_TASKS", unknown)
        assert current_allocation() is None


def test_a_job_on_one_other_host(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    nodes = tmp_path / "nodes"
    nodes.write_text("elsewhere\n", encoding="ascii")
    monkeypatch.setenv("PBS_NODEFILE", str(nodes))
    with pytest.raises(UsageError, match="PBS job is on elsewhere, and this is "):
        current_allocation()
    nodes.write_text("localhost\n", encoding="ascii")
    known = current_allocation()
    assert known is not None
    assert len(known.hosts) == 1
