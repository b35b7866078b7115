"""What a host says of itself, read without any host: tests/truth asks real ones."""

from __future__ import annotations

from pathlib import Path

import pytest

from hockney.errors import UsageError
from hockney.worker.hosts import Host
from hockney.worker.preflight import HostsUnusable, preflight
from hockney.worker.starters import Starter


def shell(tmp_path: Path, ending: str = "") -> Starter:
    """A remote shell that runs here whatever it is told, for any host; its answer ends with more lines."""
    program = tmp_path / "shell"
    program.write_text(f'#!/bin/sh\nshift\nsh -c "$*" | sed "/^end$/d"\n{ending}echo end\n', encoding="ascii")
    program.chmod(0o755)
    return starter(program)


def starter(program: Path) -> Starter:
    return Starter((str(program), "{hosts}", "{worker}"), is_shell=True)


def test_this_host_says_what_it_is(tmp_path: Path) -> None:
    (host,) = preflight([Host("here")], [Path("/bin/sh")], shell(tmp_path))
    assert host["name"] == "here"
    assert all(host[key] for key in ("hostname", "machine", "kernel", "cpus"))
    assert abs(host["clock_offset_s"]) <= host["clock_error_s"]


def test_an_interface_that_vanishes_while_it_is_read_is_left_out(tmp_path: Path) -> None:
    odd = "echo 'interface gone0  -1 '\necho 'interface eth9 9000 10000 10.0.0.1'\n"
    (host,) = preflight([Host("here")], [], shell(tmp_path, odd))
    assert "gone0" not in {each["name"] for each in host["interfaces"]}
    assert {"name": "eth9", "mtu_bytes": 9000, "bits_per_s": 10_000_000_000, "address": "10.0.0.1"} in host[
        "interfaces"
    ]


def test_a_worker_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(HostsUnusable, match="here: the worker /nowhere/worker is not there"):
        preflight([Host("here")], [Path("/nowhere/worker")], shell(tmp_path))


def test_one_machine_with_two_names_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="here and there are one machine"):
        preflight([Host("here"), Host("there")], [], shell(tmp_path))


def test_a_shell_that_fails_is_quoted(tmp_path: Path) -> None:
    program = tmp_path / "shell"
    program.write_text("#!/bin/sh\necho 'no route' >&2\nexit 255\n", encoding="ascii")
    program.chmod(0o755)
    with pytest.raises(HostsUnusable, match="here: no route"):
        preflight([Host("here")], [], starter(program))
