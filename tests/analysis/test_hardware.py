"""Limits of the hardware: planted faults are named, each by its cause and device, and healthy machines have none."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from tests.machine.trees import grow, two_sockets
from tests.shared import script

from hockney.analysis.explain.curve import CurvePoint, MeasuredCurve, Reading
from hockney.analysis.explain.hardware_limits import hardware_limits
from hockney.analysis.hardware import faults
from hockney.machine import facts as machine
from hockney.report.findings import fix_sentence, sentence_of
from hockney.stats.fit import Estimate

_SWITCH = "sys/devices/pci0000:16/0000:16:01.0/0000:17:00.0"  # below a root port
_GPU, _NIC = f"{_SWITCH}/0000:18:00.0/0000:19:00.0", f"{_SWITCH}/0000:18:01.0/0000:1a:00.0"
_ETH = "sys/devices/pci0000:00/0000:00:1c.0/0000:02:00.0"
_BUFFERS = "proc/sys/net/ipv4/tcp"
_ROUTE = "Iface\tDestination\tGateway\n{}\t00000000\t0100000A\n"
_SMI = "00000000:19:00.0, NVIDIA H200, {}, {}"
_DRIVER = {"proc/driver/nvidia/version": "580", "links_off": "0"}

Files = Mapping[str, str]


def link(path: str, speed: str, lanes: int, *, most: str = "32.0 GT/s PCIe", lanes_max: int = 16) -> dict[str, str]:
    now = {f"{path}/current_link_speed": speed, f"{path}/current_link_width": f"{lanes}\n"}
    return now | {f"{path}/max_link_speed": most, f"{path}/max_link_width": f"{lanes_max}\n"}


def module(number: int, rated: int, now: int, size: int = 0x4000) -> dict[str, bytes]:
    """A memory device as SMBIOS has it."""
    raw = bytearray(0x54)
    for at, value in ((0x0C, size), (0x15, rated), (0x20, now)):
        raw[at : at + 2] = value.to_bytes(2, "little")
    return {f"sys/firmware/dmi/entries/17-{number}/raw": bytes(raw)}


def server() -> dict[str, str]:
    """A GPU and an Ethernet device of 400 Gbit/s with RDMA on one PCIe switch of node 0, and one of 1 Gbit/s."""
    files: dict[str, str] = {}
    for number, (path, kind) in enumerate(((_GPU, "0x030200"), (_NIC, "0x020000"), (_ETH, "0x020000"))):
        name = Path(path).name
        files |= {
            f"{path}/class": kind,
            f"{path}/vendor": "0x10de" if path == _GPU else "0x15b3",
            f"{path}/numa_node": "0",
        }
        files |= link(path, "32.0 GT/s PCIe", 16) | link(str(Path(path).parent), "32.0 GT/s PCIe", 16)
        files |= {f"{path}/iommu_group/type": "DMA-FQ", f"links/{number}": f"{name} {path}"}
    files |= link(_ETH, "2.5 GT/s PCIe", 1, most="2.5 GT/s PCIe", lanes_max=1)
    for path, name, speed, mtu in ((_NIC, "ens1", 400_000, 9000), (_ETH, "eno1", 1000, 1500)):
        net = f"{path}/net/{name}"
        files |= {f"{net}/speed": f"{speed}", f"{net}/mtu": f"{mtu}", f"{net}/duplex": "full", f"{net}/operstate": "up"}
    port = f"{_NIC}/infiniband/mlx5_0/ports/1"
    files |= {
        f"{port}/rate": "400 Gb/sec (4X NDR)",
        f"{port}/link_layer": "Ethernet",
        "proc/net/route": _ROUTE.format("ens1"),
    }
    files |= {f"{_BUFFERS}_congestion_control": "cubic", f"{_BUFFERS}_wmem": "4096 16384 4194304"}
    files |= {f"{_BUFFERS}_rmem": "4096 131072 6291456", "sys/devices/system/edac/mc/mc0/ce_count": "0"}
    frequency = "sys/devices/system/cpu/cpu0/cpufreq"
    return files | {f"{frequency}/cpuinfo_max_freq": "3800000", f"{frequency}/scaling_max_freq": "3800000"}


def read(root: Path, changes: Mapping[str, str | bytes | None], base: Files | None = None) -> dict[str, Any]:
    """The facts of a server with these files changed (None: gone), of which CPUs 0 to 3 may be used."""
    two_sockets(root)
    modules: dict[str, str | bytes] = {}
    for number in range(8):
        modules |= module(number, 4800, 4800)
    files = {**(server() if base is None else base), **(modules if base is None else {}), **changes}
    grow(root, {name: text for name, text in files.items() if isinstance(text, str)})
    for name, raw in files.items():
        if isinstance(raw, bytes):
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_bytes(raw)
    for path in (root / "links").glob("*"):
        name, _, folder = path.read_text().partition(" ")
        (root / "sys/bus/pci/devices").mkdir(parents=True, exist_ok=True)
        (root / "sys/bus/pci/devices" / name).symlink_to(root / folder)
    known = machine.facts(root, {})
    known["limits"]["usable_cpus"] = changes.get("usable", "0-3")
    return known


SLOT_OF = {path: str(Path(path).parent) for path in (_GPU, _NIC)}
_ON_GPU, _VIRTIO = "gpu 0000:19:00.0", "sys/devices/pci0000:00/0000:00:03.0"
_PORT = f"{_NIC}/infiniband/mlx5_0/ports/1"
_EMPTY = {name: raw for number in range(5) for name, raw in module(number, 0, 0, size=0).items()}


def slow_slot(path: str, speed: str, lanes: int, most: str, lanes_max: int) -> dict[str, str]:
    """The link of a device in a slot that has no more than it."""
    return link(path, speed, lanes) | link(SLOT_OF[path], speed, lanes, most=most, lanes_max=lanes_max)


FAULTS: list[tuple[str, str, Mapping[str, str | bytes | None]]] = [
    ("width", _ON_GPU, link(_GPU, "32.0 GT/s PCIe", 8)),
    ("width", "mlx5_0", link(_NIC, "32.0 GT/s PCIe", 4)),
    ("slot width", _ON_GPU, slow_slot(_GPU, "32.0 GT/s PCIe", 8, "32.0 GT/s PCIe", 8)),
    ("slot width", "mlx5_0", slow_slot(_NIC, "32.0 GT/s PCIe", 8, "32.0 GT/s PCIe", 8)),
    ("generation", "mlx5_0", link(_NIC, "8.0 GT/s PCIe", 16)),
    ("slot generation", _ON_GPU, slow_slot(_GPU, "8.0 GT/s PCIe", 16, "8.0 GT/s PCIe", 16)),
    ("slot generation", "mlx5_0", slow_slot(_NIC, "16.0 GT/s PCIe", 16, "16.0 GT/s PCIe", 16)),
    ("distance", "mlx5_0", {f"{_NIC}/numa_node": "1", f"{_GPU}/numa_node": None}),
    ("distance", _ON_GPU, {f"{_GPU}/numa_node": "1", f"{_PORT}/rate": "25 Gb/sec"}),
    ("far network", _ON_GPU, {f"{_NIC}/numa_node": "1", "usable": "0-7"}),
    ("IOMMU", _ON_GPU, {f"{_GPU}/iommu_group/type": "DMA"}),
    ("IOMMU", "mlx5_0", {f"{_NIC}/iommu_group/type": "DMA"}),
    ("duplex", "eno1", {f"{_ETH}/net/eno1/duplex": "half"}),
    ("port", "mlx5_0", {f"{_PORT}/rate": "100 Gb/sec (1X NDR)"}),
    ("MTU", "mlx5_0", {f"{_NIC}/net/ens1/mtu": "1500"}),
    ("slow interface", "eno1", {"proc/net/route": _ROUTE.format("eno1"), f"{_PORT}/rate": "100 Gb/sec (4X EDR)"}),
    ("congestion control", "TCP", {f"{_BUFFERS}_congestion_control": "vegas"}),
    ("socket buffers", "TCP", {f"{_BUFFERS}_rmem": "4096 131072 262144"}),
    ("memory speed", "memory", module(3, 4800, 3200)),
    ("memory modules", "memory", _EMPTY),
    ("ECC", "memory", {"sys/devices/system/edac/mc/mc0/ce_count": "17"}),
    ("CPU clocks", "the CPUs", {"sys/devices/system/cpu/cpu0/cpufreq/scaling_max_freq": "2000000"}),
    ("clocks", "NVIDIA H200", {**_DRIVER, "smi": _SMI.format("0x0000000000000040", "0")}),
    ("ECC", "NVIDIA H200", {**_DRIVER, "smi": _SMI.format("0x0000000000000001", "3")}),
    ("NVLink", "NVIDIA H200", {**_DRIVER, "smi": _SMI.format("0x0000000000000004", "[N/A]"), "links_off": "2"}),
]  # fmt: skip


@pytest.fixture
def nvidia(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A root, and an nvidia-smi that prints what its files say."""
    root = tmp_path / "root"
    links = f"for n in $(seq 18); do [ $n -gt $(cat {root}/links_off) ] && echo ' Link 1: 26.562 GB/s'"
    script(
        tmp_path / "bin/nvidia-smi",
        f"[ $1 = nvlink ] || exec cat {root}/smi",
        "echo 'GPU 0: NVIDIA H200 (UUID: GPU-1)'",
        f"{links} || echo ' Link 1: <inactive>'; done",
    )
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")
    return root


@pytest.mark.parametrize(("cause", "device", "changes"), FAULTS)
def test_a_planted_fault_is_named(cause: str, device: str, changes: Mapping[str, Any], nvidia: Path) -> None:
    found = faults(read(nvidia, changes))
    assert [(each.cause, each.facts["device"]) for each in found] == [(cause, device)]
    said = sentence_of(found[0])
    assert device in said
    assert found[0].fix is not None
    fix = fix_sentence(found[0].fix)
    assert "{" not in said + fix
    assert not fix.startswith("mend")


def test_devices_under_one_switch_that_are_kept_apart_are_named(tmp_path: Path) -> None:
    """As the kernel does where it switches ACS on: each has a group."""
    files = {name: text for name, text in server().items() if "iommu_group" not in name}
    grow(tmp_path, {"groups/1/type": "DMA-FQ", "groups/2/type": "DMA-FQ"})
    for path, number in ((_GPU, "1"), (_NIC, "2")):
        (tmp_path / path).mkdir(parents=True)
        (tmp_path / path / "iommu_group").symlink_to(tmp_path / "groups" / number)
    (finding,) = faults(read(tmp_path, {}, files))
    assert (finding.cause, finding.facts["others"]) == ("ACS", "mlx5_0")


_NDR = {f"{_PORT}/link_layer": "InfiniBand"}
HEALTHY: dict[str, tuple[Mapping[str, str | bytes | None], Files | None]] = {
    "server": ({}, None),
    "GPU that idles at the lowest speed": (link(_GPU, "2.5 GT/s PCIe", 16), None),
    "InfiniBand, and sockets on another interface": ({**_NDR, "proc/net/route": _ROUTE.format("eno1")}, None),
    "100 Gbit/s on eight lanes": (
        {**link(_NIC, "16.0 GT/s PCIe", 8), f"{_PORT}/rate": "100 Gb/sec (4X EDR)"}, None,
    ),
    "25 Gbit/s with frames of 1500 B": (
        {f"{_NIC}/net/ens1/mtu": "1500", f"{_PORT}/rate": "25 Gb/sec"}, None,
    ),
    "no IOMMU, no NUMA": ({name: None for name in server() if name.endswith(("numa_node", "type"))}, None),
    "half of the memory sockets": ({n: raw for i in range(4) for n, raw in module(i, 0, 0, size=0).items()}, None),
    "unplugged": ({f"{_NIC}/net/ens1/operstate": "down", "proc/net/route": ""}, None),
    "virtual": ({}, {
        "links/0": f"0000:00:03.0 {_VIRTIO}", f"{_VIRTIO}/class": "0x020000", f"{_VIRTIO}/numa_node": "-1",
        f"{_VIRTIO}/current_link_speed": "Unknown",
    }),
    "nothing": ({}, {}),
}  # fmt: skip


@pytest.mark.parametrize("name", HEALTHY)
def test_a_healthy_machine_has_no_finding(name: str, tmp_path: Path) -> None:
    changes, base = HEALTHY[name]
    known = read(tmp_path, changes, base)
    assert [(each.cause, each.facts["device"]) for each in faults(known)] == []
    assert len(known["hardware"]["devices"]) == (3 if base is None else name == "virtual")


def test_a_run_of_before_has_no_finding() -> None:
    assert faults({"cpu": {"model": "x"}}) == []


# ---- a run ----------------------------------------------------------------------------------------------------------


def reading(rate_bytes_per_s: float, facts: Mapping[str, Any], transport: str, **options: str) -> Reading:
    """A run with this best rate."""
    size = 1 << 26
    time_ns = 1e9 * size / rate_bytes_per_s
    point = CurvePoint(size, Estimate(time_ns, time_ns, time_ns), size)
    return Reading("a run", (MeasuredCurve(transport, "oneway", 2, tuple(options.items()), "", (point,)),), facts=facts)


@pytest.mark.parametrize(
    ("rate", "memory", "found"),
    [
        (55e9, "pinned:device", [("near its limit", "")]),
        (50.5e9, "device:pinned", [("near its limit", "")]),  # 80 % of 63
        (50.3e9, "pinned:device", [("below its limit", "")]),
        (10.8e9, "host:device", [("below its limit", "pageable")]),
        (98e9, "pinned:device", []),  # both directions
        (1500e9, "device:device", []),
    ],
)
def test_a_rate_is_compared_with_its_link(
    rate: float, memory: str, found: list[tuple[str, str]], tmp_path: Path
) -> None:
    known = read(tmp_path, {})
    assert [(each.code, each.cause) for each in hardware_limits(reading(rate, known, "cuda", memory=memory))] == found


def test_a_link_that_works_at_half_is_the_cause_of_half_the_rate(tmp_path: Path) -> None:
    known = read(tmp_path, link(_GPU, "32.0 GT/s PCIe", 8))
    found = list(hardware_limits(reading(27e9, known, "cuda", memory="pinned:device")))
    assert [(each.code, each.cause) for each in found] == [("below its limit", ""), ("hardware limit", "width")]
    assert sentence_of(found[0]) == "43% of what PCIe 5 x16 carries. 27.0 GB/s of 63.0 GB/s."
    assert sentence_of(found[1]).startswith(
        "gpu 0000:19:00.0 has PCIe 5 x8 of PCIe 5 x16. It carries 31.5 GB/s of 63.0 GB/s."
    )


@pytest.mark.parametrize(
    ("rate", "transport", "found"),
    [
        (11.6e9, "tcp", ("near its limit", "")), (6e9, "tcp", ("below its limit", "RDMA")),
        (6e9, "ucx", ("below its limit", "")),
    ],
)  # fmt: skip
def test_a_rate_between_hosts_is_compared_with_their_interface(
    rate: float, transport: str, found: tuple[str, str]
) -> None:
    interface = {"name": "ens1", "address": "10.0.0.1", "bits_per_s": 100_000_000_000}
    hosts = [{"name": name, "interfaces": [interface]} for name in ("n1", "n2")]
    (only,) = hardware_limits(reading(rate, {"hosts": hosts, "network": {"rdma": ["mlx5_0"]}}, transport))
    assert (only.code, only.cause) == found
    assert "ens1 (100 Gbit/s) carries" in sentence_of(only)


def test_a_run_on_one_host_is_not_compared_with_its_network(tmp_path: Path) -> None:
    assert list(hardware_limits(reading(1e9, read(tmp_path, {f"{_PORT}/rate": "100 Gb/sec (1X NDR)"}), "tcp"))) == []
