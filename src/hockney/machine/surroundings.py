"""The layers between this machine and the hardware: a hypervisor, a container, a limit on CPU time."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from hockney.machine.files import read_int, read_text

# Parts of firmware names, and of the clocks that a hypervisor offers its guests. Hyper-V's maker also makes real
# machines; guests of KVM may have clocks of others.
_HYPERVISORS = (
    ("vmware", "VMware"),
    ("virtualbox", "VirtualBox"),
    ("innotek", "VirtualBox"),
    ("xen", "Xen"),
    *((mark, "KVM") for mark in ("qemu", "kvm", "google compute engine", "amazon ec2", "openstack", "bochs")),
    ("microsoft corporation virtual machine", "Hyper-V"),
    ("hyperv", "Hyper-V"),
    ("parallels", "Parallels"),
    ("apple virtualization", "Apple"),
)
_NAMING_FILES = (
    "sys/class/dmi/id/sys_vendor",
    "sys/class/dmi/id/product_name",
    "sys/devices/system/clocksource/clocksource0/available_clocksource",
    "proc/device-tree/hypervisor/compatible",
    "sys/hypervisor/type",
)
_CONTAINER_VARIABLES = {
    "APPTAINER_CONTAINER": "Apptainer",
    "SINGULARITY_CONTAINER": "Singularity",
    "KUBERNETES_SERVICE_HOST": "Kubernetes",
}
_CONTAINER_GROUPS = {
    "kubepods": "Kubernetes",
    "docker": "Docker",
    "libpod": "Podman",
    "lxc": "LXC",
    "containerd": "containerd",
}


def read_hypervisor(root: Path) -> str | None:
    """The hypervisor's name, "unknown" if there is one without a name; None on bare metal, or if that is unknown."""
    lines = (read_text(root / "proc/cpuinfo") or "").splitlines()
    flags = next((line.split() for line in lines if line.startswith("flags")), [])
    is_guest = "hypervisor" in flags
    if flags and not is_guest:
        return None  # x86 always reports it, and some clouds sell whole machines under the same firmware name
    text = " ".join(read_text(root / name) or "" for name in _NAMING_FILES).lower()
    return next((name for mark, name in _HYPERVISORS if mark in text), "unknown" if is_guest else None)


def read_container(root: Path, environment: Mapping[str, str]) -> str | None:
    """The kind of container that this process lives in; None for none, or for one that does not show."""
    groups = read_text(root / "proc/1/cgroup") or ""
    signs = (
        *(name for variable, name in _CONTAINER_VARIABLES.items() if environment.get(variable)),
        *(name for mark, name in _CONTAINER_GROUPS.items() if mark in groups),
        "Podman" if (root / "run/.containerenv").exists() else None,
        "Docker" if (root / ".dockerenv").exists() else None,
    )
    return next(filter(None, signs), None)


def read_quota_cpus(root: Path) -> float | None:
    """How many CPUs' worth of time the cgroups of this process may use; None: no limit.

    Limits hold for all below, so the tightest on the way up counts.
    """
    quotas = []
    for line in (read_text(root / "proc/self/cgroup") or "").splitlines():
        controllers, _, path = line.partition(":")[2].partition(":")
        if controllers and "cpu" not in controllers.split(","):
            continue
        top = root / "sys/fs/cgroup" / controllers
        group = top / path.strip("/")
        # A container may see the path on the host without its folders; the mount point is then its own group.
        for folder in (parent for parent in (group, *group.parents) if parent.is_relative_to(top)):
            quota, _, period = (read_text(folder / "cpu.max") or "").partition(" ")
            if not quota:  # cgroup 1
                quota, period = (str(read_int(folder / f"cpu.cfs_{name}_us")) for name in ("quota", "period"))
            if quota.isdigit() and period.isdigit():
                quotas.append(int(quota) / int(period))
    return min(quotas, default=None)
