"""The facts about this machine that are stored with every run: typed, with units in their names, None where unknown."""

from __future__ import annotations

import contextlib
import functools
import hmac
import os
import platform
import re
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from hockney.machine.files import ROOT, format_cpus, read_int, read_text, read_toml
from hockney.machine.limits import read_limits
from hockney.machine.placement import can_pin, usable_cpus
from hockney.machine.topology import read_topology

# Variables that affect measurements: of the MPIs and their parts, of UCX, libfabric, OpenMP, memory and loader.
_VARIABLES = (
    "FI_", "GLIBC_TUNABLES", "GOMP_", "HYDRA_", "I_MPI_", "KMP_", "LD_LIBRARY_PATH", "LD_PRELOAD", "MALLOC_", "MPICH_",
    "MPIR_CVAR_", "MV2_", "OMPI_", "OMP_", "PMIX_MCA_", "PRTE_MCA_", "PSM2_", "PSM3_", "UCX_",
)  # fmt: skip
_GPU_MAKERS = ("0x10de", "0x1002")  # NVIDIA and AMD: other display controllers are those of a board
_GPU_FIELDS = ("pci.bus_id", "name", "clocks_throttle_reasons.active", "ecc.errors.uncorrected.volatile.total")
_SLOWED = 0xE8  # of the reasons: heat, and what protects the hardware; a power cap and idle clocks are normal
_CPUS = "sys/devices/system/cpu"


_READERS: Mapping[str, Callable[[str], Any]] = {
    "text": str,
    "number": int,
    "thousands": lambda text: int(text) * 1000,
    "middle": lambda text: int(text.split()[1]),  # `least default most`, as Linux writes the buffers of TCP
    "most": lambda text: int(text.split()[2]),
    "natural": lambda text: int(text) if int(text) >= 0 else None,  # -1: unknown
    "first": lambda text: float(text.split()[0]),  # `32.0 GT/s PCIe`, `400 Gb/sec (4X NDR)`
    "lanes": lambda text: int(text.partition("(")[2].partition("X")[0]),
    "chosen": lambda text: text.partition("[")[2].partition("]")[0],  # `always [madvise] never` -> madvise
}


def facts(
    root: Path = ROOT, environment: Mapping[str, str] = os.environ, compiler: Mapping[str, str | None] | None = None
) -> dict[str, Any]:
    """Everything known about this machine, as JSON can hold it. Takes some 30 ms; another root is for tests.

    `compiler` is worker.build.compiler_facts(), where the worker's compiler matters.
    """
    clocks = read_text(root / "sys/devices/system/clocksource/clocksource0/available_clocksource") or ""
    board = [read_text(root / "sys/class/dmi/id" / f"board_{name}") for name in ("vendor", "name", "version")]
    topology = read_topology(root)
    threads = [cpu for core in topology.cores for cpu in core]
    return {
        "taken_unix_s": time.time(),
        "hostname": socket.gethostname(),
        "machine_id": _machine_id(root),
        "os": _os(root),
        "cpu": {
            **_cpu(root),
            **_contents(root, "cpu"),
            "packages": len(topology.packages) or None,
            "cores": len(topology.cores) or None,
            "logical": len(threads) or os.cpu_count(),
            "smt": any(len(core) > 1 for core in topology.cores) if topology.cores else None,
        },
        "topology": topology.as_json(),
        "memory": {**_memory(root), **_contents(root, "memory")},
        "clock": {**_contents(root, "clock"), "available": clocks.split()},
        "network": {**_contents(root, "network"), "interfaces": _interfaces(root), "rdma": _names(root, "infiniband")},
        "hardware": {
            **_contents(root, "hardware"),
            "devices": _devices(root),
            "memory": _modules(root),
            "route": _default_interface(root),
        },
        "board": " ".join(word for word in board if word) or None,
        "limits": {
            "usable_cpus": format_cpus(usable_cpus()),
            "can_pin": can_pin(),
            "nice": os.getpriority(os.PRIO_PROCESS, 0),
            **read_limits(root),
        },
        "surroundings": {"hypervisor": read_hypervisor(root), "container": read_container(root, environment)},
        "software": _software(compiler or {}),
        "environment": _settings(environment),
    }


def fact(known: Mapping[str, Any], path: str) -> Any:
    """The fact at `cpu.model`; None where a run has none, such as an import."""
    value: Any = known
    for name in path.split("."):
        value = value.get(name) if isinstance(value, Mapping) else None
    return value


def data_caches(known: Mapping[str, Any]) -> list[tuple[int, int]]:
    """(level, bytes) of each kind of cache that holds data, by level, as far as they are known."""
    data = [cache for cache in fact(known, "topology.caches") or () if cache["kind"] != "instruction"]
    return sorted({(cache["level"], cache["size_bytes"]) for cache in data if cache["size_bytes"]})


def another_machine(then: Mapping[str, Any], now: Mapping[str, Any]) -> str | None:
    """Evidence that then and now are different CPUs or machines; None without any.

    Names of hosts count only if neither knows the machine's id: containers get a new one at every start, and two
    virtual machines may both be localhost.
    """
    ids = then.get("machine_id"), now.get("machine_id")
    if all(ids) and ids[0] != ids[1]:
        return "its machine was another one (/etc/machine-id differs)"
    paths = {"host": "hostname", "CPU": "cpu.model", "list of usable CPUs": "limits.usable_cpus"}
    for what, path in paths.items():
        was, it_is = fact(then, path), fact(now, path)
        if was and it_is and was != it_is and not (what == "host" and any(ids)):
            return f"its {what} was {was} and is now {it_is}"
    return None


def library_settings(environment: Mapping[str, str]) -> dict[str, str]:
    """The variables in an environment, or in stored facts, that affect measurements of libraries."""
    settings = _settings(environment).items()
    return {name: value for name, value in settings if name not in ("LD_LIBRARY_PATH", "OMP_NUM_THREADS")}


def _settings(environment: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in sorted(environment.items()) if name.startswith(_VARIABLES)}


@functools.cache
def _table(name: str) -> dict[str, Any]:
    return read_toml(Path(__file__).with_name(f"{name}.toml"))


def _contents(root: Path, part: str) -> dict[str, Any]:
    """The facts of one part of facts.toml whose value is the content of one file below `root`."""
    values: dict[str, Any] = {}
    for name, (path, form) in _table("facts")[part].items():
        values[name] = None
        with contextlib.suppress(ValueError, IndexError):
            value = _READERS[form](read_text(root / path) or "")
            values[name] = None if value == "" else value
    return values


def _machine_id(root: Path) -> str | None:
    """The id of this installation, hashed, because systemd's id is confidential."""
    text = read_text(root / "etc/machine-id") or ""
    if not re.fullmatch("[0-9a-f]{32}", text):  # an image of a machine that never ran says "uninitialized"
        return None
    return hmac.new(text.encode(), b"hockney", "sha256").hexdigest()[:32]


def _os(root: Path) -> dict[str, Any]:
    release = re.search(r"^PRETTY_NAME=[\"']?(.*?)[\"']?$", read_text(root / "etc/os-release") or "", re.MULTILINE)
    mac = f"macOS {platform.mac_ver()[0]}" if sys.platform == "darwin" else None
    return {
        "name": release[1] if release else mac,
        "kernel": f"{platform.system()} {platform.release()}",
        "architecture": platform.machine(),
    }


def _cpu(root: Path) -> dict[str, Any]:
    first = (read_text(root / "proc/cpuinfo") or "").partition("\n\n")[0]
    pairs = (line.partition(":") for line in first.splitlines())
    cpuinfo = {key.strip().lower(): value.strip() for key, _, value in pairs}
    folder = root / _CPUS
    boost, no_turbo = read_int(folder / "cpufreq/boost"), read_int(folder / "intel_pstate/no_turbo")
    governors = {read_text(folder / f"cpu{cpu}/cpufreq/scaling_governor") for cpu in usable_cpus()}
    # How long the deepest allowed sleep of an idle CPU takes to end: it adds to every blocking receive.
    exits_us = [
        read_int(state / "latency") or 0
        for state in (folder / "cpu0/cpuidle").glob("state[0-9]*")
        if read_int(state / "disable") == 0
    ]
    megahertz = cpuinfo.get("cpu mhz")  # the only source where a hypervisor hides the rest
    return {
        "model": _model(root, cpuinfo),
        "microcode": cpuinfo.get("microcode"),
        "governors": sorted(name for name in governors if name),
        "frequency_now_hz": round(float(megahertz) * 1e6) if megahertz else None,
        "boost": bool(boost) if boost is not None else not no_turbo if no_turbo is not None else None,
        "idle_exit_max_us": max(exits_us, default=None),
    }


def _model(root: Path, cpuinfo: Mapping[str, str]) -> str | None:
    keys = ("model name", "cpu model", "cpu", "uarch")  # keys on x86, MIPS, POWER, RISC-V
    named = next((cpuinfo[key] for key in keys if cpuinfo.get(key)), None)
    if named or root != ROOT:
        return named
    # Arm names only numbers, which lscpu knows to read.
    listed = re.search(r"^Model name: +(.+)$", _ask(["lscpu"]) or "", re.MULTILINE)
    return listed[1] if listed else _ask(["sysctl", "-n", "machdep.cpu.brand_string"])


def _memory(root: Path) -> dict[str, int | None]:
    text = read_text(root / "proc/meminfo") or ""
    bytes_of = {name: int(kib) * 1024 for name, kib in re.findall(r"^(\w+): +(\d+) kB$", text, re.MULTILINE)}
    page_bytes = os.sysconf("SC_PAGE_SIZE")
    installed = page_bytes * os.sysconf("SC_PHYS_PAGES") if root == ROOT else None
    return {
        "total_bytes": bytes_of.get("MemTotal", installed),
        "available_bytes": bytes_of.get("MemAvailable"),
        "page_bytes": page_bytes,
    }


def _names(root: Path, kind: str) -> list[str]:
    return sorted(path.name for path in (root / "sys/class" / kind).glob("*"))


def _interfaces(root: Path) -> list[dict[str, Any]]:
    """Interfaces of real or virtual hardware. Most virtual machines do not say their line rate."""
    interfaces = []
    classes = root / "sys/class"
    for path in (classes / kind / name for kind in ("net", "infiniband") for name in _names(root, kind)):
        if not (path / "device").exists():
            continue
        driver, megabits = path / "device" / "driver", read_int(path / "speed") or 0
        interfaces.append(
            {
                "name": path.name,
                "driver": driver.resolve().name if driver.exists() else None,
                "bits_per_s": megabits * 1_000_000 if megabits > 0 else None,
            }
        )
    return interfaces


def _default_interface(root: Path) -> str | None:
    """The interface of the default route of IPv4."""
    rows = [line.split() for line in (read_text(root / "proc/net/route") or "").splitlines()]
    return next((row[0] for row in rows if row[1:2] == ["00000000"]), None)


def _devices(root: Path) -> list[dict[str, Any]]:
    """Each GPU and network device on PCI; what is None, or missing, is not known, as most is of virtual ones.

    `slot_` is what the device is plugged into; `apart` is what an IOMMU keeps together, `switch` the PCIe switch above.
    """
    devices, gpus = [], _gpus(root)
    for path in sorted((root / "sys/bus/pci/devices").glob("*")):
        kind = {"0x02": "network", "0x03": "gpu", "0x12": "gpu"}.get((read_text(path / "class") or "")[:4])
        if kind is None or (kind == "gpu" and read_text(path / "vendor") not in _GPU_MAKERS):
            continue
        slot, group = path.resolve().parent, path / "iommu_group"
        device = {"kind": kind, "name": f"{kind} {path.name}", **_contents(path, "device")}
        device |= {f"slot_{key}": value for key, value in _contents(slot, "device").items() if key.endswith("_max")}
        device["apart"] = group.resolve().name if group.exists() else None
        device["switch"] = slot.parent.name if slot.parent.name.count(":") == 2 else None
        for net in sorted(path.glob("net/*"))[:1]:
            device |= {"name": net.name, "interface": net.name, **_contents(net, "interface")}
        for port in sorted(path.glob("infiniband/*/ports/1"))[:1]:
            device |= {"name": port.parents[1].name, **_contents(port, "port")}
        devices.append(device | gpus.get(path.name, {}))
    return devices


def _gpus(root: Path) -> dict[str, dict[str, Any]]:
    """What the driver of NVIDIA says of each GPU, by the address of its device."""
    query = f"--query-gpu={','.join(_GPU_FIELDS)}"
    has_driver = (root / "proc/driver/nvidia").exists()
    said = _ask(["nvidia-smi", query, "--format=csv,noheader,nounits"]) if has_driver else None
    links = re.split(r"^GPU \d+", _ask(["nvidia-smi", "nvlink", "-s"]) or "" if said else "", flags=re.MULTILINE)[1:]
    rows = [row for line in (said or "").splitlines() if len(row := line.split(", ")) == len(_GPU_FIELDS)]
    return {
        address[-12:].lower(): {
            "name": name,
            "slowed": bool(int(reasons, 16) & _SLOWED) if reasons.startswith("0x") else None,
            "errors": int(errors) if errors.isdecimal() else None,
            "nvlinks": text.count("GB/s"),
            "nvlinks_off": text.count("<inactive>"),
        }
        for (address, name, reasons, errors), text in zip(rows, [*links, *[""] * len(rows)], strict=False)
    }


def _modules(root: Path) -> dict[str, int | None]:
    """Sockets and modules of memory with their speeds, which only root may read (SMBIOS, type 17), and errors."""
    sockets, speeds = 0, list[tuple[int, int]]()  # as they run, and as they could
    for path in (root / "sys/firmware/dmi/entries").glob("17-*/raw"):
        with contextlib.suppress(OSError):
            raw, sockets = path.read_bytes(), sockets + 1
            size, most, now = (int.from_bytes(raw[at : at + 2], "little") for at in (0x0C, 0x15, 0x20))
            speeds += [(now or most, most)] if size not in (0, 0xFFFF) and most else []
    errors = [read_int(path) or 0 for path in (root / "sys/devices/system/edac/mc").glob("mc*/[cu]e_count")]
    return {
        "sockets": sockets or None,
        "modules": len(speeds) or None,
        "mt_per_s": min((now for now, _ in speeds), default=None),
        "mt_per_s_max": min((most for _, most in speeds), default=None),
        "errors": sum(errors) if errors else None,
    }


def _software(compiler: Mapping[str, str | None]) -> dict[str, Any]:
    from hockney.version import __version__

    return {
        "hockney": __version__,
        "commit": _commit(),
        "python": platform.python_version(),
        "c_compiler": None,
        "c_options": None,
        **compiler,
        "libc": " ".join(platform.libc_ver()).strip() or None,
    }


@functools.cache  # it belongs to the code that runs, and asking takes 20 ms
def _commit() -> str | None:
    """The commit of the checkout that hockney runs from, `-dirty` if it was changed since."""
    checkout = Path(__file__).resolve().parents[3]
    if not (checkout / ".git").exists() or not (checkout / "src/hockney").is_dir():
        return None  # installed as a package, and perhaps into somebody else's checkout
    argv = ["git", "--no-optional-locks", "-C", str(checkout), "describe", "--always", "--dirty", "--abbrev=12"]
    return _ask([*argv, "--exclude=*"])


def _ask(argv: list[str]) -> str | None:
    """The output of a program; None if it is not there, fails or hangs."""
    options: dict[str, Any] = {"stdin": subprocess.DEVNULL, "capture_output": True, "text": True, "errors": "replace"}
    try:
        done = subprocess.run(argv, timeout=2, check=True, env={**os.environ, "LC_ALL": "C"}, **options)
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip() or None


def read_hypervisor(root: Path) -> str | None:
    """The hypervisor's name, "unknown" if there is one without a name; None on bare metal, or if that is unknown."""
    lines = (read_text(root / "proc/cpuinfo") or "").splitlines()
    flags = next((line.split() for line in lines if line.startswith("flags")), [])
    is_guest = "hypervisor" in flags
    if flags and not is_guest:
        return None  # x86 always reports it, and some clouds sell whole machines under the same firmware name
    text = " ".join(read_text(root / name) or "" for name in _table("surroundings")["files"]).lower()
    named = (name for mark, name in _table("surroundings")["hypervisors"].items() if mark in text)
    return next(named, "unknown" if is_guest else None)


def read_container(root: Path, environment: Mapping[str, str]) -> str | None:
    """The kind of container that this process lives in; None for none, or for one that does not show."""
    groups, known = read_text(root / "proc/1/cgroup") or "", _table("surroundings")
    signs = (
        *(name for variable, name in known["variables"].items() if environment.get(variable)),
        *(name for mark, name in known["groups"].items() if mark in groups),
        *(name for path, name in known["paths"].items() if (root / path).exists()),
    )
    return next(iter(signs), None)
