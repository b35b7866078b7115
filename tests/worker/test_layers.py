"""UCX and libfabric: made-up installations, and real jobs with every transport of both, with faults."""

from __future__ import annotations

import os
import re
import signal
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path

import pytest
from tests.matrix import matrix
from tests.shared import Fakes, script
from tests.worker.made_up import on_path
from tests.worker.test_session import ENDLESS, nothing_stays, opened, soon

from hockney.errors import UsageError
from hockney.worker import libraries as module
from hockney.worker.build import build_worker
from hockney.worker.catalogue import load, matches
from hockney.worker.errors import LaunchFailed, WorkerDied, WorkerTimedOut
from hockney.worker.hosts import Host
from hockney.worker.launch import Job, StartCommand, launch
from hockney.worker.libraries import Library, find_ofis, find_ucxs
from hockney.worker.placement import Placement
from hockney.worker.session import WorkerSession

pytestmark = pytest.mark.timeout(300)  # ranks share CPUs with those of other tests
UCX, OFI = find_ucxs()[0], find_ofis()[0]
# The library, and the transport in its worker, by the name that users type.
TRANSPORTS = {f"{each.id}{variant}": (each, f"ucx{variant}") for each in UCX for variant in ("", ":am", ":put")}
TRANSPORTS |= {f"{each.id}{variant}": (each, f"ofi{variant}") for each in OFI for variant in ("", ":write")}
STALLS = "ofi@udp-rxd:write"
TRANSPORTS.pop(STALLS, None)
SHORT = [name for name in TRANSPORTS if name.startswith(("ucx", "ofi@shm", "ofi@tcp-rxm"))]
EVERY = pytest.mark.parametrize("name", matrix(TRANSPORTS, short=SHORT))
needs_ucx = pytest.mark.skipif(not UCX, reason="no UCX here: apt-get install libucx-dev ucx-utils")
needs_ofi = pytest.mark.skipif(not OFI, reason="no libfabric here: apt-get install libfabric-dev libfabric-bin")
PATTERNS = (
    *("pingpong", "oneway", "twoway", "alltoall", "outfarm", "multicast", "funnel", "barrier"),
    *("rounds", "ring", "prtt", "robpush", "robpull", "halo2d"),
)
HERE = """sh -c 'exec sh -c "$1"'"""  # a remote shell that leads to this host


def started(
    library: Library, transport: str, ranks: int = 2, *, hosts: tuple[Host, ...] = (), **variables: str
) -> StartCommand:
    """Ranks that share CPUs, so that no point takes its machine state."""
    asked = Job(build_worker(library.recipe), transport, ranks, Placement(hosts=hosts), oversubscribed=True)
    command = launch(asked, library, {**os.environ, **variables})
    return replace(command, environment={**command.environment, **variables})


def job(name: str, ranks: int = 2) -> AbstractContextManager[WorkerSession]:
    """A session that has said hello."""
    library, transport = TRANSPORTS[name]
    return opened(started(library, transport, ranks))


# ---- finding them ---------------------------------------------------------------------------------------------------


@pytest.fixture
def only(only: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Only libraries that a test makes are installed."""
    monkeypatch.setattr(module, "_USUAL_ROOT", only / "usr")
    return only


def install(root: Path, header: str, text: str, *, program: str = "", says: str = "") -> Path:
    """A made-up library in one folder. Returns its bin folder."""
    (root / "include" / header).parent.mkdir(parents=True)
    (root / "include" / header).write_text(text)
    (root / "lib").mkdir()
    script(root / "bin" / (program or "nothing"), f"cat <<'END'\n{says}\nEND")
    return root / "bin"


UCX_HEADER = "ucp/api/ucp_version.h", "#define UCP_API_MAJOR    1\n#define UCP_API_MINOR    17\n"
OFI_HEADER = "rdma/fabric.h", "#define FI_MAJOR_VERSION 1\n#define FI_MINOR_VERSION 22\n#define FI_REVISION_VERSION 0\n"


def test_none_at_all(only: Path) -> None:
    assert (find_ucxs(), find_ofis()) == (((), ()), ((), ()))


def test_a_ucx_in_the_usual_place_and_one_of_a_module(only: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(only / "usr", *UCX_HEADER)
    assert [(each.id, each.name) for each in find_ucxs()[0]] == [("ucx@1.17", "UCX 1.17")]
    on_path(monkeypatch, install(only / "mine", *UCX_HEADER, program="ucx_info"))
    (mine, usual), unusable = find_ucxs()
    assert (mine.id, usual.id, unusable) == ("ucx@1.17", "ucx@1.17~2", ())
    assert mine.recipe.flags == (f"-I{only}/mine/include",)
    assert mine.recipe.libraries == (f"-L{only}/mine/lib", f"-Wl,-rpath,{only}/mine/lib", "-lucp", "-lucs")


def test_the_providers_of_a_libfabric_have_names_that_a_shell_takes(
    only: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = ("shm", "tcp;ofi_rxm", "tcp;ofi_rxm", "UDP;ofi_rxd", "verbs;ofi_rxm")
    says = "\n".join(f"provider: {row}\n    type: FI_EP_RDM" for row in rows)
    on_path(monkeypatch, install(only / "mine", *OFI_HEADER, program="fi_info", says=says))
    providers, unusable = find_ofis()
    assert unusable == ()
    assert [(each.id, dict(each.environment)["HOCKNEY_OFI_PROVIDER"]) for each in providers] == [
        ("ofi@shm", "shm"),
        ("ofi@tcp-rxm", "tcp;ofi_rxm"),
        ("ofi@udp-rxd", "UDP;ofi_rxd"),
        ("ofi@verbs-rxm", "verbs;ofi_rxm"),
    ]
    assert providers[1].name == "libfabric 1.22, tcp;ofi_rxm"


def test_fi_info_is_asked_again_when_it_or_its_variables_change(
    only: Path, monkeypatch: pytest.MonkeyPatch, fake: Fakes
) -> None:
    program = install(only / "mine", *OFI_HEADER) / "fi_info"
    fake(program, "echo 'provider: shm'")
    on_path(monkeypatch, program.parent)
    for variable, starts in (("HOME", 1), ("HOME", 1), ("FI_TCP_IFACE", 2)):
        monkeypatch.setenv(variable, "lo")
        assert [each.id for each in find_ofis()[0]] == ["ofi@shm"]
        assert fake.starts(program) == starts
    fake(program, "echo 'provider: verbs;ofi_rxm'")
    assert [each.id for each in find_ofis()[0]] == ["ofi@verbs-rxm"]


def test_an_incomplete_installation_is_reported(only: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for program in ("ucx_info", "fi_info"):
        script(only / "bin" / program, "exit 0")
    on_path(monkeypatch, only / "bin")
    for find, why in (
        (find_ucxs, "its header ucp/api/ucp_version.h is not here (Debian and Ubuntu have it in libucx-dev)"),
        (find_ofis, "its header rdma/fabric.h is not here (Debian and Ubuntu have it in libfabric-dev)"),
    ):
        usable, (unusable,) = find()
        assert (usable, unusable.why) == ((), why)
    install(only / "usr", *OFI_HEADER)
    usable, (unusable,) = find_ofis()
    assert (usable, unusable.name) == ((), "ofi")
    assert "Debian and Ubuntu have it in libfabric-bin" in unusable.why


def test_a_provider_is_meant_by_its_whole_name() -> None:
    names = ("ofi@tcp", "ofi@tcp:write", "ofi@tcp-rxm", "ofi@shm")
    meant = {word: [name for name in names if matches(word, name)] for word in ("ofi", "ofi@tcp", "ofi@tcp*", "ofi:*")}
    assert meant == {
        "ofi": ["ofi@tcp", "ofi@tcp-rxm", "ofi@shm"],
        "ofi@tcp": ["ofi@tcp"],
        "ofi@tcp*": ["ofi@tcp", "ofi@tcp:write", "ofi@tcp-rxm"],
        "ofi:*": ["ofi@tcp:write"],
    }


# ---- real jobs ------------------------------------------------------------------------------------------------------


@needs_ucx
@needs_ofi
def test_both_are_here() -> None:
    assert {"ofi@shm", "ofi@tcp-rxm"} <= {library.id for library in OFI}
    transports = load(libraries=[*UCX, *OFI]).transports
    assert [name for name in TRANSPORTS if name not in transports] == []


@pytest.mark.skipif(not any(each.id == "ofi@udp-rxd" for each in OFI), reason="no udp;ofi_rxd here")
def test_a_provider_whose_writes_stall_has_none() -> None:
    catalogue = load([STALLS])
    assert STALLS not in {missing.name for missing in catalogue.to_get()}  # there is no way to get it
    assert "ofi@udp-rxd" in catalogue.transports
    why = f"^{STALLS} is not here: libfabric's udp;ofi_rxd stalls where two ranks write to each other; use ofi@tcp-rxm:"
    with pytest.raises(UsageError, match=why):
        catalogue.select([STALLS])


@needs_ofi
def test_an_unknown_provider_is_answered_with_those_that_are_here() -> None:
    with pytest.raises(UsageError, match=r"^unknown transport 'ofi@foo': known are .*ofi@tcp-rxm"):
        load(["ofi@foo"]).select(["ofi@foo"])


@EVERY
@pytest.mark.parametrize("ranks", matrix([2, 3], short=[3]))
def test_every_pattern_in_every_size(name: str, ranks: int) -> None:
    """Short ones, those of each protocol, and windows of them; and every byte is verified."""
    with job(name, ranks) as session:
        for pattern in PATTERNS:
            for size in (0, 8, 4104, 70_000):
                answer = session.measure(pattern, bytes=size, batch=2, samples=2, timeout_s=60)
                assert answer.verified is (pattern != "barrier"), (pattern, size)
        assert session.measure("pingpong", bytes=3_000_001, samples=2, timeout_s=60).verified
        for pattern in ("oneway", "twoway"):
            for size in (8, 5000, 300_000):
                answer = session.measure(pattern, bytes=size, samples=3, timeout_s=60, options=[("window", "64")])
                assert answer.verified, (pattern, size)
        assert session.measure("oneway", bytes=8, samples=3, timeout_s=60, options=[("window", "1024")]).verified
        for until in ("acked", "sent"):
            assert session.measure("oneway", bytes=300_000, samples=4, options=[("until", until)]).verified
        session.close()
    assert not session.channel.noise


@pytest.mark.parametrize(
    "name", matrix([name for name in TRANSPORTS if name.endswith((":put", ":write"))], short=SHORT)
)
def test_puts_and_gets(name: str) -> None:
    with job(name, 3) as session:
        for pattern in ("put", "get", "putpong", "putring", "putall", "getall", "putexchange"):
            for size in (8, 64, 4104, 100_000):
                ways = ("blocking",) if pattern in ("putpong", "putring") else ("blocking", "quiet")
                for sync in ways:
                    options = [("sync", sync)] if len(ways) > 1 else []
                    answer = session.measure(pattern, bytes=size, batch=2, samples=3, timeout_s=60, options=options)
                    assert answer.verified, (pattern, size, sync)


@needs_ucx
def test_messages_with_tags() -> None:
    with job(UCX[0].id) as session:
        for option in (("receive", "any-source"), ("receive", "any-tag"), ("unexpected", "30"), ("preposted", "30")):
            for size in (0, 70_000):
                assert session.measure("pingpong", bytes=size, samples=3, timeout_s=60, options=[option]).verified


@EVERY
@pytest.mark.parametrize("victim", [0, 1])
def test_a_killed_rank_is_named_and_nothing_stays(name: str, victim: int) -> None:
    library, transport = TRANSPORTS[name]
    files: set[str] = set()
    with WorkerSession(started(library, transport)) as session, nothing_stays(session):
        pids = [rank.pid for rank in session.hello().ranks]
        for pid in pids:
            files.update(re.findall(r" (/dev/shm/\S+)$", Path(f"/proc/{pid}/maps").read_text(), re.MULTILINE))
        killed = pytest.raises(WorkerDied, match=rf"rank {victim} was killed by SIGKILL")
        with soon(lambda: os.kill(pids[victim], signal.SIGKILL)), killed:
            session.measure("pingpong", bytes=8, batch=ENDLESS, timeout_s=60)
    assert bool(files) is name.startswith("ofi@shm")
    assert not [file for file in files if Path(file).exists()]


@EVERY
def test_a_wait_has_an_end(name: str) -> None:
    with job(name) as session, pytest.raises(WorkerTimedOut):
        session.measure("pingpong", bytes=70_000, batch=ENDLESS, timeout_s=1)


@EVERY
def test_hosts_meet_over_the_connection_of_the_launcher(name: str) -> None:
    """Two that are one machine; what differs from host to host, beds show."""
    hosts = (Host("localhost"), Host("127.0.0.1"))
    library, transport = TRANSPORTS[name]
    command = started(library, transport, 3, hosts=hosts, HOCKNEY_RSH=HERE)
    assert len(command.joins) == 1
    with opened(command) as session:
        for size in (0, 8, 70_000):
            assert session.measure("alltoall", bytes=size, samples=2, timeout_s=60).verified


# ---- what carries the bytes, and bad input --------------------------------------------------------------------------


@needs_ucx
@pytest.mark.parametrize(("tls", "used"), [("posix,self", "posix"), ("sysv,cma,self", "sysv cma"), ("tcp", "tcp/")])
def test_the_transports_that_ucx_has_chosen_are_named(tls: str, used: str) -> None:
    with WorkerSession(started(UCX[0], "ucx", UCX_TLS=tls)) as session:
        library = session.hello().library
        session.close()
    match = re.fullmatch(r"UCX (\d+\.\d+)\.\d+ \((.+)\)", library)
    assert match, library
    assert f"ucx@{match[1]}" == UCX[0].id
    assert match[2].startswith(used), library
    assert all(re.fullmatch(r"[a-z0-9_]+(/\S+)?", word) for word in match[2].split())


@needs_ofi
def test_the_provider_is_named() -> None:
    with job("ofi@shm") as session:
        assert session.hello().library.startswith("libfabric 1.")
        assert " shm (" in session.hello().library


@needs_ucx
def test_ucx_without_a_usable_transport_says_so_in_a_sentence() -> None:
    why = r"ucx: UCX has no usable transport of UCX_TLS=foo \(.+\); `ucx_info -d` lists those that are here"
    with pytest.raises(LaunchFailed, match=why), WorkerSession(started(UCX[0], "ucx", UCX_TLS="foo")) as session:
        session.hello()


@needs_ofi
def test_a_provider_that_does_not_start_says_so_in_a_sentence() -> None:
    shm = next(library for library in OFI if library.id == "ofi@shm")
    gone = replace(shm, environment=(("HOCKNEY_OFI_PROVIDER", "nonesuch"),))
    why = "ofi: the provider nonesuch does not offer messages by tag: No data available"
    with pytest.raises(LaunchFailed, match=why), WorkerSession(started(gone, "ofi")) as session:
        session.hello()
