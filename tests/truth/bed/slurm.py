"""A real Slurm on the hosts of a bed, private to it: its daemons run inside, and always end with it.

    with Bed([Host(), Host()]) as bed, Slurm(bed, folder) as slurm:
        slurm.run(["sbatch", "--wait", "--nodes=2", "job.sh"])

All its files are in the given folder, and its ports belong to the hosts' networks.
"""

from __future__ import annotations

import os
import secrets
import shutil
import signal
import subprocess
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from tests.truth.bed.bed import Bed, PutUp

_PROGRAMS = ("munged", "slurmctld", "slurmd", "sbatch", "srun")
_LIMIT_S = 60
_CONF = """
ClusterName=bed
SlurmctldHost=n1
SlurmUser=root
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool-%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd-%n.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd-%n.log
SlurmctldSyslogDebug=quiet
SlurmdSyslogDebug=quiet
TmpFS={folder}/tmp-%n
ProctrackType=proctrack/linuxproc
TaskPlugin=task/affinity
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
MailProg=/bin/true
MpiDefault=none
ReturnToService=2
SlurmdParameters=config_overrides
NodeName={names} CPUs={cpus} State=UNKNOWN
PartitionName=p Nodes=ALL Default=YES MaxTime=5 State=UP
"""


def why_not_here() -> str | None:
    """Why there can be no Slurm here, or None."""
    missing = [name for name in _PROGRAMS if shutil.which(name) is None]
    return f"not here: {', '.join(missing)}; scripts/runtimes installs them" if missing else None


class Slurm(PutUp):
    """Each host of the bed is a node with `cpus` CPUs. Jobs end after 5 minutes at the latest."""

    def __init__(self, bed: Bed, folder: Path, cpus: int = 1) -> None:
        self._bed = bed
        self._folder = folder
        self._cpus = cpus
        self._daemons: list[subprocess.Popen[bytes]] = []
        self._environment = {**os.environ, "SLURM_CONF": str(folder / "slurm.conf")}

    def _begin(self) -> None:
        for name in ("state", *(f"{kind}-{host}" for kind in ("spool", "tmp") for host in self._bed.names)):
            (self._folder / name).mkdir()
        conf = _CONF.format(folder=self._folder, names=",".join(self._bed.names), cpus=self._cpus)
        (self._folder / "slurm.conf").write_text(conf, encoding="ascii")
        key = self._folder / "munge.key"
        key.touch(mode=0o600)
        key.write_bytes(secrets.token_bytes(128))
        files = [f"--{name}-file={self._folder}/munge.{name}" for name in ("key", "pid", "log", "seed")]
        socket = self._folder / "munge.socket"
        # --force: the folder may be below one that others may write to, as /tmp is.
        self._start("n1", "munged", "--foreground", "--force", *files, f"--socket={socket}")
        self._wait(socket.exists)
        self._start("n1", "slurmctld", "-D")
        for host in self._bed.names:
            self._start(host, "slurmd", "-D", "-N", host)
        self._wait(self._all_idle)

    def run(self, command: Sequence[str], *, limit_s: float = 120, **options: Any) -> Any:
        """The ended process of a command on the first host, which talks to this Slurm."""
        return self._bed.run("n1", command, limit_s=limit_s, **{"env": self._environment, **options})

    def _start(self, host: str, program: str, *options: str) -> None:
        """Start a daemon; its first words go to a file, later ones to its log."""
        argv = self._bed.argv(host, [program, *options])
        with (self._folder / f"{program}-{host}.out").open("wb") as out:
            self._daemons.append(
                subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=out, stderr=out, env=self._environment)
            )

    def _end(self) -> None:
        """End the daemons; then the processes that lead into the bed to them end. Steps of jobs end with the bed."""
        for daemon in self._daemons:
            children = Path(f"/proc/{daemon.pid}/task/{daemon.pid}/children")
            with suppress(FileNotFoundError, ProcessLookupError):  # ended already
                for child in children.read_text(encoding="ascii").split():
                    os.kill(int(child), signal.SIGKILL)
        self._wait(lambda: all(daemon.poll() is not None for daemon in self._daemons))

    def _all_idle(self) -> bool:
        nodes = self.run(["sinfo", "--noheader", "--Node", "--states=idle"]).stdout
        return len(nodes.splitlines()) == len(self._bed.names)

    def _wait(self, condition: Any) -> None:
        deadline_s = time.monotonic() + _LIMIT_S
        while not condition():
            if time.monotonic() > deadline_s:
                said = [path.read_text(errors="replace")[-1000:] for path in self._folder.glob("*.out")]
                raise RuntimeError("Slurm does not come up, or does not end: " + "\n".join(said))
            time.sleep(0.1)
