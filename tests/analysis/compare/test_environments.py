"""What differs between the machines, libraries and settings of two runs."""

from __future__ import annotations

from typing import Any

import pytest
from tests.analysis.compare.made import add_run, curve

from hockney.analysis.compare import Difference, compare_runs
from hockney.model import IMPORTED, Warning_
from hockney.results.store import Store

SET = {"UCX_TLS": "tcp", "OMPI_MCA_btl": "tcp,self"}


@pytest.mark.parametrize(
    ("before", "after", "differs"),
    [
        ("MPICH 4.0.2 (ch4:ucx)", "MPICH 4.0.2 (ch4:ucx)", False),
        ("MPICH 4.0.2 (ch4:ucx)", "MPICH 4.0.2 (ch4:ofi)", True),
        ("Open MPI 4.1.4 (ob1:vader:cma tcp)", "Open MPI 4.1.4 (ob1:tcp)", True),
    ],
)
def test_another_library_or_device_is_a_difference(store: Store, before: str, after: str, differs: bool) -> None:
    base, new = (add_run(store, curve("mpi"), libraries={"mpi": library}) for library in (before, after))
    expected = (Difference("library, mpi", before, after),) if differs else ()
    assert compare_runs(store, base, new).differences == expected


@pytest.mark.parametrize(
    ("facts", "later", "expected"),
    [
        (
            {
                "cpu": {"governors": ["performance"]},
                "os": {"kernel": "6.1"},
                "environment": {},
                "limits": {"nice": 0, "can_pin": True},
            },
            {
                "cpu": {"governors": ["powersave"]},
                "os": {"kernel": "6.6"},
                "limits": {"nice": 19, "can_pin": False},
                "environment": {"OMPI_MCA_btl": "tcp"},
            },
            {
                "niceness": ("0", "19"),
                "pinning possible": ("yes", "no"),
                "governor": ("performance", "powersave"),
                "kernel": ("6.1", "6.6"),
                "variable OMPI_MCA_btl": ("not set", "tcp"),
            },
        ),
        (
            {},
            {"environment": {"OMPI_MCA_btl": "tcp", "OMPI_MCA_pml": ""}},
            {"variable OMPI_MCA_btl": (None, "tcp"), "variable OMPI_MCA_pml": (None, "empty")},
        ),
    ],
)
def test_differences_of_the_environments_are_named(
    store: Store, facts: dict[str, Any], later: dict[str, Any], expected: dict[str, tuple[str | None, str]]
) -> None:
    base = add_run(store, curve(), facts=facts, version="0.0.9")
    new = add_run(store, curve(), facts=later, seed=2)
    differences = {each.what: (each.base, each.new) for each in compare_runs(store, base, new).differences}
    assert differences == {"hockney": ("0.0.9", "0.1.0"), **expected}


def test_variables_are_the_first_differences(store: Store) -> None:
    """A check that finds nothing slower names three differences at most, and a variable is among them."""
    facts: list[dict[str, Any]] = [
        {"hostname": name, "cpu": {"model": name}, "environment": known} for name, known in (("a", {}), ("b", SET))
    ]
    runs = [add_run(store, curve("mpi"), libraries={"mpi": of["hostname"]}, facts=of) for of in facts]
    told = [each.what for each in compare_runs(store, *runs).differences]
    assert told == ["variable OMPI_MCA_btl", "variable UCX_TLS", "library, mpi", "host", "CPU"]


@pytest.mark.parametrize("imported", [(True, False), (False, True), (True, True)])
def test_what_an_imported_run_does_not_say_is_no_difference(store: Store, imported: tuple[bool, bool]) -> None:
    facts = {"cpu": {"model": "A"}}, {"cpu": {"model": "B"}, "os": {"kernel": "6.1"}}
    plans: list[dict[str, Any]] = [{IMPORTED: []} if is_imported else {"interface": "eth0"} for is_imported in imported]
    runs = [add_run(store, curve(), facts=of, plan=plan) for of, plan in zip(facts, plans, strict=True)]
    assert compare_runs(store, *runs).differences == (Difference("CPU", "A", "B"),)


def test_another_launcher_or_interface_is_a_difference(store: Store) -> None:
    base = add_run(store, curve(), plan={})
    new = add_run(store, curve(), seed=2, plan={"launcher": "auto", "interface": "eth0"})
    other = add_run(store, curve(), seed=3, plan={"launcher": "srun", "interface": None})
    assert compare_runs(store, base, new).differences == (Difference("network interface", "not set", "eth0"),)
    assert compare_runs(store, base, other).differences == (Difference("launcher", "auto", "srun"),)


def test_contention_in_a_run_is_listed(store: Store) -> None:
    base, new = add_run(store, curve()), add_run(store, curve(), seed=2)
    busy = "Other programs used 1.0 CPUs when the run began."
    store.add_warning(new, Warning_("load", "machine", busy, "Stop them."))
    store.add_warning(new, Warning_("virtual", "machine", "This is a virtual machine.", "Nothing."))
    for share in ("3 %", "5 %"):  # a run that is resumed checks again
        store.add_warning(new, Warning_("steal", "machine", f"The hypervisor took {share}.", "Use its host."))
    during = [f"sh used 0.8 CPUs during {when} launches." for when in ("3 of 5", "2 of 5 more")]
    for cause in during:  # but those launches stay unchanged
        store.add_warning(new, Warning_("others", "machine", cause, "Stop it."))
    contention = compare_runs(store, base, new).contention
    assert {event.run for event in contention} == {new}
    assert [event.cause for event in contention] == [busy, "The hypervisor took 5 %.", *during]
