"""The benchmarks of OSU and IMB by their names."""

from __future__ import annotations

import json
import shlex
from collections import Counter
from functools import cache

import pytest

from hockney.cli import execute
from hockney.cli.run import run
from hockney.cli.run_options import find_suite, read_options
from hockney.errors import UsageError
from hockney.measure.plan import make_plan
from hockney.model import Point
from hockney.results.formats.osu import benchmarks
from hockney.suites import Suite
from hockney.suites.tools import benchmarks_in, load_named, name_of, tools
from hockney.worker.catalogue import Catalogue, load, split_name
from hockney.worker.points import RunOptions
from hockney.worker.words import as_pairs, check_words, each_of

_words = str.split
_BLOCKS = _words("allgather allgatherv alltoall alltoallv gather gatherv scatter scatterv bcast barrier")
_OF_OSU = [*_BLOCKS, "alltoallw", "allreduce", "reduce", "reduce_scatter", "reduce_scatter_block"]
_OF_IMB = [*_BLOCKS, "allreduce", "reduce", "reduce_scatter"]
_NEAR = [f"neighbor_{name}" for name in _OF_OSU if name.startswith(("allg", "allto"))]
_MT = [f"PingPongMT{which}" for which in ("", "SpecificSourceAnyTag", "AnySourceSpecificTag", "AnySourceAnyTag")]
# The names in the source trees of OSU 7.4 and IMB 2021.11; those of UPC and of files are below.
OSU = [
    *_words("latency bw bibw mbw_mr multi_lat latency_mt latency_mp partitioned_latency bw_fan_in bw_fan_out"),
    *_words("latency_persistent bw_persistent bibw_persistent init hello"),
    *(each for name in _OF_OSU for each in (name, f"i{name}")),
    *(f"{name}_persistent" for name in _OF_OSU if name != "reduce_scatter_block"),
    *(each for name in _NEAR for each in (name, f"i{name}")),
    *_words("put_latency put_bw put_bibw get_latency get_bw acc_latency get_acc_latency cas_latency fop_latency"),
    *(f"oshm_{name}" for name in _words("put put_nb put_mr put_mr_nb put_overlap get get_nb get_mr_nb atomics")),
    *(f"oshm_{name}" for name in _words("barrier broadcast collect fcollect reduce")),
    *(f"xccl_{name}" for name in _words("allgather allreduce alltoall bcast reduce reduce_scatter bibw bw latency")),
]
IMB = {
    "MPI1": [
        *(f"{kind}{source}" for kind in ("PingPong", "PingPing") for source in ("", "SpecificSource", "AnySource")),
        *_words("Sendrecv Exchange Uniband Biband Reduce_local Reduce_scatter_block"),
        *map(str.capitalize, _OF_IMB),
    ],
    "EXT": _words("Unidir_Put Unidir_Get Bidir_Put Bidir_Get Accumulate Window"),
    "RMA": [
        *_words("Unidir_put Unidir_get Bidir_put Bidir_get One_put_all One_get_all All_put_all All_get_all"),
        *_words("Put_local Put_all_local Get_local Get_all_local Exchange_put Exchange_get Truly_passive_put"),
        *_words("Accumulate Get_accumulate Fetch_and_op Compare_and_swap"),
    ],
    "NBC": [f"I{name}{pure}" for name in _OF_IMB for pure in ("", "_pure")],
    "MPI4": [f"{name.capitalize()}_persist{pure}" for name in _OF_IMB for pure in ("", "_pure")],
    "MT": [
        *_MT,
        *_words("PingPingMT SendRecvMT ExchangeMT UniBandMT BiBandMT BarrierMT BcastMT ReduceMT AllReduceMT"),
        *_words("ScatterMT ScattervMT ReduceScatterMT GatherMT GathervMT AllgatherMT AllgathervMT AlltoallMT"),
        "AlltoallvMT",
    ],
    "P2P": _words("PingPong PingPing Sendrecv_replace Unirandom Birandom Corandom Stencil2D Stencil3D"),
    "HALO": ["simple_halo"],
    "MPI1-GPU": [""],
}
_UPC = "all_barrier all_broadcast all_exchange all_gather all_gather_all all_reduce all_scatter memget memput"
_FILES = _words("S_Indv S_Expl P_Indv P_Expl P_Shared P_Priv C_Indv C_Expl C_Shared")
FAMILIES = {
    "osu_upc_": _words(_UPC),
    "osu_upcxx_": _words("allgather alltoall async_copy_get async_copy_put bcast gather reduce scatter"),
    "IMB-IO:": [each.replace("_", f"_{way}_") for each in _FILES for way in _words("Write Read IWrite IRead")],
    "IMB-RMA-GPU:": IMB["RMA"],
}


@cache
def libraries() -> Catalogue:
    """All MPIs and OpenSHMEMs of this machine, with their variants."""
    return load(["mpi", "mpi:*", "shmem"])


def points(suite: Suite, **asked: object) -> list[Point]:
    options = RunOptions(**{"oversubscribe": True, **asked})  # type: ignore[arg-type]
    return list(make_plan(suite, options, libraries(), cpus=8).points)


# ---- the data --------------------------------------------------------------------------------------------------------


def test_every_name_has_a_row() -> None:
    names = [f"IMB-{program}:{name}".rstrip(":") for program, of_program in IMB.items() for name in of_program]
    assert (len(OSU), len(names), *map(len, FAMILIES.values())) == (101, 134, 9, 8, 36, 19)
    known = [name for tool in tools().values() for name in (*tool.benchmarks, *tool.missing)]
    assert Counter(known) == Counter([*(f"osu_{name}" for name in OSU), *names, *(name[:-1] for name in FAMILIES)])


@pytest.mark.parametrize("family", FAMILIES)
def test_a_family_is_missing_with_one_reason(family: str) -> None:
    for name in (family[:-1], *(family + name for name in FAMILIES[family])):
        with pytest.raises(UsageError, match=f"^{name} is not in hockney: it (needs|measures) [^,]+$"):
            find_suite(name)


@pytest.mark.parametrize("tool", tools())
def test_every_row_that_runs_has_points(tool: str) -> None:
    """On a library that has what it needs; the words of all are right."""
    suite = load_named(tool)
    assert check_words(suite, "series", libraries()) == []
    plan = make_plan(suite, RunOptions(oversubscribe=True), libraries(), cpus=8)
    planned = {(point.pattern, point.options, split_name(point.transport)[2]) for point in plan.points}
    why = {(each.point.pattern, each.point.options): each.reason for each in plan.skipped}
    for name, row in tools()[tool].benchmarks.items():
        pattern, (word, *_) = libraries().pattern(row.pattern), row.transports or ("mpi",)
        for options in each_of(row.options):
            of_row = (row.pattern, as_pairs(pattern, options))
            here = libraries().missing_for(word) is None
            assert (*of_row, split_name(word)[2]) in planned or not here, (name, why.get(of_row))


def test_titles_name_one_benchmark() -> None:
    titles = [row.title for row in tools()["osu"].benchmarks.values() if row in benchmarks().values()]
    assert len({*titles}) == len(titles) == len(benchmarks()) > 50


@pytest.mark.parametrize("tool", tools())
def test_a_curve_has_the_name_of_its_benchmark(tool: str) -> None:
    """Of the few that measure the same it has all names."""
    rows = benchmarks_in(tool.upper())
    for name, row in rows.items():
        pattern, transport = libraries().pattern(row.pattern), (row.transports or ("mpi",))[0]
        for options in each_of(row.options):
            named = name_of(rows, row.pattern, transport, dict(as_pairs(pattern, options)))
            is_hidden = options.get("window") == "0"
            twin = f", {name}SpecificSource" if name in ("IMB-MPI1:PingPong", "IMB-MPI1:PingPing") else ""
            assert named in (name + twin + ", window=0" * is_hidden, f"{name.removesuffix('SpecificSource')}, {name}")


def test_what_a_command_changed_is_in_the_name() -> None:
    one, several = benchmarks_in("pingpong, osu_put_latency"), benchmarks_in("imb-ext")
    assert name_of(one, "put", "mpi@mpich-4.0:rma", {"sync": "flush", "window": "1"}) == "osu_put_latency"
    assert name_of(one, "put", "mpi@mpich-4.0:rma", {"sync": "flush"}) == "osu_put_latency without window=1"
    assert name_of(one, "pingpong", "mpi", {}) == ""
    assert name_of(several, "accumulate", "shmem", {"sync": "fence"}).startswith("IMB-EXT:Accumulate")
    near = benchmarks_in("osu_neighbor_alltoall,osu_ineighbor_alltoall")
    options = {"distances": "+1", "start": "barrier", "time": "mean"}
    assert name_of(near, "neighbor_alltoall", "tcp", options) == "osu_neighbor_alltoall without ny=1"
    assert benchmarks_in("quick") == {}


def test_no_row_has_an_option_with_the_own_value_of_its_pattern() -> None:
    """`without` in a name would be wrong; of several windows the last is that."""
    for tool in tools().values():
        for name, row in tool.benchmarks.items():
            for key, values in row.options.items():
                default, several = libraries().pattern(row.pattern).option(key).default, values.split(",")
                assert several != [default], (name, key)
                assert key != "window" or default not in several or several[-1] == default, name


# ---- running them ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("word", "name"),
    [
        ("OSU_Allreduce", "osu_allreduce"),
        ("IMB:PingPong", "IMB-MPI1:PingPong"),
        ("imb-p2p:pingpong", "IMB-P2P:PingPong"),
        ("IMB:Unidir_put", "IMB-RMA:Unidir_put"),
        ("IMB:Unidir_Put", "IMB-EXT:Unidir_Put"),
    ],
)
def test_words_for_a_benchmark(word: str, name: str) -> None:
    tool = next(tool for tool in tools().values() if name in tool.benchmarks)
    assert find_suite(word).series == (tool.benchmarks[name],)
    assert find_suite(word).transports == ("mpi",)


def test_names_and_patterns_are_mixed() -> None:
    suite = find_suite("osu_allgather,pingpong")
    assert [series.pattern for series in suite.series] == ["allgather", "pingpong"]
    assert (suite.name, suite.time_s) == ("osu_allgather,pingpong", 120.0)
    assert suite.series[0].bytes[-1] == 1 << 20


def test_options_of_the_command_replace_those_of_a_name() -> None:
    found = points(find_suite("osu_allreduce"), sizes=(8,), options=(("dtype", "float64"), ("start", "window")))
    assert {point.options for point in found} == {(("dtype", "float64"), ("start", "window"), ("time", "mean"))}


def test_a_library_keeps_the_variant() -> None:
    suite = find_suite("osu_latency_persistent")
    every = {point.transport for point in points(suite, sizes=(8,))}
    assert every
    assert {split_name(name)[2] for name in every} == {"persistent"}
    library = split_name(min(every))[1]
    assert {point.transport for point in points(suite, sizes=(8,), transports=(f"mpi@{library}",))} == {min(every)}
    with pytest.raises(UsageError, match="no series of osu_latency_persistent is for tcp: name one of mpi:persistent"):
        make_plan(suite, RunOptions(transports=("tcp",)), load(["tcp", "mpi:persistent"]), cpus=8)
    assert {point.transport for point in points(find_suite("osu_latency"), transports=("shm",))} == {"shm"}


def test_on_hosts_all_take_part() -> None:
    assert find_suite("osu_allreduce", on_hosts=True).series[0].ranks == ()
    assert find_suite("osu_latency", on_hosts=True).series[0].ranks == (2,)
    assert find_suite("osu_neighbor_alltoall", on_hosts=True).series[0].ranks == (4,)


@pytest.mark.parametrize(
    ("word", "sentence"),
    [
        ("osu_alreduce", "unknown benchmark of OSU micro-benchmarks 7.4 'osu_alreduce': did you mean 'osu_allreduce'?"),
        ("osu_allreduce,osu_bx", "'osu_bx': did you mean 'osu_bw'?"),
        ("IMB-MPI1:Alltoal", "'IMB-MPI1:Alltoal': did you mean 'IMB-MPI1:Alltoall'?"),
        ("IMB-MPI2", "unknown benchmark of Intel MPI Benchmarks 2021.11 'IMB-MPI2': did you mean 'IMB-MPI4'?"),
        ("osu_xccl_bw", "osu_xccl_bw is not in hockney: it needs NCCL"),
        ("IMB-MPI1-GPU", "IMB-MPI1-GPU is not in hockney: it needs memory of GPUs"),
        ("IMB:bidir_put", "IMB:bidir_put is IMB-EXT:Bidir_Put or IMB-RMA:Bidir_put: write one of them"),
    ],
)
def test_a_wrong_name_gets_the_nearest(word: str, sentence: str) -> None:
    with pytest.raises(UsageError) as caught:
        find_suite(word)
    assert sentence in str(caught.value)


def test_a_whole_tool_is_short() -> None:
    """All of OSU in 5 minutes, to 5 %."""
    suite = find_suite("osu")
    assert suite == load_named("osu")
    assert suite.time_s <= 300
    assert suite.precision == 0.05
    assert len(suite.series) == len(tools()["osu"].benchmarks)
    assert max(len(series.bytes) for series in suite.series) == 4
    program = find_suite("imb-ext")
    assert [series.pattern for series in program.series].count("put") == 1
    assert len(program.series) == len(IMB["EXT"])
    assert program.time_s == 18


# ---- the lists -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("tool", tools())
def test_the_list_has_what_a_name_measures_or_a_reason(
    tool: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert execute(["list", tool, "--json"]) == 0
    listed = json.loads(capsys.readouterr().out)[tool]
    assert len(listed) == {"osu": 103, "imb": 136}[tool]
    for entry in listed:
        assert entry["ready"] == ("command" in entry) == (entry["why"] is None)
    for name, command in ((entry["name"], shlex.split(entry["command"])) for entry in listed if entry["ready"]):
        words = run.make_context(command[1], command[2:]).params
        (pattern,), asked, (row,) = words["what"], read_options(words), find_suite(name.swapcase()).series
        said = (pattern, dict(asked.options), asked.transports, asked.ranks or (2,))
        assert said == (row.pattern, row.options, row.transports or ("mpi",), row.ranks), name
    monkeypatch.setenv("COLUMNS", "100")
    assert execute(["list", tool]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= 100
    assert {entry["name"] for entry in listed} <= {line.partition(" ")[0] for line in lines}
