"""Facts about a machine, on fake ones and on this one."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.machine.trees import grow, two_sockets
from tests.shared import finished

from hockney.machine import facts as machine
from hockney.machine.facts import read_container, read_hypervisor
from hockney.machine.limits import read_quota_cpus
from hockney.machine.placement import usable_cpus


def test_facts_of_this_machine_go_into_json() -> None:
    facts = machine.facts()
    assert json.loads(json.dumps(facts, allow_nan=False)) == facts
    assert facts["cpu"]["logical"] >= 1
    assert facts["memory"]["total_bytes"] > 1 << 20
    assert facts["software"]["hockney"]
    assert facts["hostname"]


@pytest.mark.parametrize(
    ("siblings", "smt"),
    [((), None), (("0", "1", "2"), False), (("0-1", "0-1", "2"), True), (("0-1", "0-1", "2-3", "2-3"), True)],
)
def test_one_core_of_two_threads_is_smt(siblings: tuple[str, ...], smt: bool | None, tmp_path: Path) -> None:
    """As on machines whose slow cores have one thread."""
    files = {f"sys/devices/system/cpu/cpu{cpu}/topology/core_cpus_list": text for cpu, text in enumerate(siblings)}
    root = grow(tmp_path, {"sys/devices/system/cpu/online": f"0-{len(siblings) - 1}", **files} if siblings else {})
    assert machine.facts(root, {})["cpu"]["smt"] is smt


def test_niceness_is_a_fact() -> None:
    program = "import os; os.nice(5); from hockney.machine.facts import facts; print(facts()['limits']['nice'])"
    done = finished([sys.executable, "-c", program], check=True)
    assert int(done.stdout) == min(19, os.getpriority(os.PRIO_PROCESS, 0) + 5)


def test_facts_of_a_machine_without_any(tmp_path: Path) -> None:
    facts = machine.facts(tmp_path, {})
    assert facts["cpu"]["model"] is None
    assert facts["cpu"]["boost"] is None
    assert facts["cpu"]["governors"] == []
    assert facts["topology"]["source"] is None
    assert facts["memory"]["total_bytes"] is None
    assert facts["clock"] == {"source": None, "available": []}
    assert facts["surroundings"] == {"hypervisor": None, "container": None}
    assert facts["environment"] == {}
    assert facts["board"] is None
    assert facts["machine_id"] is None
    assert facts["network"].pop("interfaces") == facts["network"].pop("rdma") == []
    assert set(facts["network"].values()) == {None}


def test_interfaces_of_hardware_buffers_and_the_board(tmp_path: Path) -> None:
    files = {
        "sys/class/net/lo/speed": "1\n",
        "sys/class/net/eth0/speed": "25000\n",
        "sys/class/net/eth1/speed": "-1\n",
        "sys/class/net/eth1/device/vendor": "0x1\n",
        "sys/class/net/eth0/device/vendor": "0x1\n",
        "sys/class/infiniband/mlx5_0/device/vendor": "0x2\n",
        "drivers/fast/module": "",
        "proc/sys/net/ipv4/tcp_wmem": "4096\t16384\t4194304\n",
        "proc/sys/net/ipv4/tcp_rmem": "what is this\n",
        "proc/sys/net/core/wmem_default": "212992\n",
        "sys/class/dmi/id/board_vendor": "Maker\n",
        "sys/class/dmi/id/board_name": "X1\n",
    }
    grow(tmp_path, files)
    (tmp_path / "sys/class/net/eth0/device/driver").symlink_to(tmp_path / "drivers/fast")
    facts = machine.facts(tmp_path, {})
    assert facts["board"] == "Maker X1"
    assert facts["network"] == {
        "tcp_congestion_control": None,
        "tcp_send_buffer_bytes": 16384,
        "tcp_receive_buffer_bytes": None,
        "send_buffer_bytes": 212992,
        "receive_buffer_bytes": None,
        "interfaces": [
            {"name": "eth0", "driver": "fast", "bits_per_s": 25_000_000_000},
            {"name": "eth1", "driver": None, "bits_per_s": None},
            {"name": "mlx5_0", "driver": None, "bits_per_s": None},
        ],
        "rdma": ["mlx5_0"],
    }


def test_facts_of_a_machine_with_all(tmp_path: Path) -> None:
    cpu = "sys/devices/system/cpu"
    files = {
        "proc/cpuinfo": "processor\t: 0\nmodel name\t: Some CPU\ncpu MHz\t: 2100.5\n"
        "flags : fpu tsc\nmicrocode\t: 0x1\n\nprocessor : 1\n",
        "proc/meminfo": "MemTotal: 2048 kB\nMemAvailable: 1024 kB\nHugePages_Total: 0\nBroken:\n",
        "proc/sys/net/ipv4/tcp_wmem": "4096\t16384\t4194304\n",
        "proc/sys/net/ipv4/tcp_rmem": "unlike any Linux\n",
        "etc/os-release": 'NAME="Some"\nPRETTY_NAME="Some Linux 1"\n',
        "sys/kernel/mm/transparent_hugepage/enabled": "always [madvise] never\n",
        "sys/devices/system/clocksource/clocksource0/current_clocksource": "hpet\n",
        "sys/devices/system/clocksource/clocksource0/available_clocksource": "tsc hpet acpi_pm\n",
        f"{cpu}/cpu0/cpufreq/scaling_driver": "intel_pstate\n",
        f"{cpu}/cpu0/cpufreq/cpuinfo_min_freq": "800000\n",
        f"{cpu}/cpu0/cpufreq/cpuinfo_max_freq": "3500000\n",
        f"{cpu}/intel_pstate/no_turbo": "0\n",
        f"{cpu}/cpuidle/current_driver": "intel_idle\n",
        f"{cpu}/cpu0/cpuidle/state1/latency": "2\n",
        f"{cpu}/cpu0/cpuidle/state1/disable": "0\n",
        f"{cpu}/cpu0/cpuidle/state2/latency": "133\n",
        f"{cpu}/cpu0/cpuidle/state2/disable": "1\n",
        **{f"{cpu}/cpu{number}/cpufreq/scaling_governor": "powersave\n" for number in usable_cpus()},
    }
    environment = {"OMPI_MCA_btl": "self", "UCX_TLS": "tcp", "HOME": "/home/somebody", "PATH": "/bin"}
    facts = machine.facts(grow(two_sockets(tmp_path), files), environment)
    assert facts["cpu"] == {
        "model": "Some CPU",
        "microcode": "0x1",
        "packages": 2,
        "cores": 8,
        "logical": 16,
        "smt": True,
        "driver": "intel_pstate",
        "governors": ["powersave"],
        "frequency_min_hz": 800_000_000,
        "frequency_max_hz": 3_500_000_000,
        "frequency_now_hz": 2_100_500_000,
        "boost": True,
        "idle_driver": "intel_idle",
        "idle_exit_max_us": 2,
    }
    assert facts["memory"]["total_bytes"] == 2 << 20
    assert facts["memory"]["available_bytes"] == 1 << 20
    assert facts["memory"]["huge_pages"] == "madvise"
    assert facts["os"]["name"] == "Some Linux 1"
    assert facts["clock"]["source"] == "hpet"
    assert facts["network"]["tcp_send_buffer_bytes"] == 16384
    assert facts["network"]["tcp_receive_buffer_bytes"] is None
    assert facts["environment"] == {"OMPI_MCA_btl": "self", "UCX_TLS": "tcp"}


@pytest.mark.parametrize(
    ("cpuinfo", "model"),
    [
        ("processor : 0\ncpu : POWER9, altivec supported\n", "POWER9, altivec supported"),
        ("processor : 0\nhart : 1\nuarch : sifive,u74-mc\n", "sifive,u74-mc"),
        ("processor : 0\nCPU implementer : 0x41\n", None),
    ],
)
def test_model_of_other_architectures(cpuinfo: str, model: str | None, tmp_path: Path) -> None:
    assert machine.facts(grow(tmp_path, {"proc/cpuinfo": cpuinfo}), {})["cpu"]["model"] == model


@pytest.mark.parametrize(
    ("then", "now", "said"),
    [
        ({"hostname": "a"}, {"hostname": "b"}, "its host was a and is now b"),
        ({"hostname": "a"}, {"hostname": "a"}, None),
        ({"hostname": "a", "machine_id": "1"}, {"hostname": "b", "machine_id": "1"}, None),
        ({"hostname": "a", "machine_id": "1"}, {"hostname": "a", "machine_id": "2"}, "(/etc/machine-id differs)"),
        ({"hostname": "a"}, {"hostname": "b", "machine_id": "1"}, None),  # only one is known
        ({"hostname": "a", "machine_id": "1"}, {"hostname": "b", "machine_id": None}, None),
    ],
)
def test_evidence_of_another_machine(then: dict[str, Any], now: dict[str, Any], said: str | None) -> None:
    difference = machine.another_machine(then, now)
    assert difference is None if said is None else difference is not None and said in difference


def test_the_id_of_a_machine_is_its_own_and_does_not_show_systemds(tmp_path: Path) -> None:
    ids = {"one": "0123456789abcdef" * 2, "again": "0123456789abcdef" * 2, "two": "f" * 32, "new": "uninitialized"}
    trees = {name: grow(tmp_path / name, {"etc/machine-id": f"{text}\n"}) for name, text in ids.items()}
    ids_read = {name: machine.facts(tree, {})["machine_id"] for name, tree in trees.items()}
    assert ids_read["one"] == ids_read["again"] != ids_read["two"]
    assert ids_read["new"] is None
    assert not {*ids_read.values()} & {*ids.values()}


# ---- surroundings ---------------------------------------------------------------------------------------------------

GUEST = "processor : 0\nflags : fpu hypervisor\n"
CLOCKS = "sys/devices/system/clocksource/clocksource0/available_clocksource"


@pytest.mark.parametrize(
    ("files", "name"),
    [
        ({}, None),
        ({"proc/cpuinfo": "flags : fpu\n", "sys/class/dmi/id/sys_vendor": "Amazon EC2"}, None),  # a whole machine
        ({"proc/cpuinfo": GUEST}, "unknown"),
        ({"proc/cpuinfo": GUEST, CLOCKS: "tsc kvm-clock"}, "KVM"),
        ({"proc/cpuinfo": GUEST, CLOCKS: "hyperv_clocksource_tsc_page"}, "Hyper-V"),
        ({"proc/cpuinfo": GUEST, "sys/class/dmi/id/sys_vendor": "VMware, Inc."}, "VMware"),
        (
            {
                "proc/cpuinfo": GUEST,
                "sys/class/dmi/id/sys_vendor": "Microsoft Corporation",
                "sys/class/dmi/id/product_name": "Virtual Machine",
            },
            "Hyper-V",
        ),
        ({"sys/class/dmi/id/sys_vendor": "QEMU"}, "KVM"),  # Arm has no such flag
        ({"proc/device-tree/hypervisor/compatible": "linux,kvm\x00"}, "KVM"),
        ({"sys/hypervisor/type": "xen"}, "Xen"),
    ],
)
def test_hypervisor(files: dict[str, str], name: str | None, tmp_path: Path) -> None:
    assert read_hypervisor(grow(tmp_path, files)) == name


@pytest.mark.parametrize(
    ("files", "environment", "name"),
    [
        ({}, {}, None),
        ({".dockerenv": ""}, {}, "Docker"),
        ({"run/.containerenv": ""}, {}, "Podman"),
        ({"proc/1/cgroup": "0::/kubepods/besteffort/pod1\n", ".dockerenv": ""}, {}, "Kubernetes"),
        ({}, {"APPTAINER_CONTAINER": "image.sif"}, "Apptainer"),
    ],
)
def test_container(files: dict[str, str], environment: dict[str, str], name: str | None, tmp_path: Path) -> None:
    assert read_container(grow(tmp_path, files), environment) == name


@pytest.mark.parametrize(
    ("files", "cpus"),
    [
        ({}, None),
        ({"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/cpu.max": "max 100000"}, None),
        ({"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/cpu.max": "150000 100000"}, 1.5),
        (
            {
                "proc/self/cgroup": "0::/a/b\n",
                "sys/fs/cgroup/a/cpu.max": "50000 100000",
                "sys/fs/cgroup/a/b/cpu.max": "400000 100000",
            },
            0.5,
        ),  # the parent's is tighter
        ({"proc/self/cgroup": "0::/of/the/host\n", "sys/fs/cgroup/cpu.max": "200000 100000"}, 2.0),
        (
            {
                "proc/self/cgroup": "4:memory:/\n3:cpu,cpuacct:/job\n",
                "sys/fs/cgroup/cpu,cpuacct/job/cpu.cfs_quota_us": "300000",
                "sys/fs/cgroup/cpu,cpuacct/job/cpu.cfs_period_us": "100000",
                "sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us": "-1",
                "sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us": "100000",
            },
            3.0,
        ),
        ({"proc/self/cgroup": "rubbish\n", "sys/fs/cgroup/cpu.max": "rubbish"}, None),
    ],
)
def test_quota(files: dict[str, str], cpus: float | None, tmp_path: Path) -> None:
    assert read_quota_cpus(grow(tmp_path, files)) == cpus
