"""A model as a platform of SimGrid: an MPI program takes as long there as hockney's patterns on the model."""

from __future__ import annotations

import shutil
import statistics
import subprocess
from collections.abc import Sequence
from pathlib import Path
from xml.etree import ElementTree

import pytest
from contrib.simgrid.simgrid_platform import main, platform_of
from tests.shared import finished

from hockney.analysis.predict.fit import Fit, fit_machine
from hockney.cli import execute
from hockney.errors import UsageError
from hockney.measure.pool import measurement_of
from hockney.model import Point
from hockney.results.runs import open_results
from hockney.worker.build import Recipe, build_worker
from hockney.worker.launch import Job, launch
from hockney.worker.machine_model import Model, compiled, load_model
from hockney.worker.session import WorkerSession

NEEDS_SMPI = pytest.mark.skipif(shutil.which("smpirun") is None, reason="not here: smpirun (scripts/runtimes)")
SETTINGS = {
    "smpi/simulate-computation": "no",
    "smpi/host-speed": "1Gf",
    "smpi/wtime": "0",
    "smpi/privatization": "no",  # the program has no globals
    "surf/precision": "1e-12",
}
SWITCH = 'kind = "switch"\nnodes = 8'
# Of a network, and of shared memory: costs of the CPU, gaps, a rendezvous, a latency that grows with the size.
NETWORK = """
[[class.all.segment]]
up_to_bytes = 4096
send_cpu = { fixed_ns = 500, per_byte_ns = 0.1 }
recv_cpu = { fixed_ns = 700, per_byte_ns = 0.2 }
latency = 12000
transfer = { fixed_ns = 900, per_byte_ns = 8.5 }
out = { fixed_ns = 900, per_byte_ns = 8.5 }
in = { fixed_ns = 900, per_byte_ns = 8.5 }
source = "made up"
[[class.all.segment]]
protocol = "rendezvous"
latency = 20000
transfer = { fixed_ns = 3000, per_byte_ns = 8 }
out = { fixed_ns = 3000, per_byte_ns = 8 }
in = { fixed_ns = 3000, per_byte_ns = 8 }
source = "made up"
"""
MEMORY = """
[[class.all.segment]]
up_to_bytes = 8192
send_cpu = 40
recv_cpu = 60
latency = { fixed_ns = 400, per_byte_ns = 0.05 }
transfer = { fixed_ns = 50, per_byte_ns = 0.1 }
out = { fixed_ns = 50, per_byte_ns = 0.1 }
in = { fixed_ns = 50, per_byte_ns = 0.1 }
source = "made up"
[[class.all.segment]]
send_cpu = 100
recv_cpu = 100
latency = 900
transfer = { per_byte_ns = 0.09 }
out = { per_byte_ns = 0.09 }
in = { per_byte_ns = 0.09 }
source = "made up"
"""
SIZES = (0, 8, 104, 1000, 4096, 5000, 40_000, 1_000_000)
PATTERNS = (
    ("pingpong", ()),
    ("oneway", (("window", "16"),)),
    ("oneway", ()),
    ("ring", ()),
    ("alltoall", (("algorithm", "pairwise"),)),
)
POINTS = [
    Point("", pattern, 8, size, options)
    for pattern, options in PATTERNS
    for size in SIZES
    if size or pattern != "alltoall"
]


def model_of(folder: Path, costs: str, topology: str = SWITCH, more: str = "") -> Model:
    path = folder / "machine.toml"
    path.write_text(f'title = "made up"\n{more}\n[topology]\n{topology}\nsource = "made up"\n{costs}', encoding="utf-8")
    return load_model(str(path))


@pytest.fixture(scope="session")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("simgrid") / "patterns"
    source = Path(__file__).with_name("simgrid.c")
    subprocess.run(["smpicc", "-O1", "-o", str(path), str(source)], check=True, timeout=60)
    return path


def times_in_simgrid(program: Path, folder: Path, model: Model, points: Sequence[Point]) -> list[float]:
    platform = folder / "platform.xml"
    platform.write_text(platform_of(model).xml, encoding="utf-8")
    words = []
    for point in points:
        known = {"source": "0", "target": "1", "window": "1", **dict(point.options)}
        words += [point.pattern, str(point.bytes), *(known[name] for name in ("source", "target", "window"))]
    settings = (f"--cfg={name}:{value}" for name, value in SETTINGS.items())
    start = ["smpirun", "-np", str(points[0].ranks), "-platform", str(platform), *settings]
    done = finished([*start, str(program), *words])
    assert done.returncode == 0, done.stderr
    return [float(line) for line in done.stdout.split()]


def times_on_model(folder: Path, model: Model, points: Sequence[Point]) -> list[float]:
    lines, ranks = folder / "lines", points[0].ranks
    lines.write_text(compiled(model, ranks), encoding="utf-8")
    times = []
    with WorkerSession(launch(Job(build_worker(Recipe("sim")), "sim", ranks, model=lines))) as session:
        session.hello()
        for point in points:
            answer = session.measure(
                point.pattern, bytes=point.bytes, batch=10, samples=3, warmup=2, verify=False, options=point.options
            )
            times.append(statistics.median(measurement_of(point, answer).times_ns()))
    return times


def differing(program: Path, folder: Path, model: Model, points: Sequence[Point]) -> dict[str, float]:
    """Points whose times on the model and in SimGrid differ by more than 5 %, and by how much."""
    expected, seen = times_on_model(folder, model, points), times_in_simgrid(program, folder, model, points)
    parts = {str(point): b / a - 1 for point, a, b in zip(points, expected, seen, strict=True)}
    return {name: round(part, 3) for name, part in parts.items() if abs(part) > 0.05}


@NEEDS_SMPI
@pytest.mark.parametrize(
    "costs",
    [NETWORK, pytest.param(MEMORY, marks=pytest.mark.full)],  # a fitted machine, below, has the latter, too
    ids=["network", "memory"],
)
def test_both_engines_agree_without_contention(program: Path, tmp_path: Path, costs: str) -> None:
    assert differing(program, tmp_path, model_of(tmp_path, costs), POINTS) == {}


@NEEDS_SMPI
def test_a_fitted_machine(program: Path, tmp_path: Path) -> None:
    store = str(tmp_path / "r.db")
    model_of(tmp_path, MEMORY)
    assert execute(["run", "basics", "--machine", str(tmp_path / "machine.toml"), "--store", store, "--quiet"]) == 0
    with open_results(store) as results:
        run = results.run()
        fit = fit_machine(run, run.series[0].point.transport)
        assert isinstance(fit, Fit)
        fitted = Model.from_content("fitted", fit.content(8))
    assert differing(program, tmp_path, fitted, POINTS) == {}


@NEEDS_SMPI
@pytest.mark.parametrize(
    ("topology", "ranks"),
    [
        ('kind = "torus"\ndimensions = [4, 3]', 12),
        ('kind = "mesh"\ndimensions = [4, 3]', 12),
        ('kind = "fat tree"\ndown = [4, 3]\nup = [1, 2]', 12),
        ('kind = "hierarchy"\nlevel = [{ name = "host", holds = 4 }, { name = "rack", holds = 3 }]', 12),
        ('kind = "clos"\nboards = 3\nnodes_per_board = 4\ncrossbars = 2', 12),
        ('kind = "graph"\nnodes = 4\nswitches = 2\nedges = [[0, 4], [1, 4], [2, 5], [3, 5], [4, 5]]', 4),
        ('kind = "switch"\nnodes = 12', 12),
    ],
    ids=lambda value: value.split('"')[1] if isinstance(value, str) else "",
)
def test_every_pair_has_its_way(program: Path, tmp_path: Path, topology: str, ranks: int) -> None:
    link = '[[link]]\nbytes_per_s = 1e8\nlatency_ns = 3000\nsource = "made up"\n'
    model = model_of(tmp_path, link + NETWORK, topology)
    points = [
        Point("", "pingpong", ranks, size, (("source", str(source)), ("target", str(target))))
        for size in (8, 1_000_000)
        for source, target in ((0, 1), (0, ranks - 1), (1, ranks // 2))
    ]
    assert differing(program, tmp_path, model, points) == {}


@pytest.mark.parametrize(
    ("topology", "costs", "why"),
    [
        (
            'kind = "dragonfly"\ngroups = 2\nrouters_per_group = 2\nnodes_per_router = 1\nglobal_links = 1',
            NETWORK,
            "topology: its shortest routes are not those of a dragonfly",
        ),
        (
            'kind = "graph"\nnodes = 2\nswitches = 1\nedges = [[0, 1], [0, 2], [2, 1]]\nvia = [[0, 2, 1]]',
            NETWORK,
            "topology: its shortest routes are not those of a graph with given routes",
        ),
        (
            SWITCH,
            NETWORK.replace("rendezvous", "synchronous"),
            "class.all.segment[2]: SMPI has no synchronous messages",
        ),
        (
            SWITCH,
            NETWORK.replace("latency = 12000", "packet_bytes = 32\nlatency = { per_packet_ns = 9 }"),
            "class.all.segment[1]: SMPI has no costs per packet",
        ),
        (
            SWITCH,
            '[class.near]\nswitches = 1\nsegment = [{ latency = 1, source = "made up" }]\n' + NETWORK,
            "class: SMPI has the same costs for all pairs, and this model 2 classes",
        ),
        ('kind = "switch"\nnodes = 5000', NETWORK, "ranks: at most 4096, not 5000; ask for fewer"),
    ],
)
def test_models_that_simgrid_cannot_express(tmp_path: Path, topology: str, costs: str, why: str) -> None:
    with pytest.raises(UsageError) as refusal:
        platform_of(model_of(tmp_path, costs, topology))
    assert str(refusal.value) == f"{tmp_path / 'machine.toml'} cannot be a platform of SimGrid: {why}"


@pytest.mark.parametrize(
    "costs",
    ["latency = 0", "latency = 5\nout = { fixed_ns = 1e6, per_byte_ns = 9 }", "send_cpu = { per_byte_ns = 1e-9 }"],
    ids=["nothing", "gap", "tiny"],
)
def test_odd_costs_make_a_platform(tmp_path: Path, costs: str) -> None:
    """A port needs a bandwidth for any costs of messages, and no latency is below zero."""
    title = "<a> -- b --->\u0007"
    model = model_of(tmp_path, f'[[class.all.segment]]\nsource = "made up"\n{costs}', 'kind = "switch"\nnodes = 2')
    model = Model.from_content(title, {**model.content, "title": title})
    platform = ElementTree.fromstring(platform_of(model).xml)
    for link in platform.iter("link"):
        assert float(link.attrib["bandwidth"].removesuffix("Bps")) > 0
        assert float(link.attrib["latency"].removesuffix("ns")) >= 0
    settings = {prop.attrib["id"]: prop.attrib["value"] for prop in platform.iter("prop")}
    for name in ("smpi/lat-factor", "smpi/bw-factor"):
        assert all(0 <= float(part.partition(":")[2]) < 1e12 for part in settings[name].split(";"))


def test_the_work_for_a_message_that_is_not_sent_eagerly_is_latency(tmp_path: Path) -> None:
    """SMPI charges no CPU for it."""
    busy = "send_cpu = 100\nrecv_cpu = { fixed_ns = 300, per_byte_ns = 0.5 }\nhandshake = 1000\nlatency = 20000"
    late = "latency = { fixed_ns = 21400, per_byte_ns = 0.5 }"
    platforms = [
        platform_of(model_of(tmp_path, NETWORK.replace("latency = 20000", costs))).xml for costs in (busy, late)
    ]
    assert platforms[0] == platforms[1]


@pytest.mark.parametrize(
    ("nodes", "ranks_per_node", "classes"), [(4, 1, ["all"]), (1, 2, ["near"]), (4, 2, ["near", "all"])]
)
def test_costs_within_a_node_count_where_ranks_share_one(
    nodes: int, ranks_per_node: int, classes: list[str], tmp_path: Path
) -> None:
    """SMPI has one class for all pairs, so the other must belong to none."""
    topology, more = f'kind = "switch"\nnodes = {nodes}', f"ranks_per_node = {ranks_per_node}"
    near = MEMORY.replace("class.all", "class.near")
    both = model_of(tmp_path, f"[class.near]\nsame_node = true\n{near}{NETWORK}", topology, more)
    if len(classes) > 1:
        with pytest.raises(UsageError, match="SMPI has the same costs for all pairs, and this model 2 classes"):
            platform_of(both)
    else:
        costs = {"near": MEMORY, "all": NETWORK}[classes[0]]
        assert platform_of(both).xml == platform_of(model_of(tmp_path, costs, topology, more)).xml


def test_omissions_are_named(tmp_path: Path) -> None:
    more = 'ranks_per_node = 2\n[noise]\nlaw = "lognormal"\nsigma = 0.1\nsource = "made up"'
    late = NETWORK.replace("latency = 12000", "latency = 12000\nlate = 10")
    assert platform_of(model_of(tmp_path, NETWORK)).left_out == ()
    assert platform_of(model_of(tmp_path, late, more=more)).left_out == ("noise", "ranks_per_node", "class.late")


@pytest.mark.parametrize(
    ("key", "is_omitted"),
    [
        ("flops_per_s = 2e9", False),
        ("compute_factor = 1", False),
        ("compute_factor = 1.2", True),
        ("compute_fixed_ns = 5", True),
        ("slice_ns = 1e6", True),
    ],
)
def test_a_cpu_that_simgrid_has_not_is_an_omission(key: str, is_omitted: bool, tmp_path: Path) -> None:
    cpu = f'[cpu]\n{key}\nsource = "made up"'
    assert platform_of(model_of(tmp_path, NETWORK, more=cpu)).left_out == ("cpu",) * is_omitted


def test_hosts_sort_as_ranks_do(tmp_path: Path) -> None:
    """Without a file of hosts, SMPI places ranks in the order of names."""
    model = model_of(
        tmp_path, NETWORK, 'kind = "torus"\ndimensions = [4, 3]', '[cpu]\nflops_per_s = 2e9\nsource = "made up"'
    )
    hosts = list(ElementTree.fromstring(platform_of(model).xml).iter("host"))
    names = [host.attrib["id"] for host in hosts]
    assert names == sorted(names)
    assert len(names) == 12
    assert {host.attrib["speed"] for host in hosts} == {"2e+09f"}


def test_the_program_writes_a_platform_or_says_why_not(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.argv", ["simgrid_platform.py", "paragon"])
    assert main() == 0
    platform = capsys.readouterr()
    assert [host.attrib["id"] for host in ElementTree.fromstring(platform.out).iter("host")] == ["rank-0", "rank-1"]
    assert platform.err == "SimGrid has nothing for class.late: left out\n"
    monkeypatch.setattr("sys.argv", ["simgrid_platform.py", "nowhere"])
    assert main() == 2
    assert capsys.readouterr().err.startswith("simgrid_platform.py: ")
