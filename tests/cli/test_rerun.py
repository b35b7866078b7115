"""What is advised for more launches can be typed as it stands."""

from __future__ import annotations

import shlex
import socket
from dataclasses import replace

import click
import pytest
from tests.builders import make_info

from hockney import machine
from hockney.cli import rerun as again
from hockney.cli.commands import hockney
from hockney.cli.rerun import more_launches


@pytest.mark.parametrize(
    ("command", "said"),
    [
        (
            "hockney run pingpong -t 'mpi@a b' --launches 5 --time 2m --label x --store r.db",
            "measure run 1 anew: `hockney run pingpong -t 'mpi@a b' --launches 10 --time 240s --label now`",
        ),
        (
            "hockney quick --time=2m -l x",
            "measure run 1 anew: `hockney run quick --launches 10 --time 240s --label now`",
        ),
        (
            "hockney check --baseline x",
            "check again with a longer `--patience`, which makes room for more launches",
        ),
        (
            "hockney --store r.db run pingpong -t shm",
            "measure run 1 anew: `hockney run pingpong -t shm --launches 10 --time 240s --label now`",
        ),
        (
            "hockney --json quick",
            "measure run 1 anew: `hockney run quick --launches 10 --time 240s --label now`",
        ),
        (
            "hockney run -t shm -- pingpong",
            "measure run 1 anew: `hockney run -t shm pingpong --launches 10 --time 240s --label now`",
        ),
        ("hockney check --expect e.toml", "check again with `launches = 10` in the file of what is expected"),
        ("", "measure run 1 anew with `--launches 10`"),
        ("Bob's run", "measure run 1 anew with `--launches 10`"),
    ],
)
def test_more_launches_are_taken_by_the_command_of_the_run(command: str, said: str) -> None:
    info = replace(make_info("now"), command=command, plan={"time_s": 120.0, "launches": 5})
    assert more_launches(1, info, 10) == said
    if "hockney run" in said:
        _, name, *arguments = shlex.split(said.split("`")[1])
        found = hockney.get_command(click.Context(hockney), name)
        assert found is not None
        assert found.make_context(name, arguments).params["launches"] == "10"


@pytest.mark.parametrize("name", ["--json", "--"])
def test_a_label_that_looks_like_an_option_is_one_word(name: str) -> None:
    info = replace(make_info(), command=f"hockney run pingpong --label {name} -t shm")
    assert "`hockney run pingpong -t shm --launches 2`" in more_launches(1, info, 2)


def test_an_argument_that_looks_like_an_option_stays_one() -> None:
    info = replace(make_info(), command="hockney run -t shm -- -odd.toml")
    assert "`hockney run -t shm --launches 2 -- -odd.toml`" in more_launches(1, info, 2)


def test_a_check_that_was_stopped_is_made_again_and_not_gone_on_with() -> None:
    for command, said in (("--expect e.toml", ", to the end"), ("--baseline x", " with a longer `--patience`")):
        info = replace(make_info(), command=f"hockney check {command}", plan={"launches": 10})
        assert more_launches(3, info, 10).startswith(f"check again{said}")


def test_a_run_that_has_not_made_its_launches_is_to_go_on() -> None:
    info = replace(make_info(), command="hockney run pingpong", plan={"launches": 10})
    assert more_launches(3, info, 10) == "go on with run 3: `hockney run --resume 3`"


def test_variables_that_the_run_had_are_named_where_they_are_not_set_now(monkeypatch: pytest.MonkeyPatch) -> None:
    facts = {"environment": {"UCX_RNDV_THRESH": "1024", "UCX_TLS": "self,posix"}}
    info = replace(make_info(), command="hockney run pingpong", facts=facts)
    monkeypatch.delenv("UCX_RNDV_THRESH", raising=False)
    monkeypatch.setenv("UCX_TLS", "self,posix")
    assert more_launches(1, info, 6).startswith("measure run 1 anew: `UCX_RNDV_THRESH=1024 hockney run")


def test_variables_that_came_since_are_taken_away(monkeypatch: pytest.MonkeyPatch) -> None:
    facts = {"environment": {"UCX_TLS": "self,posix"}}
    for name, value in (("UCX_TLS", "tcp"), ("OMPI_MCA_btl", "self,tcp"), ("LD_LIBRARY_PATH", "/x"), ("OTHER", "1")):
        monkeypatch.setenv(name, value)
    assert again.as_then(facts) == "env -u OMPI_MCA_btl UCX_TLS=self,posix "
    assert again.as_then({}) == ""  # a run that doesn't say what it had


@pytest.mark.parametrize(("then", "before"), [("0", "taskset -c 0 "), ("0-3", ""), ("8-9", ""), (None, "")])
def test_fewer_cpus_that_the_run_had_are_given_to_it_again(
    then: str | None, before: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(machine, "usable_cpus", lambda: (0, 1, 2, 3))
    facts = {"limits": {"usable_cpus": then}, "hostname": socket.gethostname()}
    info = replace(make_info(), command="hockney run pingpong", facts=facts)
    assert again.going_on(3, facts) == f"`{before}hockney run --resume 3`"
    assert again.as_then({**facts, "hostname": "another.machine"}) == ""
    assert f"anew: `{before}hockney run pingpong" in more_launches(1, info, 6)
