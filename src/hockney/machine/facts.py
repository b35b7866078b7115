"""The facts about this machine that are stored with every run: typed, with units in their names, None where unknown."""

from __future__ import annotations

import contextlib
import gzip
import hmac
import os
import platform
import re
import socket
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

from hockney.machine.files import ROOT, format_cpus, read_int, read_text
from hockney.machine.placement import can_pin, usable_cpus
from hockney.machine.surroundings import read_container, read_hypervisor, read_quota_cpus
from hockney.machine.topology import Topology, read_topology

_ASK_LIMIT_S = 2
# Where Linux names the model: x86, MIPS, POWER, RISC-V. Arm names only numbers, which lscpu knows to read.
_MODEL_KEYS = ("model name", "cpu model", "cpu", "uarch")
# Variables that change what is measured: of the MPIs and their parts, of UCX, libfabric, OpenMP, memory and loader.
_VARIABLES = (
    "FI_", "GLIBC_TUNABLES", "GOMP_", "HYDRA_", "I_MPI_", "KMP_", "LD_LIBRARY_PATH", "LD_PRELOAD", "MALLOC_", "MPICH_",
    "MPIR_CVAR_", "MV2_", "OMPI_", "OMP_", "PMIX_MCA_", "PRTE_MCA_", "PSM2_", "PSM3_", "UCX_",
)  # fmt: skip
_OF_A_PLACE = ("LD_LIBRARY_PATH", "OMP_NUM_THREADS")  # they say nothing of a measurement


def facts(
    root: Path = ROOT,
    environment: Mapping[str, str] = os.environ,
    compiler: Mapping[str, str | None] = MappingProxyType({}),
) -> dict[str, Any]:
    """Everything known about this machine, as JSON can hold it. Takes some 30 ms; another root is for tests.

    `compiler` is worker.build.compiler_facts(), where the worker's compiler matters.
    """
    topology = read_topology(root)
    return {
        "taken_unix_s": time.time(),
        "hostname": socket.gethostname(),
        "machine_id": _machine_id(root),
        "os": _os(root),
        "cpu": _cpu(root, topology),
        "topology": topology.as_json(),
        "memory": _memory(root),
        "clock": _clock(root),
        "network": _network(root),
        "board": _board(root),
        "limits": {
            "usable_cpus": format_cpus(usable_cpus()),
            "quota_cpus": read_quota_cpus(root),
            "can_pin": can_pin(),
            "nice": os.getpriority(os.PRIO_PROCESS, 0),
            "locked_memory_bytes": _locked_memory_bytes(),
        },
        "surroundings": {"hypervisor": read_hypervisor(root), "container": read_container(root, environment)},
        "load": _load(root),
        "software": _software(compiler),
        "environment": _environment(environment),
    }


def another_machine(then: Mapping[str, Any], now: Mapping[str, Any]) -> str | None:
    """What shows that then and now are not the same CPUs of one machine; None where nothing that both know does.

    Names of hosts count only where neither knows the machine's id: containers get a new one at every start, and two
    virtual machines may both be localhost.
    """
    was_id, is_id = then.get("machine_id"), now.get("machine_id")
    if was_id and is_id and was_id != is_id:
        return "its machine was another one (/etc/machine-id differs)"
    if was_id or is_id:
        then, now = {**then, "hostname": None}, {**now, "hostname": None}
    for (what, was), it_is in zip(_identity(then).items(), _identity(now).values(), strict=True):
        if was and it_is and was != it_is:
            return f"its {what} was {was} and is now {it_is}"
    return None


def _identity(known: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "host": known.get("hostname"),
        "CPU": known.get("cpu", {}).get("model"),
        "list of usable CPUs": known.get("limits", {}).get("usable_cpus"),
    }


def _machine_id(root: Path) -> str | None:
    """What tells this installation from all others; made into an id of hockney's own, for systemd's is confidential."""
    text = read_text(root / "etc/machine-id") or ""
    if not re.fullmatch("[0-9a-f]{32}", text):  # an image of a machine that never ran says "uninitialized"
        return None
    return hmac.new(text.encode(), b"hockney", "sha256").hexdigest()[:32]


def _os(root: Path) -> dict[str, Any]:
    release = dict(
        line.split("=", 1) for line in (read_text(root / "etc/os-release") or "").splitlines() if "=" in line
    )
    name = release.get("PRETTY_NAME", "").strip("\"'") or (f"macOS {platform.mac_ver()[0]}" if _is_mac() else None)
    return {
        "name": name,
        "kernel": f"{platform.system()} {platform.release()}",
        "tick_hz": _tick_hz(root),
        "architecture": platform.machine(),
    }


def _tick_hz(root: Path) -> int | None:
    """How often in a second the kernel's tick comes on a CPU that works; None where its configuration can't be read."""
    config = read_text(root / f"boot/config-{platform.release()}") or ""
    with contextlib.suppress(OSError, EOFError):
        config = config or gzip.decompress((root / "proc/config.gz").read_bytes()).decode("utf-8", "replace")
    found = re.search(r"^CONFIG_HZ=(\d+)$", config, re.MULTILINE)
    return int(found[1]) if found else None


def _is_mac() -> bool:
    return sys.platform == "darwin"


# ---- CPUs -----------------------------------------------------------------------------------------------------------


def _cpu(root: Path, topology: Topology) -> dict[str, Any]:
    folder = root / "sys/devices/system/cpu"
    usable = usable_cpus()
    threads = [cpu for core in topology.cores for cpu in core]
    return {
        "model": _model(root),
        "microcode": _cpuinfo(root).get("microcode"),
        "packages": len(topology.packages) or None,
        "cores": len(topology.cores) or _count_cores(),
        "logical": len(threads) or os.cpu_count(),
        "smt": any(len(core) > 1 for core in topology.cores) if topology.cores else None,
        "driver": read_text(folder / "cpu0/cpufreq/scaling_driver"),
        "governors": _governors(folder, usable),
        "frequency_min_hz": _hertz(folder / "cpu0/cpufreq/cpuinfo_min_freq"),
        "frequency_max_hz": _hertz(folder / "cpu0/cpufreq/cpuinfo_max_freq"),
        "frequency_now_hz": _frequency_now_hz(root),
        "boost": _boost(folder),
        "idle_driver": read_text(folder / "cpuidle/current_driver"),
        "idle_exit_max_us": _idle_exit_max_us(folder),
    }


def _cpuinfo(root: Path) -> dict[str, str]:
    """/proc/cpuinfo of the first CPU."""
    first = (read_text(root / "proc/cpuinfo") or "").partition("\n\n")[0]
    pairs = (line.partition(":") for line in first.splitlines())
    return {key.strip().lower(): value.strip() for key, colon, value in pairs if colon}


def _model(root: Path) -> str | None:
    known = _cpuinfo(root)
    named = next((known[key] for key in _MODEL_KEYS if known.get(key)), None)
    if named or root != ROOT:
        return named
    if known:
        lines = (_ask(["lscpu"]) or "").splitlines()
        return next((line.partition(":")[2].strip() for line in lines if line.startswith("Model name:")), None)
    import cpuinfo  # slow, and only for systems without /proc

    brand = cpuinfo.get_cpu_info().get("brand_raw")
    return str(brand) if brand else None


def _count_cores() -> int | None:
    import psutil

    cores = psutil.cpu_count(logical=False)
    return int(cores) if cores else None


def _governors(folder: Path, usable: tuple[int, ...]) -> list[str]:
    """The different governors of the usable CPUs; none where Linux does not control the frequency."""
    found = {read_text(folder / f"cpu{cpu}/cpufreq/scaling_governor") for cpu in usable}
    return sorted(name for name in found if name)


def _hertz(path: Path) -> int | None:
    kilohertz = read_int(path)
    return kilohertz * 1000 if kilohertz is not None else None


def _frequency_now_hz(root: Path) -> int | None:
    """What the first CPU runs at now, or is said to by a hypervisor that hides the rest."""
    try:
        return round(float(_cpuinfo(root)["cpu mhz"]) * 1e6)
    except (KeyError, ValueError):
        return None


def _boost(folder: Path) -> bool | None:
    """Whether the CPU may run above its nominal frequency, which then depends on heat and on its neighbours."""
    on, off = read_int(folder / "cpufreq/boost"), read_int(folder / "intel_pstate/no_turbo")
    return bool(on) if on is not None else not off if off is not None else None


def _idle_exit_max_us(folder: Path) -> int | None:
    """How long the deepest allowed sleep of an idle CPU takes to end: it adds to every blocking receive."""
    states = [
        read_int(state / "latency") or 0
        for state in (folder / "cpu0/cpuidle").glob("state[0-9]*")
        if read_int(state / "disable") == 0
    ]
    return max(states, default=None)


# ---- memory, clock, limits ------------------------------------------------------------------------------------------


def _memory(root: Path) -> dict[str, Any]:
    lines = (read_text(root / "proc/meminfo") or "").splitlines()
    kib = {name: int(rest.split()[0]) for name, _, rest in (line.partition(":") for line in lines) if rest.split()}
    total_bytes = kib["MemTotal"] * 1024 if "MemTotal" in kib else None
    if total_bytes is None and root == ROOT:
        import psutil

        total_bytes = int(psutil.virtual_memory().total)
    available_kib = kib.get("MemAvailable")
    folder = root / "sys/kernel/mm/transparent_hugepage"
    return {
        "total_bytes": total_bytes,
        "available_bytes": available_kib * 1024 if available_kib is not None else None,
        "page_bytes": os.sysconf("SC_PAGE_SIZE"),
        "huge_pages": _chosen(read_text(folder / "enabled")),
        "huge_pages_shared": _chosen(read_text(folder / "shmem_enabled")),
    }


def _chosen(text: str | None) -> str | None:
    """`always [madvise] never` -> madvise."""
    return next((word[1:-1] for word in (text or "").split() if word.startswith("[")), None)


def _clock(root: Path) -> dict[str, Any]:
    folder = root / "sys/devices/system/clocksource/clocksource0"
    return {
        "source": read_text(folder / "current_clocksource"),
        "available": (read_text(folder / "available_clocksource") or "").split(),
    }


def _locked_memory_bytes() -> int | None:
    """How much memory may be locked, as transports over RDMA must; None: no limit."""
    import resource

    soft, _ = resource.getrlimit(resource.RLIMIT_MEMLOCK)
    return None if soft == resource.RLIM_INFINITY else soft


# ---- network and board ---------------------------------------------------------------------------------------------


def _network(root: Path) -> dict[str, Any]:
    """Interfaces of real or virtual hardware, and what sockets are given for buffers where nobody asks for more."""
    system = root / "proc/sys/net"
    interfaces = [
        {"name": path.name, "driver": _driver(path / "device"), "bits_per_s": _line_rate(path)}
        for folder in ("net", "infiniband")
        for path in sorted((root / "sys/class" / folder).glob("*"))
        if (path / "device").exists()
    ]
    return {
        "tcp_congestion_control": read_text(system / "ipv4/tcp_congestion_control"),
        "tcp_send_buffer_bytes": _middle(read_text(system / "ipv4/tcp_wmem")),
        "tcp_receive_buffer_bytes": _middle(read_text(system / "ipv4/tcp_rmem")),
        "send_buffer_bytes": read_int(system / "core/wmem_default"),
        "receive_buffer_bytes": read_int(system / "core/rmem_default"),
        "interfaces": interfaces,
    }


def _driver(device: Path) -> str | None:
    try:
        return (device / "driver").resolve(strict=True).name
    except OSError:
        return None


def _line_rate(interface: Path) -> int | None:
    """None where the hardware does not say, as that of most virtual machines."""
    megabits = read_int(interface / "speed")
    return megabits * 1_000_000 if megabits and megabits > 0 else None


def _middle(text: str | None) -> int | None:
    """`least default most`, as Linux writes the buffers of TCP."""
    words = (text or "").split()
    return int(words[1]) if len(words) == 3 and words[1].isdecimal() else None


def _board(root: Path) -> str | None:
    """The main board, in its maker's words."""
    folder = root / "sys/class/dmi/id"
    words = [read_text(folder / name) for name in ("board_vendor", "board_name", "board_version")]
    return " ".join(word for word in words if word) or None


def _load(root: Path) -> dict[str, Any]:
    words = (read_text(root / "proc/loadavg") or "").split()
    if root == ROOT:
        try:
            words = [*(f"{value:.2f}" for value in os.getloadavg()), *words[3:]]
        except OSError:
            words = []
    averages: list[float | None] = [float(word) for word in words[:3]]
    return dict(zip(("average_1min", "average_5min", "average_15min"), averages or [None] * 3, strict=True))


# ---- software -------------------------------------------------------------------------------------------------------


def _software(compiler: Mapping[str, str | None]) -> dict[str, Any]:
    from hockney import __version__

    return {
        "hockney": __version__,
        "commit": _commit(),
        "python": platform.python_version(),
        "c_compiler": None,
        "c_options": None,
        **compiler,
        "libc": " ".join(platform.libc_ver()).strip() or None,
    }


def _commit() -> str | None:
    """The commit of the checkout that hockney runs from, `-dirty` if it was changed since."""
    checkout = Path(__file__).resolve().parents[3]
    if not (checkout / ".git").exists() or not (checkout / "src/hockney").is_dir():
        return None  # installed as a package, and perhaps into somebody else's checkout
    argv = ["git", "--no-optional-locks", "-C", str(checkout), "describe", "--always", "--dirty", "--abbrev=12"]
    return _ask([*argv, "--exclude=*"])


def _ask(argv: list[str]) -> str | None:
    """What a program prints; None if it is not there, fails or hangs."""
    try:
        done = subprocess.run(
            argv,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_ASK_LIMIT_S,
            check=False,
            text=True,
            errors="replace",
            env={**os.environ, "LC_ALL": "C"},
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return (done.stdout.strip() or None) if done.returncode == 0 else None


def library_settings(environment: Mapping[str, str]) -> dict[str, str]:
    """Those variables, of an environment or of stored facts, that make libraries measure something else."""
    return {name: value for name, value in _environment(environment).items() if name not in _OF_A_PLACE}


def _environment(environment: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in sorted(environment.items()) if name.startswith(_VARIABLES)}
