"""Lists of hosts, host files and the hosts of batch jobs, word for word, and refusals."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.shared import Fakes

from hockney.errors import UsageError
from hockney.model import placed, split_placed
from hockney.worker.catalogue import matches
from hockney.worker.hosts import (
    Allocation,
    Host,
    current_allocation,
    fill,
    find_allocation,
    fold_hosts,
    parse_hosts,
    read_hostfile,
    slurm_counts,
)


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("a", "a"),
        (" a , b.example.org ,", "a b.example.org"),
        ("10.0.0.1,a:2", "10.0.0.1 a:2"),
        ("n[1-3]", "n1 n2 n3"),
        ("n[8-10]", "n8 n9 n10"),
        ("n[08-10,12]:4,m", "n08:4 n09:4 n10:4 n12:4 m"),
        ("r[1-2]n[1-2]x", "r1n1x r1n2x r2n1x r2n2x"),
    ],
)
def test_lists(text: str, written: str) -> None:
    assert " ".join(map(str, parse_hosts(text))) == written


@pytest.mark.parametrize(
    "text",
    [
        "",
        ",",
        "-oProxyCommand=x",
        "a b",
        "a;b",
        "a:0",
        "a:x",
        "a:",
        "n[1-",
        "n[2-1]",
        "n[]",
        "n[1-9999]",
        "[::1]",
        "$(x)",
    ],
)
def test_invalid_hosts(text: str) -> None:
    with pytest.raises(UsageError):
        parse_hosts(text)


@pytest.mark.parametrize(("text", "count"), [("n[1-4096]", 4096), ("n[0-63]m[1-64]", 4096), ("n[7-7]", 1)])
def test_a_word_names_up_to_4096_hosts(text: str, count: int) -> None:
    assert len(parse_hosts(text)) == count


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("n[1-4097]", "4,097"),
        ("n[1-100000]", "100,000"),
        ("n[1-4000,1-4000]", "8,000"),
        ("n[0-63]m[1-65]", "4,160"),
        (",".join(f"n{i}" for i in range(5000)), "5,000"),
    ],
)
def test_more_hosts_are_refused_with_the_limit(text: str, number: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=rf"names {number} hosts, and hockney takes at most 4,096: name fewer$"):
        parse_hosts(text)
    path = tmp_path / "hosts"
    path.write_text(text.replace(",n", "\nn"))
    with pytest.raises(UsageError, match=rf"names {number} hosts, and hockney takes at most 4,096: name fewer$"):
        read_hostfile(path)


def test_a_host_is_named_once() -> None:
    with pytest.raises(UsageError, match="names n2 twice: name it once, or write n2:2 for two ranks"):
        parse_hosts("n[1-3],n2")


def test_host_files(tmp_path: Path) -> None:
    path = tmp_path / "hosts"
    path.write_text("# the rack\nn1\nn2 \tslots=2\n\nn3:4 # new\nn[4-5]\n")
    assert read_hostfile(path) == (Host("n1"), Host("n2", 2), Host("n3", 4), Host("n4"), Host("n5"))
    path.write_text("n1\nn1\nn2\nn2\nn2\n")  # as batch systems write it, a line for each rank
    assert read_hostfile(path) == (Host("n1", 2), Host("n2", 3))
    path.write_text("n1 slots=2\nn1\nn1:3\n")
    assert read_hostfile(path) == (Host("n1", 6),)


@pytest.mark.parametrize("text", ["", "# none", "n1 -x", "n1 max=2"])
def test_invalid_host_files(tmp_path: Path, text: str) -> None:
    path = tmp_path / "hosts"
    with pytest.raises(UsageError, match=r"cannot read the host file .*: no such file or directory$"):
        read_hostfile(path)
    path.write_text(text)
    with pytest.raises(UsageError):
        read_hostfile(path)


@pytest.mark.parametrize(
    ("ranks", "hosts", "per_host", "filled"),
    [
        (2, "a,b", None, "a:1 b:1"),
        (1, "a,b", None, "a:1"),
        (5, "a,b", None, "a:3 b:2"),
        (6, "a,b,c", None, "a:2 b:2 c:2"),
        (6, "a:1,b,c:2", None, "a:1 b:3 c:2"),
        (3, "a:2,b:2", None, "a:2 b:1"),
        (2, "a,b", 2, "a:2"),
        (2, "a,b", 1, "a:1 b:1"),
        (5, "a,b,c,d", 2, "a:2 b:2 c:1"),
        (3, "a:2,b:1", 2, "a:2 b:1"),
    ],
)
def test_ranks_fill_hosts(ranks: int, hosts: str, per_host: int | None, filled: str) -> None:
    hosts_filled = fill(ranks, parse_hosts(hosts), per_host)
    assert " ".join(map(str, hosts_filled)) == filled
    assert fill(ranks, hosts_filled) == hosts_filled


def test_more_ranks_than_fit() -> None:
    with pytest.raises(UsageError, match="5 ranks are more than 2 on each of 2 hosts"):
        fill(5, parse_hosts("a,b"), 2)
    with pytest.raises(UsageError, match="a:1 has too few slots for 2 ranks"):
        fill(2, parse_hosts("a:1,b"), 2)


@pytest.mark.parametrize(
    ("transport", "per_host", "name"),
    [
        ("tcp", 2, "tcp/2"),
        ("tcp:spin", 1, "tcp:spin/1"),
        ("mpi@/opt/mpich", 4, "mpi@/opt/mpich:/4"),
        ("mpi@/opt/mpich/4:sync", 2, "mpi@/opt/mpich/4:sync/2"),
    ],
)
def test_names_of_placements(transport: str, per_host: int, name: str) -> None:
    assert placed(transport, per_host) == name
    assert split_placed(name) == (transport, str(per_host))
    assert split_placed(transport) == (transport, "")
    assert matches(transport, transport)
    assert not matches(transport, name)
    assert matches(name, name)


def test_a_word_of_libraries_means_its_placement_of_each() -> None:
    assert matches("mpi/2", "mpi@mpich-4.0/2")
    assert not matches("mpi/2", "mpi@mpich-4.0")
    assert not matches("mpi", "mpi@mpich-4.0/2")
    assert not matches("sim@file/2", "tcp/2")


@pytest.mark.parametrize(
    ("hosts", "folded"),
    [
        ("n1,n2", "n1,n2"),
        ("n1,n2,n3", "n[1-3]"),
        ("n1,n2,n3,n4", "n[1-4]"),
        ("n08,n09,n10,n12", "n[08-10,12]"),
        ("n8,n9,n10,n011", "n[8-10,011]"),
        ("n1:2,n2:2,n3:2,n4", "n[1-3]:2,n4"),
        ("a1.net,a2.net,a3.net,b1.net", "a[1-3].net,b1.net"),
        ("10.0.0.1,10.0.0.2,10.0.0.3", "10.0.0.[1-3]"),
        ("n3,n2,n1", "n[3,2,1]"),
        ("ant,bee,cat", "ant,bee,cat"),
    ],
)
def test_folded_hosts_name_the_same_hosts(hosts: str, folded: str) -> None:
    assert fold_hosts(parse_hosts(hosts)) == folded
    assert parse_hosts(folded) == parse_hosts(hosts)


def test_more_ranks_than_slots() -> None:
    with pytest.raises(UsageError, match=r"more ranks than slots \(3\)"):
        fill(4, parse_hosts("a:2,b:1"))


# ---- batch jobs -----------------------------------------------------------------------------------------------------


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


def test_flux_is_asked(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, fake: Fakes) -> None:
    program = fake(tmp_path / "flux", 'test "$*" = "hostlist local" && echo "f[1-3]"')
    monkeypatch.setenv("FLUX_URI", "local:///x")
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    assert current_allocation() == Allocation("Flux", "", (Host("f1"), Host("f2"), Host("f3")))
    program.unlink()
    with pytest.raises(UsageError, match=r"cannot be read \(flux hostlist local: no such file or directory\): name"):
        current_allocation()


@pytest.mark.parametrize("hosts", [{"LSB_MCPU_HOSTS": "a 4 b 2 "}, {"LSB_HOSTS": "a a a a b b"}])
def test_lsf(hosts: dict[str, str]) -> None:
    assert written({**hosts, "LSB_JOBID": "3"}) == "LSF job 3: a:4 b:2"


def test_grid_engine() -> None:
    lines = "a.example 4 all.q@a UNDEFINED\nb 2 all.q@b UNDEFINED\n"
    assert written({"PE_HOSTFILE": "/x", "JOB_ID": "8"}, nodefile=lines) == "Grid Engine job 8: a.example:4 b:2"


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
