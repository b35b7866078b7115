"""Models of machines: a file becomes the worker's lines, or one sentence for each error."""

from __future__ import annotations

from pathlib import Path

import pytest

from hockney.errors import UsageError
from hockney.worker.machine_model import Model, builtin_models, compiled, grid_edges, load_model, why_unfit

SWITCH = 'title = "a machine"\n[topology]\nkind = "switch"\nnodes = 4\nsource = "made up"\n'
LINK = '[[link]]\nbytes_per_s = 125e6\nsource = "s"\n'
BUFFER = '[switch]\nbuffer_bytes = 65536\nsource = "s"\n'
TCP = '[tcp]\nsource = "s"\n'
STREAM = '[stream]\nbuffer_bytes = 64\nwrite = 1\nread = 1\npoll = 0\ndrain = 1\nack = 1\nsource = "s"\n'
FAR = '[class.far]\nswitches = 99\n[[class.far.segment]]\nlatency = 100\nsource = "made up"\n'
COSTS = '[class.all]\n[[class.all.segment]]\nlatency = 100\nsource = "made up"\n'


def model_of(folder: Path, text: str, variant: str = "") -> Model:
    path = folder / "machine.toml"
    path.write_text(text, encoding="utf-8")
    return load_model(str(path), variant)


def topology(words: str) -> str:
    return f'title = "a machine"\n[topology]\nsource = "made up"\n{words}\n{COSTS}'


def lines(folder: Path, text: str, ranks: int = 2, variant: str = "") -> list[str]:
    return compiled(model_of(folder, text, variant), ranks).splitlines()


@pytest.mark.parametrize(
    ("words", "nodes", "expected"),
    [
        ('kind = "switch"\nnodes = 5', 5, ["topology switch"]),
        ('kind = "fat tree"\ndown = [4, 3]\nup = [1, 2]', 12, ["topology tree 2 down:4,3 width:1,2"]),
        (
            'kind = "clos"\nboards = 8\nnodes_per_board = 7\ncrossbars = 6',
            56,
            ["topology tree 2 down:7,8 width:1,6"],
        ),
        (
            'kind = "hierarchy"\nlevel = [{ name = "socket", holds = 8 }, { name = "host", holds = 2 }]',
            16,
            ["topology tree 2 down:8,2 width:1,1"],
        ),
        ('kind = "torus"\ndimensions = [4, 2, 2]\nturn_ns = 13.5', 16, ["topology torus 4 2 2", "turn 13.5"]),
        (
            'kind = "mesh"\ndimensions = [2, 2]',
            4,
            [
                *("topology graph 4 4", "edge 0 4", "edge 1 5", "edge 2 6", "edge 3 7"),
                *("edge 4 5", "edge 6 7", "edge 4 6", "edge 5 7"),
            ],
        ),
        (
            'kind = "dragonfly"\ngroups = 9\nrouters_per_group = 4\nnodes_per_router = 2\nglobal_links = 2',
            72,
            ["topology dragonfly 9 4 2 2"],
        ),
        (
            'kind = "graph"\nnodes = 2\nswitches = 2\nedges = [[0, 2], [2, 1], [2, 3], [3, 1]]\nvia = [[0, 2, 3, 1]]',
            2,
            ["topology graph 2 2", "edge 0 2", "edge 2 1", "edge 2 3", "edge 3 1", "via 0 1 2 3"],
        ),
    ],
)
def test_a_topology_becomes_lines(words: str, nodes: int, expected: list[str], tmp_path: Path) -> None:
    text = lines(tmp_path, topology(words))
    at = text.index(expected[0])
    assert text[at : at + len(expected)] == expected
    assert not [line for line in text if line.startswith(("edge", "via", "turn")) and line not in expected]
    assert load_model(str(tmp_path / "machine.toml")).machine.topology.shape.nodes == nodes


def test_costs_become_lines(tmp_path: Path) -> None:
    text = SWITCH + (
        '[cpu]\nper_node = 2\nflops_per_s = 5e7\nslice_ns = 256e3\nsource = "s"\n'
        "compute_fixed_ns = 8700\ncompute_factor = 1.153\n"
        '[noise]\nlaw = "lognormal"\nsigma = 0.02\nsource = "s"\n'
        '[[link]]\nbytes_per_s = 4.7e6\nlatency_ns = 1000\nsource = "s"\n'
        "[class.near]\nsame_node = true\n"
        '[[class.near.segment]]\nup_to_bytes = 32\npacket_bytes = 32\nin = { per_packet_ns = 2.5 }\nsource = "s"\n'
        '[[class.near.segment]]\nprotocol = "rendezvous"\nhandshake = 7\nsource = "s"\n'
        '[class.far]\nsegment = [{ send_cpu = { fixed_ns = 1, per_byte_ns = 0.25 }, source = "s" }]\n'
        '[put.all]\nsegment = [{ latency = 5, source = "s" }]\n'
        '[barrier]\nfixed_ns = 3\nper_round_ns = 4\nsource = "s"\n'
    )
    assert lines(tmp_path, text) == [
        "hockney-model 1",
        "name machine",
        "ranks 4",
        "ranks_per_node 1",
        "node_cpus 2",
        "slice_ns 256000",
        "compute 8700 1.153",
        "flops_per_s 50000000",
        "noise lognormal 0.02",
        "topology switch",
        "link 0 4700000 1000",
        "class near same_node",
        "segment 32 eager 32",
        "cost in 0 0 2.5",
        "segment 0 rendezvous 0",
        "cost handshake 7 0 0",
        "class far any",
        "segment 0 eager 0",
        "cost send_cpu 1 0.25 0",
        "class put:all any",
        "segment 0 eager 0",
        "cost latency 5 0 0",
        "barrier 3 4",
    ]


def test_levels_of_a_hierarchy_have_names(tmp_path: Path) -> None:
    words = topology(
        'kind = "hierarchy"\nlevel = [{ name = "socket", holds = 2 }, { name = "host", holds = 2 }]\n'
        '[[link]]\nlevel = "host"\nlatency_ns = 5\nsource = "s"\n'
        '[class.host]\nwithin = "host"\nsegment = [{ latency = 1, source = "s" }]'
    )
    text = lines(tmp_path, words)
    assert "link 2 0 5" in text
    assert "class host switches 0 3" in text


def test_a_placement_is_a_variant(tmp_path: Path) -> None:
    text = SWITCH + COSTS + '[variant.separate.placement]\nnodes = "0-1"\nsecond_half = [3, 2]\nsource = "s"\n'
    assert not [line for line in lines(tmp_path, text) if line.startswith("place")]
    placed = [line for line in lines(tmp_path, text, 4, "separate") if line.startswith("place")]
    assert placed == ["place 0 0", "place 1 1", "place 2 3", "place 3 2"]
    assert "place 1 3" in lines(tmp_path, text, 2, "separate")
    plain, separate = (model_of(tmp_path, text, variant) for variant in ("", "separate"))
    assert plain.record["key"] != separate.record["key"]
    assert why_unfit(separate, 4) is None
    assert why_unfit(plain, 5) == (
        f"the model {plain.name} has 4 nodes, so 5 ranks do not fit: use -n 4 or fewer, or a larger topology"
    )


@pytest.mark.parametrize(
    ("nodes", "placed"),
    [('"0-3"', [0, 1, 2, 3]), ('"3,0-1"', [3, 0, 1]), ('"0-7/3, 5"', [0, 3, 6, 5]), ("[2, 1]", [2, 1])],
)
def test_nodes_are_numbers_and_ranges_with_a_step(nodes: str, placed: list[int], tmp_path: Path) -> None:
    text = SWITCH.replace("nodes = 4", "nodes = 8") + COSTS + f'[placement]\nnodes = {nodes}\nsource = "s"\n'
    at = [line for line in lines(tmp_path, text, len(placed)) if line.startswith("place")]
    assert at == [f"place {rank} {node}" for rank, node in enumerate(placed)]
    model = model_of(tmp_path, text)
    assert why_unfit(model, len(placed)) is None
    assert why_unfit(model, len(placed) + 1) == (
        f"the model {model.name} has room for {len(placed)} ranks, so {len(placed) + 1} ranks do not fit: "
        f"use -n {len(placed)} or fewer, or a larger topology"
    )


@pytest.mark.parametrize(
    ("limit", "placement", "most"),
    [
        ("", "", 8),
        ("ranks = 3", "", 3),
        ("", 'nodes = "0-2"', 3),
        ("ranks = 2", 'nodes = "0-2"', 2),
        ("", 'nodes = "0-2"\nsecond_half = [3]', 2),  # both halves have as many ranks
        ("", 'nodes = [0]\nsecond_half = "1-3"', 2),
    ],
)
def test_the_number_of_ranks_is_limited_by_nodes_places_and_the_model(
    limit: str, placement: str, most: int, tmp_path: Path
) -> None:
    table = f'[placement]\n{placement}\nsource = "s"\n' if placement else ""
    text = f"{limit}\nranks_per_node = {1 if placement else 2}\n{SWITCH}{COSTS}{table}"
    model = model_of(tmp_path, text)
    assert f"ranks {most}" in lines(tmp_path, text)
    assert why_unfit(model, most) is None
    assert why_unfit(model, most + 1) is not None


def test_the_first_half_of_an_odd_number_of_ranks_has_one_more(tmp_path: Path) -> None:
    text = SWITCH + COSTS + '[placement]\nnodes = "0-1"\nsecond_half = [3, 2]\nsource = "s"\n'
    placed = [line for line in lines(tmp_path, text, 3) if line.startswith("place")]
    assert placed == ["place 0 0", "place 1 1", "place 2 3"]


@pytest.mark.parametrize(
    ("table", "line"),
    [
        ('[noise]\nlaw = "exponential"\nmean_ns = 50', "noise exponential 50"),
        ("[[link]]\nlevel = 1\nlatency_ns = 0.5", "link 1 0 0.5"),
        ("[alltoall]\nown_per_byte_ns = 2", "alltoall 2"),
        ('[[slower]]\nfactor = 1.5\nnodes = "1,3"', "node_factor 1.5 1 3"),
    ],
)
def test_tables_become_lines(table: str, line: str, tmp_path: Path) -> None:
    assert line in lines(tmp_path, f'{SWITCH}{COSTS}{table}\nsource = "s"\n')


@pytest.mark.parametrize(
    ("keys", "line"),
    [
        ("", "tcp 200000000 0 1448 90 10 8000000 1"),
        ("min_rto_ms = 0.5\nprobe_ms = 0\nwindow_bytes = 4000\nmss_bytes = 1000\ninitial_window = 2\njitter = 0.5\n",
         "tcp 500000 4000 1000 90 2 0 0.5"),
    ],
)  # fmt: skip
def test_a_switch_with_buffers_becomes_lines(keys: str, line: str, tmp_path: Path) -> None:
    text = lines(tmp_path, SWITCH + COSTS + LINK + BUFFER + "shared = true\n" + TCP + keys)
    assert text[text.index("switch 65536 shared") :][:2] == ["switch 65536 shared", line]
    assert "switch 65536 port" in lines(tmp_path, SWITCH + COSTS + LINK + BUFFER + TCP)


@pytest.mark.parametrize(
    ("switches", "condition"), [("1", "switches 1 1"), ("[0, 1]", "switches 0 1"), ("[1, 0]", "switches 0 1")]
)
def test_a_class_has_a_range_of_switches(switches: str, condition: str, tmp_path: Path) -> None:
    assert f"class far {condition}" in lines(tmp_path, SWITCH + FAR.replace("99", switches) + COSTS)


@pytest.mark.parametrize(
    ("dimensions", "is_ring", "edges"),
    [
        ([2], True, {(0, 1, 1)}),  # one link for both directions
        ([3], False, {(0, 1, 1), (1, 2, 1)}),
        ([3], True, {(0, 1, 1), (1, 2, 1), (2, 0, 1)}),
        ([2, 2], True, {(0, 1, 1), (2, 3, 1), (0, 2, 2), (1, 3, 2)}),
        ([1, 3], True, {(0, 1, 2), (1, 2, 2), (2, 0, 2)}),
    ],
)
def test_edges_of_a_grid(dimensions: list[int], *, is_ring: bool, edges: set[tuple[int, int, int]]) -> None:
    listed = list(grid_edges(dimensions, is_ring=is_ring))
    assert set(listed) == edges
    assert len(listed) == len(edges)


def test_a_model_overrides_keys_of_its_base(tmp_path: Path) -> None:
    (tmp_path / "base.toml").write_text(SWITCH + COSTS, encoding="utf-8")
    changed = 'base = "base.toml"\ntitle = "changed"\n[topology]\nnodes = 7\n'
    model = model_of(tmp_path, changed)
    assert (model.machine.title, model.machine.topology.shape.nodes, list(model.machine.classes)) == (
        "changed",
        7,
        ["all"],
    )


def test_runs_choose_variants(tmp_path: Path) -> None:
    text = SWITCH + COSTS + (
        '[variant.separate]\nranks = 4\n[variant.near]\nranks = 2\n'
        '[[run]]\npattern = "pairs"\nranks = 4\noptions = { window = 2 }\nvariants = ["separate", "near"]\n'
        'read_from = "t"\n'
        '[[run]]\npattern = ["pairs", "funnel"]\nvariants = "near"\nread_from = "t"\n'
    )  # fmt: skip
    model = model_of(tmp_path, text)
    assert model.variants_for("pairs", 4, {"window": "2"}) == ("separate", "near")
    assert model.variants_for("pairs", 4, {}) == ("near",)
    assert model.variants_for("oneway", 2, {}) == ("",)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (SWITCH, "it has no [class.NAME]"),
        (SWITCH + COSTS.replace("100", "-3"), "latency.fixed_ns: -3: input should be greater than"),
        (SWITCH + COSTS.replace("100", "'100'"), "'100' is no cost: write a number of ns"),
        (SWITCH + COSTS.replace("100", "true"), "latency.fixed_ns: True: input should be a valid number"),
        (SWITCH + COSTS + '[[link]]\nbytes_per_s = 1e-6\nsource = "s"\n', "1e-06: input should be greater"),
        (SWITCH + COSTS + '[[slower]]\nnodes = [77]\nfactor = 2\nsource = "s"\n', "slower.nodes: there is no node 77"),
        (SWITCH + COSTS + '[[slower]]\nnodes = [1]\nfactor = true\nsource = "s"\n', "factor: True: input should be"),
        (SWITCH.replace("4", "1048577") + COSTS, "it has room for 1,048,577 ranks: at most 1,048,576"),
        (SWITCH + COSTS + STREAM, "stream.poll: a call that moves nothing takes 1 ns or more"),
        (topology('kind = "torus"\ndimensions = [100000, 100000]'), "it has room for 10,000,000,000 ranks: at most"),
        (SWITCH + "[class]\nall = 5\n", "class.all: 5: it should be a table"),
        (SWITCH + COSTS.replace("latency", "latncy"), "did you mean 'latency'?"),
        (SWITCH + "node = 3\n" + COSTS, "topology.node: unknown key 'node': did you mean 'nodes'?"),
        (SWITCH.replace("nodes = 4", "") + COSTS, "topology.nodes: it is missing"),
        (SWITCH + COSTS.replace('source = "made up"\n', ""), "[1].source: it is missing: add for example source ="),
        (SWITCH.replace("switch", "swich") + COSTS, "topology: swich: the kind should be one of 'switch', 'fat tree'"),
        (SWITCH + COSTS.replace("[class.all]", "[class.all]\nsame_node = true"), "hold for all pairs"),
        (SWITCH + COSTS.replace("100", "{ per_packet_ns = 1 }"), "per_packet_ns needs packet_bytes"),
        (SWITCH + COSTS.replace("latency = 100", "up_to_bytes = 8"), "growing up_to_bytes"),
        (SWITCH + COSTS + '[[link]]\nlevel = "host"\nsource = "s"\n', "level of the hierarchy 'host': there is none"),
        (SWITCH + COSTS + '[placement]\nnodes = "0-9"\nsource = "s"\n', "there is no node 9 among 4"),
        ("ranks = 5\n" + SWITCH + COSTS, "ranks: 5 do not fit: the nodes take 4 ranks"),
        (SWITCH + FAR + COSTS, "class.far.switches: a route has at most 1, not 99"),
        ('machine = "nosuch"\n' + SWITCH + COSTS, "unknown machine 'nosuch': known are gpmimd"),
        (SWITCH + COSTS + '[[link]]\nlevel = 2\nsource = "s"\n', "link: there is no level 2: a switch like this has 1"),
        (SWITCH + COSTS + '[placement]\nnodes = "a"\nsource = "s"\n', "'a' is no node"),
        (SWITCH + COSTS + '[noise]\nlaw = "lognormal"\nmean_ns = 3\nsource = "s"\n', "lognormal needs sigma"),
        (SWITCH + COSTS + '[[run]]\nvariants = "far"\nread_from = "t"\n', "unknown variant 'far'"),
        (topology('kind = "graph"\nnodes = 2\nswitches = 1\nedges = [[0, 2]]'), "no route from node 0 to node 1"),
        (topology('kind = "graph"\nnodes = 2\nswitches = 1\nedges = [[0, 2], [2, 2]]'), "from 2 to itself"),
        (topology('kind = "graph"\nnodes = 1\nswitches = 1\nedges = [[0, 2]]'), "there is no 2 among 2"),
        (
            topology('kind = "graph"\nnodes = 2\nswitches = 1\nedges = [[0, 2], [1, 2]]\nvia = [[0, 1, 2]]'),
            "there is no edge from 0 to 1",
        ),
        (topology('kind = "fat tree"\ndown = [4, 4]\nup = [1]'), "a number for each level"),
        (topology('kind = "mesh"\ndimensions = [70, 70]'), "at most 4096 nodes"),
        (SWITCH + COSTS + LINK + BUFFER, "[switch] needs [tcp]: what a full buffer drops is sent again by TCP"),
        (SWITCH + COSTS + LINK + TCP, "[tcp] needs [switch]"),
        (SWITCH + COSTS + BUFFER + TCP, "[switch] needs links with a rate: give bytes_per_s of a [[link]]"),
        (SWITCH + COSTS + LINK + BUFFER.replace("65536", "1500") + TCP, "1500 hold no frame, which has 1538 B"),
        (SWITCH + COSTS + LINK + BUFFER.replace("65536", "'64K'") + TCP, "switch.buffer_bytes: 64K: input should be a"),
        (SWITCH + COSTS + LINK + BUFFER + TCP + "window_bytes = 1000\n", "1000 hold no segment of 1448 B"),
        (SWITCH + COSTS + LINK + BUFFER + TCP + "min_rto_ms = 0.0009\n", "tcp.min_rto_ms: 0.0009: input should be"),
        (SWITCH + COSTS + LINK + BUFFER + "shared = 1\n" + TCP, "switch.shared: 1: input should be a valid boolean"),
        (
            topology('kind = "torus"\ndimensions = [4]') + LINK + BUFFER + "shared = true\n" + TCP,
            "switch.shared: only for the topology switch, not for a torus",
        ),
        (
            SWITCH + COSTS.replace("latency", 'protocol = "synchronous"\nlatency') + LINK + BUFFER + TCP,
            "[tcp] has no synchronous messages",
        ),
        ('base = "machine.toml"\n', "base must name another model"),
        ("title = ", "is not TOML"),
        (SWITCH.replace("kind", "# kind") + COSTS, "topology: it has no kind: add for example kind"),
    ],
)  # fmt: skip
def test_errors_name_their_key(text: str, expected: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError) as refusal:
        lines(tmp_path, text)
    assert expected in str(refusal.value)
    assert len(str(refusal.value).splitlines()) <= 2


def test_an_error_suggests_the_nearest_known_name(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="did you mean 'gpmimd'"):
        load_model("gpmim")
    with pytest.raises(UsageError, match=r"unknown variant of .* 'b'"):
        model_of(tmp_path, SWITCH + COSTS, "b")
    with pytest.raises(UsageError, match="cannot read the model"):
        load_model(str(tmp_path / "none.toml"))


@pytest.mark.parametrize("name", builtin_models())
def test_the_models_of_the_archive_are_valid(name: str) -> None:
    model = load_model(name)
    for variant in ("", *model.machine.variant):
        assert compiled(load_model(name, variant), 2)
