"""What stands between this machine and the hardware: a hypervisor, a container, a limit on CPU time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from hockney.machine.files import read_int, read_text

# What firmware calls itself, in lower case, and whose it is. Hyper-V's maker also makes real machines.
_FIRMWARE = (
    ("vmware", "VMware"),
    ("virtualbox", "VirtualBox"),
    ("innotek", "VirtualBox"),
    ("microsoft corporation virtual machine", "Hyper-V"),
    ("xen", "Xen"),
    ("qemu", "KVM"),
    ("kvm", "KVM"),
    ("google compute engine", "KVM"),
    ("amazon ec2", "KVM"),
    ("openstack", "KVM"),
    ("bochs", "KVM"),
    ("parallels", "Parallels"),
    ("apple virtualization", "Apple"),
)
# Clocks that a hypervisor offers its guests; small ones have no firmware tables to look at.
_CLOCKS = (("kvm-clock", "KVM"), ("hyperv", "Hyper-V"), ("xen", "Xen"), ("vmware", "VMware"))
_CONTAINER_GROUPS = (
    ("kubepods", "Kubernetes"),
    ("docker", "Docker"),
    ("libpod", "Podman"),
    ("lxc", "LXC"),
    ("containerd", "containerd"),
)
_CONTAINER_VARIABLES = (
    ("APPTAINER_CONTAINER", "Apptainer"),
    ("SINGULARITY_CONTAINER", "Singularity"),
    ("KUBERNETES_SERVICE_HOST", "Kubernetes"),
)


def read_hypervisor(root: Path) -> str | None:
    """The hypervisor's name, "unknown" if there is one without a name; None on bare metal, or if nobody can tell."""
    cpuinfo = read_text(root / "proc/cpuinfo") or ""
    flags = next((line for line in cpuinfo.splitlines() if line.startswith("flags")), "")
    is_guest = " hypervisor" in flags
    if flags and not is_guest:
        return None  # x86 always tells, and some clouds sell whole machines under the same firmware name
    folder = root / "sys/class/dmi/id"
    firmware = f"{read_text(folder / 'sys_vendor')} {read_text(folder / 'product_name')}".lower()
    clocks = read_text(root / "sys/devices/system/clocksource/clocksource0/available_clocksource") or ""
    tree = read_text(root / "proc/device-tree/hypervisor/compatible")
    named = next((name for mark, name in _FIRMWARE if mark in firmware), None) or next(
        (name for mark, name in _CLOCKS if mark in clocks), None
    )
    if named is None and ((root / "sys/hypervisor/type").exists() or tree):
        named = (tree or read_text(root / "sys/hypervisor/type") or "unknown").partition(",")[2] or "Xen"
    return named or ("unknown" if is_guest else None)


def read_container(root: Path, environment: Mapping[str, str]) -> str | None:
    """The kind of container that this process lives in; None for none, or for one that does not show."""
    for variable, name in _CONTAINER_VARIABLES:
        if environment.get(variable):
            return name
    groups = read_text(root / "proc/1/cgroup") or ""
    named = next((name for mark, name in _CONTAINER_GROUPS if mark in groups), None)
    if named:
        return named
    if (root / "run/.containerenv").exists():
        return "Podman"
    return "Docker" if (root / ".dockerenv").exists() else None


def read_quota_cpus(root: Path) -> float | None:
    """How many CPUs' worth of time the cgroups of this process may use; None: no limit.

    Limits hold for all below, so the tightest on the way up counts.
    """
    found: list[float] = []
    for folder in _own_groups(root):
        limit, _, period = (read_text(folder / "cpu.max") or "").partition(" ")  # cgroup 2
        if limit.isdigit() and period.isdigit() and int(period) > 0:
            found.append(int(limit) / int(period))
        quota_us, period_us = read_int(folder / "cpu.cfs_quota_us"), read_int(folder / "cpu.cfs_period_us")
        if quota_us is not None and period_us and quota_us > 0:
            found.append(quota_us / period_us)
    return min(found, default=None)


def _own_groups(root: Path) -> Iterator[Path]:
    """Every folder from this process's cgroup up to the mount point, for each hierarchy that may limit CPUs."""
    mounts = root / "sys/fs/cgroup"
    for line in (read_text(root / "proc/self/cgroup") or "").splitlines():
        _, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        if not controllers:
            tops = [mounts, mounts / "unified"]
        elif "cpu" in controllers.split(","):
            tops = [mounts / controllers, mounts / "cpu"]
        else:
            continue
        for top in tops:
            # A container may see the path on the host without its folders; the mount point is then its own group.
            here = top / path.strip("/")
            while True:
                yield here
                if here == top or top not in here.parents:
                    break
                here = here.parent
