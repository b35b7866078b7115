"""Fake machines, made of the files in which Linux describes them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path


def grow(root: Path, files: Mapping[str, str]) -> Path:
    """Write the files, which are named by their path under `root`."""
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


def two_sockets(root: Path) -> Path:
    """Two packages of two last-level caches of two cores of two threads: CPUs 0-7, and 8-15 as their siblings.

    Package, node and cache of a core go by its number: cores 0-3 and 4-7 are in a package, 0-1, 2-3, … share a cache.
    """
    files = {"sys/devices/system/cpu/online": "0-15\n"}
    for cpu in range(16):
        core = cpu % 8
        cache, package = core // 2, core // 4
        folder = f"sys/devices/system/cpu/cpu{cpu}"
        in_package = f"{4 * package}-{4 * package + 3},{8 + 4 * package}-{8 + 4 * package + 3}"
        files |= {
            f"{folder}/topology/core_cpus_list": f"{core},{core + 8}\n",
            f"{folder}/topology/package_cpus_list": f"{in_package}\n",
            f"{folder}/cache/index0/level": "1\n",
            f"{folder}/cache/index0/type": "Data\n",
            f"{folder}/cache/index0/size": "48K\n",
            f"{folder}/cache/index0/coherency_line_size": "64\n",
            f"{folder}/cache/index0/shared_cpu_list": f"{core},{core + 8}\n",
            f"{folder}/cache/index3/level": "3\n",
            f"{folder}/cache/index3/type": "Unified\n",
            f"{folder}/cache/index3/size": "32768K\n",
            f"{folder}/cache/index3/coherency_line_size": "64\n",
            f"{folder}/cache/index3/shared_cpu_list": f"{2 * cache}-{2 * cache + 1},{8 + 2 * cache}-{9 + 2 * cache}\n",
        }
    for node in range(2):
        folder = f"sys/devices/system/node/node{node}"
        files |= {
            f"{folder}/cpulist": f"{4 * node}-{4 * node + 3},{8 + 4 * node}-{11 + 4 * node}\n",
            f"{folder}/meminfo": f"Node {node} MemTotal:  1024 kB\nNode {node} MemFree: 1 kB\n",
        }
    return grow(root, files)


def stat(*cpus: tuple[int, int, int]) -> str:
    """/proc/stat with (busy, idle, steal) ticks of each CPU, and their sum first."""
    total = tuple(sum(column) for column in zip(*cpus, strict=True))
    lines = [("cpu ", total), *((f"cpu{place}", cpu) for place, cpu in enumerate(cpus))]
    return (
        "".join(f"{name} {busy} 0 0 {idle} 0 0 0 {steal} 0 0\n" for name, (busy, idle, steal) in lines) + "intr 5 4\n"
    )


def program(pid: int, name: str, ticks: int, *, began: int = 1, flags: int = 0, state: str = "S") -> dict[str, str]:
    """/proc/PID/stat of a program that has used these ticks of CPU time, a third of them in the kernel."""
    times = f"{ticks - ticks // 3} {ticks // 3}"
    return {f"proc/{pid}/stat": f"{pid} ({name}) {state} 1 1 1 0 -1 {flags} 0 0 0 0 {times} 0 0 20 0 1 0 {began} 0\n"}
