"""A host's answer about itself, read without any host: tests/truth asks real ones."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from types import SimpleNamespace

import pytest
from tests.builders import make_library
from tests.shared import Fakes, script

from hockney.errors import UsageError
from hockney.worker import preflight as preflight_module
from hockney.worker.hosts import Host, parse_hosts
from hockney.worker.preflight import RECEIVE_SCRIPT, HostsUnusable, Unusable, copy_worker, preflight
from hockney.worker.programs import ProgramFailed
from hockney.worker.starters import Starter

SCRIPTS = Path(preflight_module.__file__).parent / "hosts_sh"


def shell(tmp_path: Path, ending: str = "") -> Starter:
    """A remote shell that runs any command here, for any host; its answer ends with more lines."""
    program = script(tmp_path / "shell", "shift", 'sh -c "$*" | sed "/^end$/d"', f"{ending}echo end")
    return starter(program)


def starter(program: Path) -> Starter:
    return Starter((str(program), "{hosts}", "{worker}"), is_shell=True)


def test_this_host_describes_itself(tmp_path: Path) -> None:
    (host,) = preflight([Host("here")], [Path("/bin/true")], shell(tmp_path))
    assert host["name"] == "here"
    assert all(host[key] for key in ("hostname", "machine", "kernel", "cpus"))
    assert abs(host["clock_offset_s"]) <= host["clock_error_s"]


@pytest.mark.parametrize(
    ("clock", "offset_s", "error_s"), [("1005.5", 3.5, 2.0), ("998.0", -4.0, 2.0), ("1005.N", None, None)]
)
def test_a_clock_was_read_between_question_and_answer(
    clock: str, offset_s: float | None, error_s: float | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    moments = iter((1000.0, 1004.0))
    clocks = SimpleNamespace(time=lambda: next(moments), monotonic=lambda: 0.0)
    monkeypatch.setattr("hockney.worker.preflight.time", clocks)
    (host,) = preflight([Host("here")], [], shell(tmp_path, f"echo clock {clock}\n"))
    assert (host["clock_offset_s"], host["clock_error_s"]) == (offset_s, error_s)


@pytest.mark.parametrize(("speed", "bits_per_s"), [("-1", None), ("4294967295", None), ("0", None), ("1", 1_000_000)])
def test_the_rate_of_an_interface_is_known_above_zero(speed: str, bits_per_s: int | None, tmp_path: Path) -> None:
    (host,) = preflight([Host("here")], [], shell(tmp_path, f"echo 'interface eth9 1500 {speed} {speed} '\n"))
    speeds = {"bits_per_s": bits_per_s, "link_bits_per_s": bits_per_s}
    assert host["interfaces"][-1] == {"name": "eth9", "mtu_bytes": 1500, **speeds, "address": None}


def test_a_bond_has_the_speed_of_one_of_its_links_too(tmp_path: Path) -> None:
    """Of three, one is down; a virtual interface makes its speed up, and a cloud limits the rate of another one."""
    files = {
        "bond0": 2000,
        "bond0/lower_a": 1000,
        "bond0/lower_b": 1000,
        "bond0/lower_c": "",
        "eth0": 25000,
        "eth1": 50000,
        "veth0": 1,
    }
    for name, megabits in files.items():
        (tmp_path / name).mkdir()
        (tmp_path / name / "mtu").write_text("1500\n")
        (tmp_path / name / "speed").write_text(f"{megabits}\n")
        if "/" in name or name.startswith("eth"):
            (tmp_path / name / "device").mkdir()
    (tmp_path / "eth1/device/driver").symlink_to("/sys/bus/vmbus/drivers/hv_netvsc")
    script = (SCRIPTS / "describe.sh").read_text().replace("/sys/class/net", str(tmp_path))
    said = subprocess.run(
        ["sh", "-s", "--", "--"], input=script, capture_output=True, text=True, check=True, timeout=60
    )
    speeds = [line.split()[1:5] for line in said.stdout.splitlines() if line.startswith("interface ")]
    assert [(name, *of) for name, _, *of in speeds] == [
        ("bond0", "2000", "1000"),
        ("eth0", "25000", "25000"),
        ("eth1", "-1", "-1"),
        ("veth0", "-1", "-1"),
    ]


def test_an_interface_that_vanishes_while_it_is_read_is_left_out(tmp_path: Path) -> None:
    odd = "echo 'interface gone0  -1 -1 '\necho 'interface bond9 9000 20000 10000 10.0.0.1'\n"
    (host,) = preflight([Host("here")], [], shell(tmp_path, odd))
    assert "gone0" not in {each["name"] for each in host["interfaces"]}
    speeds = {"bits_per_s": 20_000_000_000, "link_bits_per_s": 10_000_000_000}
    assert {"name": "bond9", "mtu_bytes": 9000, **speeds, "address": "10.0.0.1"} in host["interfaces"]


@pytest.mark.parametrize(
    ("hosts", "left"),
    [
        ("n1,n9", "n1"),
        ("n1:1,n2:1,n9:1", "n1:1,n2:1"),
        ("n1:1,n9:1", None),
        ("n9", None),
    ],
)
def test_the_other_hosts_are_offered_if_they_have_room_for_two_ranks(
    hosts: str, left: str | None, tmp_path: Path
) -> None:
    error = HostsUnusable({"n9": ProgramFailed("no answer")}, parse_hosts(hosts), shell(tmp_path))
    assert error.remedy.partition("; ")[2] == ("" if left is None else f"without them: --hosts {left}")


def test_a_worker_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(HostsUnusable, match="here: the worker /nowhere/worker is not there"):
        preflight([Host("here")], [Path("/nowhere/worker")], shell(tmp_path))


def test_a_worker_is_copied_whole_or_not_at_all(tmp_path: Path) -> None:
    worker, there = tmp_path / "worker", tmp_path / "new folder" / "worker"
    worker.write_bytes(bytes(range(256)) * 1000)
    copy_worker(worker, ["sh", "-c", RECEIVE_SCRIPT, "sh", str(there)])
    assert there.read_bytes() == worker.read_bytes()
    assert there.stat().st_mode & 0o777 == 0o700
    assert list(there.parent.iterdir()) == [there]
    with pytest.raises(Unusable, match="what arrived is another file"):
        copy_worker(worker, ["sh", "-c", f"tr a b | sh -c '{RECEIVE_SCRIPT}' sh {tmp_path}/x"])
    with pytest.raises(Unusable, match="directory") as unwritable:
        copy_worker(worker, ["sh", "-c", RECEIVE_SCRIPT, "sh", "/proc/none/worker"])
    with pytest.raises(Unusable, match="route") as unreached:
        copy_worker(worker, ["sh", "-c", "echo no route >&2; exit 255"])
    assert unwritable.value.remedy.startswith("let XDG_CACHE_HOME name a folder")
    assert unreached.value.remedy == ""


def test_each_host_has_the_remedy_of_its_own_cause(tmp_path: Path) -> None:
    """An unwritable cache there is no reason to look for a way to the host."""
    n2 = Unusable("its cache is read-only", "let XDG_CACHE_HOME name another")
    causes = {"n2": n2, "n3": ProgramFailed("no answer"), "n4": n2}
    one, both = (HostsUnusable(each, parse_hosts("n[1-4]:1"), shell(tmp_path)) for each in ({"n2": n2}, causes))
    assert one.remedy == "let XDG_CACHE_HOME name another; without them: --hosts n[1,3-4]:1"
    assert both.remedy == "let XDG_CACHE_HOME name another; each must be reachable by `shell HOST` without a password"
    assert both.remedies == {"n2": n2.remedy, "n4": n2.remedy}


def test_hosts_with_one_cause_are_listed_together_though_it_names_each(tmp_path: Path) -> None:
    causes = {name: ProgramFailed(f"connect to host {name} port 22: refused") for name in ("n1", "n10", "n2")}
    text = str(HostsUnusable(causes, parse_hosts("n[1-9,10]"), shell(tmp_path)))
    assert "3 of 10 hosts cannot be used: n1, n10 and n2: connect to host HOST port 22: refused" in text


def test_a_copied_worker_that_may_not_run_is_named(tmp_path: Path) -> None:
    """As where its folder is mounted with noexec."""
    worker = tmp_path / "worker"
    worker.write_text("#!/bin/sh\n", encoding="ascii")
    with pytest.raises(HostsUnusable, match=f"here: the worker {worker} may not run there: is its folder mounted"):
        preflight([Host("here")], [worker], shell(tmp_path, f"chmod 600 {worker}\necho missing {worker}\n"))


@pytest.mark.parametrize("kind", ["a script", "a pipe", "a link"])
def test_a_worker_that_is_another_file_there_is_replaced_and_never_run(kind: str, tmp_path: Path, fake: Fakes) -> None:
    """The folder `here` is called `there` on the host."""
    worker = script(tmp_path / "here" / "worker", "exit 0")
    planted = script(tmp_path / "there" / "worker", f"echo >>'{tmp_path}/ran'")
    if kind != "a script":
        planted.unlink()
    if kind == "a pipe":
        os.mkfifo(planted)
    if kind == "a link":
        planted.symlink_to(script(tmp_path / "elsewhere", f"echo >>'{tmp_path}/ran'"))
    names = "| sed s,/here/,/there/,g"
    back = "| sed s,/there/,/here/,g"
    program = fake(tmp_path / "shell", "shift", f'sh -c "$(printf %s "$*" {names})" {back}')
    (host,) = preflight([Host("here")], [worker], starter(program))
    assert host["broken"] == {}
    assert planted.read_bytes() == worker.read_bytes()
    assert not planted.is_symlink()
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize(
    ("place", "mode"),
    [
        ("", 0o775),
        ("", 0o702),
        ("workers", 0o720),
        ("workers", 0o1777),
        ("workers/worker", 0o775),
        ("workers/worker", 0o702),
    ],
)
def test_a_worker_that_others_can_change_is_not_run(place: str, mode: int, tmp_path: Path) -> None:
    home = tmp_path / "its home"
    worker = script(home / "workers" / "worker", f"echo >>'{tmp_path}/ran'")
    (home / place).chmod(mode)
    with pytest.raises(HostsUnusable, match=f"here: others can change {home / place}, so its workers are not run; own"):
        preflight([Host("here")], [worker], shell(tmp_path))
    assert not (tmp_path / "ran").exists()
    if place != "workers/worker":
        with pytest.raises(Unusable, match=f"cannot be copied: others can change {home / place}"):
            copy_worker(worker, ["sh", "-c", RECEIVE_SCRIPT, "sh", str(home / "workers" / "copy")])
    (home / place).chmod(0o700)
    (host,) = preflight([Host("here")], [worker], shell(tmp_path))
    assert host["broken"] == {}
    assert (tmp_path / "ran").exists()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
@pytest.mark.parametrize("place", ["home", "home/workers", "home/workers/worker", "link"])
def test_a_worker_of_another_user_is_not_run(place: str, tmp_path: Path) -> None:
    script(tmp_path / "home" / "workers" / "worker", f"echo >>{tmp_path}/ran")
    (tmp_path / "link").symlink_to("home")
    os.chown(tmp_path / place, 12345, -1, follow_symlinks=False)
    with pytest.raises(HostsUnusable, match=f"here: others can change {tmp_path}/.*, so its workers are not run"):
        preflight([Host("here")], [tmp_path / "link" / "workers" / "worker"], shell(tmp_path))
    assert not (tmp_path / "ran").exists()


def test_a_host_of_another_kind_is_refused(tmp_path: Path) -> None:
    said = r"here: its CPU is vax, and this host's is \w+; measure hosts of one kind"
    with pytest.raises(HostsUnusable, match=said) as error:
        preflight([Host("here")], [], shell(tmp_path, "echo arch vax\n"))
    assert "reachable" not in str(error.value)


def test_libraries_are_asked_their_versions(tmp_path: Path, fake: Fakes) -> None:
    for name, said in (
        ("a", "mpiexec (OpenRTE) 4.1.4\nbugs 1.2"),
        ("b", "HYDRA build details:\n    Version:  5.0.2rc1"),
    ):
        fake(tmp_path / name, f"echo '{said}'")
    libraries = [make_library(name, "mpich", tmp_path / name) for name in ("a", "b", "c")]
    (host,) = preflight([Host("here")], [], shell(tmp_path), libraries)
    assert host["libraries"] == {"a": "4.1.4", "b": "5.0.2", "c": None}


def test_a_daemon_is_not_asked_its_version(tmp_path: Path) -> None:
    """PVM's takes the option for the name of a file, and stays."""
    daemon = script(tmp_path / "pvmd", f"touch {tmp_path}/started")
    (host,) = preflight([Host("here")], [], shell(tmp_path), [make_library("pvm@3.4.6", "pvm", daemon)])
    assert host["libraries"] == {}
    assert not (tmp_path / "started").exists()


def test_a_worker_that_does_not_run_is_told(tmp_path: Path, fake: Fakes) -> None:
    worker = fake(tmp_path / "worker", "echo first", "echo libmpi.so.12: cannot open >&2", "exit 127")
    (host,) = preflight([Host("here")], [worker], shell(tmp_path))
    assert host["broken"] == {str(worker): "libmpi.so.12: cannot open"}


def test_a_host_on_which_the_native_worker_does_not_run_is_named(tmp_path: Path, fake: Fakes) -> None:
    worker = fake(tmp_path / "worker", "exit 1")
    with pytest.raises(HostsUnusable, match=f"here: the worker {worker} does not run there: it fails without a word"):
        preflight([Host("here")], [worker], shell(tmp_path), native=worker)


def test_one_machine_with_two_names_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="here and there are one host"):
        preflight([Host("here"), Host("there")], [], shell(tmp_path))


def test_a_shell_that_fails_is_quoted(tmp_path: Path, fake: Fakes) -> None:
    program = fake(tmp_path / "shell", "echo 'no route' >&2", "exit 255")
    with pytest.raises(HostsUnusable, match="here: no route"):
        preflight([Host("here")], [], starter(program))


def test_where_no_other_host_can_be_reached_this_one_may_be_the_cause(tmp_path: Path) -> None:
    agent = script(tmp_path / "agent", 'if [ "$1" = here ]; then shift; exec sh -c "$*"; fi', "exit 9")
    starter = Starter((str(agent), "{hosts}", "{worker}"), is_shell=True)
    with pytest.raises(HostsUnusable, match=r"a and b: .* \(from here: this host may be the cause\)"):
        preflight([Host("here"), Host("a"), Host("b")], [], starter)
