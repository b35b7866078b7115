"""Ranks on several hosts: those of a bed."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from tests.matrix import matrix
from tests.shared import script
from tests.truth.bed.bed import Bed, Host
from tests.truth.conftest import MakeBed
from tests.truth.runs import MEASURED, hockney, nothing_is_stored, run_of

from hockney.machine.files import parse_cpus
from hockney.machine.placement import usable_cpus
from hockney.machine.topology import read_topology
from hockney.machine.warned import fix_of
from hockney.model import PointStatus, split_placed
from hockney.results.runs import Run
from hockney.worker.build import build_worker


def run(
    bed: Bed,
    store: Path,
    hosts: str,
    *arguments: str,
    transport: str = "tcp",
    codes: tuple[int, ...] = MEASURED,
    **variables: str,
) -> subprocess.CompletedProcess[str]:
    """`hockney run pingpong` on the first host of the bed."""
    words = ("run", "pingpong", "-t", transport, "--bytes", "8,1K", "--time", "0.5s", "--hosts", hosts, *arguments)
    return hockney(bed, store, *words, codes=codes, **variables)


@pytest.fixture(scope="module")
def of_sockets(two_hosts: Bed, tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A run over tcp and udp on two hosts."""
    path = tmp_path_factory.mktemp("sockets") / "r.db"
    run(two_hosts, path, "n1,n2", "--launches", "1", transport="tcp,udp")
    return run_of(path)


def test_sockets_between_two_hosts_and_within_one(of_sockets: Run) -> None:
    hosts = {launch.transport: launch.hosts for launch in of_sockets.launches.values()}
    assert hosts == {
        **dict.fromkeys(("tcp", "udp"), ("n1", "n2")),
        **dict.fromkeys(("tcp/2", "udp/2"), ("n1", "n1")),
    }
    for series in of_sockets.series:
        is_between = not split_placed(series.point.transport)[1]
        assert series.measurements
        for measurement in series.measurements:
            assert measurement.verified
            assert measurement.floor_kind == ("transport" if is_between else "line")
            assert measurement.floor_ns is not None
            # No message gets through a kernel as fast as a cache line.
            assert not is_between or min(measurement.floor_ns) > 500
            assert measurement.pace_ns is not None
            assert all(len(paces) == 2 and min(paces) > 0 for paces in measurement.pace_ns)
            assert (measurement.solo_ns is None) == is_between
        states = {figure.state for figure in series.figures()} - {"mixed"}
        assert all(state.startswith("reference") == is_between for state in states), states


def test_more_ranks_than_one_host_has(two_hosts: Bed, tmp_path: Path) -> None:
    run(two_hosts, tmp_path / "r.db", "n1,n2", "-n", "4")
    (launch,) = run_of(tmp_path / "r.db").launches.values()
    assert launch.hosts == ("n1", "n1", "n2", "n2")


def test_each_host_pins_ranks_to_its_cpus(make_bed: MakeBed, tmp_path: Path) -> None:
    last = usable_cpus()[-1]
    bed = make_bed(Host(), Host(cpus=[last]))
    for transport in ("tcp", "mpi@mpich", "mpi@openmpi"):
        store = tmp_path / f"{transport}.db"
        run(bed, store, "n[2,1]:1", "--launches", "1", transport=transport)
        launches = run_of(store).launches
        assert launches
        for launch in launches.values():
            assert dict(zip(launch.hosts, launch.cpus, strict=True)) == {"n1": usable_cpus()[0], "n2": last}


def test_each_host_says_what_its_cpus_share(of_sockets: Run) -> None:
    topology = read_topology()
    for host in of_sockets.facts["hosts"]:
        assert sorted(map(parse_cpus, host["cores"])) == list(topology.cores)


@pytest.mark.parametrize("map_by", matrix(["core", "socket", "node"], short=["socket"]))
def test_the_binding_obtained_is_stored_and_shown(two_hosts: Bed, tmp_path: Path, map_by: str) -> None:
    path = tmp_path / "r.db"
    words = ("-n", "4", "--launches", "1", "--map", map_by)
    run(two_hosts, path, "n1,n2", *words, transport="tcp,mpi@mpich-4,mpi@openmpi")
    launches = run_of(path).launches
    assert len(launches) == 3
    for launch in launches.values():
        assert launch.argv[-1].count(f"--bind {map_by}") == 1 or map_by in launch.argv
        assert launch.bound == tuple(map(str, launch.cpus))
    shown = hockney(two_hosts, path, "show", "-v").stdout
    for host in ("n1", "n2"):
        assert re.search(rf"^tcp +{host} +\d-\d +\d+\*?, \d+\*?$", shown, re.MULTILINE), shown


SECOND = "eth1"


@pytest.fixture(scope="module")
def two_networks(make_bed: MakeBed) -> Bed:
    """Two hosts, each with a second interface on a network of its own."""
    bed = make_bed(Host(), Host())
    bed.add_interface(SECOND)
    return bed


def sent_bytes(bed: Bed) -> dict[str, int]:
    """What the first host has sent by each of its interfaces."""
    files = {name: f"/sys/class/net/{name}/statistics/tx_bytes" for name in ("eth0", SECOND)}
    return {name: int(bed.run("n1", ["cat", file]).stdout) for name, file in files.items()}


@pytest.mark.parametrize("transport", ["tcp", "udp", "mpi@openmpi", "mpi@mpich-4", "pvm"])
@pytest.mark.parametrize("interface", matrix(["eth0", SECOND], short=[SECOND]))  # the first is taken by default
def test_messages_take_the_interface_that_is_named(
    two_networks: Bed, tmp_path: Path, transport: str, interface: str
) -> None:
    before = sent_bytes(two_networks)
    words = ("--bytes", "32K", "--launches", "1", "--interface", interface)
    run(two_networks, tmp_path / "r.db", "n1:1,n2:1", *words, transport=transport)
    (series,) = [series for series in run_of(tmp_path / "r.db").series if series.point.bytes == 32_768]
    payload_bytes = sum(32_768 * each.batch * each.elapsed_ns.shape[1] for each in series.measurements)
    sent = {name: count - before[name] for name, count in sent_bytes(two_networks).items()}
    assert sent[interface] > payload_bytes > 0  # the other one carries ssh, and an MPI's launcher


def test_a_host_without_the_interface_is_named_before_anything_is_measured(two_networks: Bed, tmp_path: Path) -> None:
    assert two_networks.run("n2", ["ip", "addr", "flush", "dev", SECOND]).returncode == 0
    done = run(two_networks, tmp_path / "r.db", "n1,n2", "--interface", SECOND, codes=(2,))
    assert "n2 has no network interface eth1 with an address (it has eth0): name one" in done.stderr
    assert nothing_is_stored(tmp_path / "r.db")


def test_more_ranks_than_slots(two_hosts: Bed, tmp_path: Path) -> None:
    done = run(two_hosts, tmp_path / "r.db", "n1:1,n2:1", "-n", "3", codes=(2,))
    assert "there are more ranks than slots (2) in --hosts" in done.stderr


@pytest.mark.full
def test_the_data_sheet_of_several_hosts(two_hosts: Bed, tmp_path: Path) -> None:
    (tmp_path / "hosts").write_text("n1\nn2 slots=1 # the second\n")
    words = ("quick", "--hostfile", str(tmp_path / "hosts"), "--time", "1s")
    hockney(two_hosts, tmp_path / "r.db", *words, codes=MEASURED)
    hosts = {launch.transport: launch.hosts for launch in run_of(tmp_path / "r.db").launches.values()}
    for transport in ("tcp", "udp", "mpi@mpich", "mpi@openmpi", "pvm@"):
        assert ("n1", "n2") in {of_job for name, of_job in hosts.items() if name.startswith(transport)}, transport


@pytest.mark.parametrize("pattern", matrix(["putpong", "get", "barrier"], short=["putpong"]))
def test_openshmem_between_two_hosts(two_hosts: Bed, tmp_path: Path, pattern: str) -> None:
    words = ("run", pattern, "-t", "shmem", "--hosts", "n1:1,n2:1", "--time", "1s", "--launches", "1")
    sizes = () if pattern == "barrier" else ("--bytes", "8")
    hockney(two_hosts, tmp_path / "r.db", *words, *sizes, codes=MEASURED)
    measured = run_of(tmp_path / "r.db")
    assert {launch.hosts for launch in measured.launches.values()} == {("n1", "n2")}
    (series,) = measured.series
    assert series.measurements
    assert all(each.verified for each in series.measurements if pattern != "barrier")
    assert all(each.times_ns().min() > 1000 for each in series.measurements)  # slower than memory


def test_hosts_describe_themselves(of_sockets: Run) -> None:
    hosts = of_sockets.facts["hosts"]
    assert [host["name"] for host in hosts] == [host["hostname"] for host in hosts] == ["n1", "n2"]
    assert len({host["machine"] for host in hosts}) == 2
    for number, host in enumerate(hosts, 1):
        (interface,) = [each for each in host["interfaces"] if each["name"] == "eth0"]
        assert interface["mtu_bytes"] == 1500
        assert interface["address"] == f"10.77.0.{number}"
        assert host["kernel"] == f"{os.uname().sysname} {os.uname().release}"
        assert parse_cpus(host["cpus"]) == usable_cpus()
        assert abs(host["clock_offset_s"]) <= host["clock_error_s"]


def test_hosts_that_cannot_be_used_are_named_before_anything_is_measured(make_bed: MakeBed, tmp_path: Path) -> None:
    bed = make_bed(Host(), Host(), Host(), Host())
    bed.cut("n3")
    workers = hide_workers(bed, "n4", "-r")
    said = " ".join(run(bed, tmp_path / "r.db", "n[1-4],n9:2", "-n", "5", codes=(3,)).stderr.split())
    assert "3 of 5 hosts cannot be used: n3: connect to host n3 port 22: " in said
    assert f"n4: the worker {workers}/" in said
    assert "n9: Could not resolve hostname n9: Name or service not known" in said
    assert "without them: --hosts n1,n2" in said
    assert nothing_is_stored(tmp_path / "r.db")


def hide_workers(bed: Bed, host: str, *options: str) -> Path:
    """From now on the folder of built workers is empty on that host."""
    workers = build_worker().parent
    assert bed.run(host, ["mount", "-t", "tmpfs", *options, "none", str(workers)]).returncode == 0
    return workers


def test_a_host_without_the_workers_gets_them(make_bed: MakeBed, tmp_path: Path) -> None:
    bed = make_bed(Host(), Host())
    workers = hide_workers(bed, "n2", "-o", "mode=0700")
    for transport in ("tcp", "mpi@mpich"):
        store = tmp_path / f"{transport}.db"
        run(bed, store, "n1,n2", "--launches", "1", transport=transport)
        assert ("n1", "n2") in {launch.hosts for launch in run_of(store).launches.values()}
    for line in bed.run("n2", ["sh", "-c", f"cd {workers} && sha256sum *-*"]).stdout.splitlines():
        digest, name = line.split()
        assert hashlib.sha256((workers / name).read_bytes()).hexdigest() == digest


def test_a_host_whose_folder_of_workers_others_may_write_is_named(make_bed: MakeBed, tmp_path: Path) -> None:
    bed = make_bed(Host(), Host())
    workers = hide_workers(bed, "n2", "-o", "mode=0777")
    said = " ".join(run(bed, tmp_path / "r.db", "n1,n2", "--launches", "1", codes=(3,)).stderr.split())
    assert f"n2: the worker {workers}/" in said
    assert f"others can change {workers}: own it, and run chmod go-w {workers}" in said


def test_another_version_of_a_library_is_named(make_bed: MakeBed, tmp_path: Path) -> None:
    bed = make_bed(Host(), Host())
    other = script(tmp_path / "mpiexec", "echo Version: 1.2.3")
    program = Path(str(shutil.which("mpiexec.openmpi"))).resolve()
    assert bed.run("n2", ["mount", "--bind", str(other), str(program)]).returncode == 0
    done = run(bed, tmp_path / "r.db", "n1,n2", "--launches", "1", transport="mpi@openmpi")
    measured = run_of(tmp_path / "r.db")
    first, second = (host["libraries"] for host in measured.facts["hosts"])
    (warning,) = [each for each in measured.warnings if each.kind == "hosts"]
    assert list(second.values()) == ["1.2.3"], done.stderr
    assert f"is of version 1.2.3; n1 has {next(iter(first.values()))}." in warning.cause


def test_hosts_of_a_pbs_job(two_hosts: Bed, tmp_path: Path) -> None:
    (tmp_path / "nodes").write_text("n1\nn1\nn2\nn2\n", encoding="ascii")
    job = {"PBS_NODEFILE": str(tmp_path / "nodes"), "PBS_JOBID": "7.server"}
    words = (
        "run",
        "pingpong",
        "-t",
        "tcp,mpi@mpich-4,mpi@openmpi",
        "--bytes",
        "8",
        "--time",
        "0.5s",
        "--launches",
        "1",
    )
    done = hockney(two_hosts, tmp_path / "r.db", *words, codes=MEASURED, **job)
    assert "On the 2 hosts of PBS job 7.server: n1, n2" in done.stderr
    launches = run_of(tmp_path / "r.db").launches.values()
    between = {launch.transport.partition("-")[0] for launch in launches if len(set(launch.hosts)) > 1}
    assert between == {"tcp", "mpi@mpich", "mpi@openmpi"}, done.stdout


def test_ranks_that_came_up_elsewhere_measure_nothing(two_hosts: Bed, tmp_path: Path) -> None:
    blind = "mpiexec.mpich -n {ranks} {worker}"
    run(two_hosts, tmp_path / "r.db", "n1,n2", "--launcher", blind, transport="mpi@mpich-4", codes=(3,))
    between = [row for row in run_of(tmp_path / "r.db").series if row.point.per_host is None]
    assert {row.status for row in between} == {PointStatus.FAILED}
    assert "ranks that belong on n1:1, n2:1 came up on n1, n1" in (between[0].reason or "")


def test_a_resumed_run_asks_its_hosts_again(make_bed: MakeBed, tmp_path: Path) -> None:
    bed = make_bed(Host(), Host())
    run(bed, tmp_path / "r.db", "n1,n2", "--launches", "2")
    bed.cut("n2")
    resumed = hockney(bed, tmp_path / "r.db", "run", "--resume", "1", codes=(3,))
    assert "1 of 2 hosts cannot be used: n2: " in " ".join(resumed.stderr.split())


def test_a_wrong_name_is_refused_with_mpis_alone(two_hosts: Bed, tmp_path: Path) -> None:
    done = run(two_hosts, tmp_path / "r.db", "n1,n9", transport="mpi", codes=(3,))
    assert "1 of 2 hosts cannot be used: n9: Could not resolve hostname n9" in " ".join(done.stderr.split())


def test_a_wrong_name_costs_seconds_whatever_the_launcher(two_hosts: Bed, tmp_path: Path) -> None:
    """Where no host answers hockney itself, the launchers of libraries may have another way."""
    words = ("--limit", "100s")
    run(two_hosts, tmp_path / "r.db", "n1,n9", *words, transport="mpi", codes=(3,), HOCKNEY_RSH="false")
    measured = run_of(tmp_path / "r.db")
    reasons = {row.point.transport: row.reason or "" for row in measured.series}
    assert {name.partition("-")[0] for name in reasons} >= {"mpi@mpich", "mpi@openmpi"}
    between = {name: reason for name, reason in reasons.items() if not name.endswith("/2")}
    # Which of its lines an mpiexec prints first is a race.
    assert all(re.search("did not start the ranks|Could not resolve", reason) for reason in between.values()), reasons
    assert any("Could not resolve hostname n9" in reason for reason in between.values()), reasons
    assert {launch.hosts for launch in measured.launches.values()} == {("n1", "n1")}  # all else is measured


def test_two_names_of_one_machine_are_refused(two_hosts: Bed, tmp_path: Path) -> None:
    done = run(two_hosts, tmp_path / "r.db", "n1,n2,10.77.0.1", "-n", "3", codes=(2,))
    assert "n1 and 10.77.0.1 are one host" in done.stderr


def test_containers_on_one_machine_are_hosts(make_bed: MakeBed, tmp_path: Path) -> None:
    """With the kernel's own boot id they differ by name, network and /dev/shm, as with docker compose or pods."""
    bed = make_bed(Host(), Host())
    for name in bed.names:
        assert bed.run(name, ["umount", "/proc/sys/kernel/random/boot_id"]).returncode == 0
    path = tmp_path / "r.db"
    run(bed, path, "n1:1,n2:1", "--launches", "1", transport="tcp,mpi")
    measured = run_of(path)
    launches = measured.launches.values()
    assert {launch.transport.partition("-")[0] for launch in launches} >= {"tcp", "mpi@mpich", "mpi@openmpi"}
    for launch in launches:
        assert launch.hosts == ("n1", "n2")
        assert len(set(launch.cpus)) == min(2, len(usable_cpus()))  # which they share
    causes = [warning.cause for warning in measured.warnings if warning.kind == "hosts"]
    assert causes == ["n1 and n2 are containers on one machine: they share its CPUs and memory."]


def test_hosts_that_have_ipv6_addresses_only(make_bed: MakeBed, tmp_path: Path) -> None:
    """Sockets work. The launchers of MPIs do not, which is said before their limit has passed."""
    bed = make_bed(Host(), Host())
    names = "::1 localhost\nfd77::1 n1\nfd77::2 n2\n"
    for number, name in enumerate(bed.names, 1):
        add = f"ip address add fd77::{number}/64 dev eth0 nodad"
        commands = ["ip address flush dev eth0", "ip address del 127.0.0.1/8 dev lo", add]
        setup = " && ".join([*commands, f"printf '{names}' >/etc/hosts"])  # they share the file
        assert bed.run(name, ["sh", "-c", setup]).returncode == 0
    path = tmp_path / "r.db"
    run(bed, path, "n1:1,n2:1", "--launches", "1", "--limit", "100s", transport="tcp,udp,mpi", codes=(3,))
    measured = run_of(path)
    hosts = {launch.transport: launch.hosts for launch in measured.launches.values()}
    assert hosts == dict.fromkeys(("tcp", "udp"), ("n1", "n2"))
    address = measured.facts["hosts"][0]["interfaces"][0]["address"]
    reasons = [row.reason or "" for row in measured.series if row.point.transport.startswith("mpi")]
    assert address == "fd77::1"
    assert reasons
    assert all(reason.endswith(fix_of("ipv4")) for reason in reasons), reasons


def test_ranks_that_share_a_cpu_are_marked_next_to_every_figure(make_bed: MakeBed, tmp_path: Path) -> None:
    bed = make_bed(*[Host(cpus=usable_cpus()[:1])] * 2)
    path = tmp_path / "r.db"
    done = run(bed, path, "n1,n2", "-n", "4", "--launches", "1")
    (launch,) = run_of(path).launches.values()
    assert launch.oversubscribed
    assert "--oversubscribed" in " ".join(launch.argv)
    assert "(more ranks than CPUs: scheduling times)" in done.stdout
