"""Facts about this machine.

`facts()` is stored with every run; `choose_cpus()` places the ranks; `StealMeter`, `observe()` and `Watch` measure the
load of others.
"""

from hockney.machine.activity import Moment, StealMeter, Watch, observe
from hockney.machine.facts import another_machine, facts, library_settings
from hockney.machine.placement import can_pin, choose_cpus, refuse_unusable, usable_cpus

__all__ = [
    "Moment",
    "StealMeter",
    "Watch",
    "another_machine",
    "can_pin",
    "choose_cpus",
    "facts",
    "library_settings",
    "observe",
    "refuse_unusable",
    "usable_cpus",
]
