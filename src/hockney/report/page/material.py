"""The input of a report's sections: the runs, read once."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hockney.analysis.explain import Explanation, explain_run
from hockney.analysis.explain.curve import Reading
from hockney.analysis.explain.read import read_run
from hockney.analysis.host_series import SUITE
from hockney.analysis.repeat import resume
from hockney.errors import HockneyError
from hockney.report.charts import COLORS, DASHES
from hockney.report.commands import command_line
from hockney.report.document import Section
from hockney.report.documents.rates import rates_section
from hockney.report.page.curves import CurveData, curves_of
from hockney.report.sheet import Sheet, make_sheet
from hockney.report.words import readable_names
from hockney.results.rates import highest_rates
from hockney.results.runs import Results, Run


@dataclass(frozen=True)
class Material:
    """The first run, the subject of the page, with everything derived from it, and the other runs.

    `reading` and `explanation` are None if no figure has an interval, `sheet` for another suite than quick, `rates` if
    no rate was searched. `curves` are of all runs. `names` are the readable ones of transports.
    """

    results: Results
    run: Run
    others: tuple[Run, ...]
    sheet: Sheet | None
    rates: Section | None
    reading: Reading | None
    explanation: Explanation | None
    curves: Sequence[CurveData]
    names: Mapping[str, str]

    def name_of(self, transport: str, run: int | None = None) -> str:
        """The readable name of a transport; where there are several runs with that of its run, if it is given."""
        name = self.names.get(transport, transport)
        return f"{name}, {self.run_names[run]}" if self.others and run is not None else name

    @property
    def runs(self) -> tuple[Run, ...]:
        return (self.run, *self.others)

    def pingpongs(self, run: Run) -> list[CurveData]:
        """The ping-pong of each transport of a run, in the state that tables show."""
        of_two = [curve for curve in self.curves if curve.run == run.id and curve.is_main and curve.ranks == 2]
        return [curve for curve in of_two if curve.pattern == "pingpong"]

    @functools.cached_property
    def run_names(self) -> dict[int, str]:
        """What distinguishes each run: the one or two variables that differ, its label, or its number."""
        environments = [each.facts.get("environment") or {} for each in self.runs]
        known = dict.fromkeys(name for environment in environments for name in environment)
        differing = [name for name in known if len({each.get(name) for each in environments}) > 1]
        settings = [
            ", ".join(f"{name.removeprefix('OMPI_MCA_')}={each[name]}" for name in differing if name in each)
            for each in environments
        ]
        labels, numbers = [each.label or "" for each in self.runs], [f"run {each.id}" for each in self.runs]
        named = [settings] * (len(differing) <= 2) + [labels] * all(labels)
        distinct = next((names for names in named if len(set(names)) == len(names)), numbers)
        return {each.id: name or "default" for each, name in zip(self.runs, distinct, strict=True)}

    @functools.cached_property
    def color_of(self) -> dict[str, int]:
        """The number of each transport in the list of colours."""
        return {name: number for number, name in enumerate(dict.fromkeys(curve.transport for curve in self.curves))}

    def look(self, transport: str, run: int) -> dict[str, Any]:
        """The colour and the dashes of a curve: those of its transport and run."""
        number, count = [each.id for each in self.runs].index(run), len(self.color_of)
        shift = number * count if count * len(self.runs) <= COLORS else 0
        return {"color": self.color_of[transport] + shift, "dash": DASHES[number % len(DASHES)]}


def material_of(results: Results, run: Run, others: Sequence[Run]) -> Material:
    """Read the runs; `others` are compared with the first one."""
    try:
        reading = read_run(run)
    except HockneyError:  # no figure has an interval
        reading = None
    runs, highest = (run, *others), highest_rates(run)
    return Material(
        results=results,
        run=run,
        others=tuple(others),
        sheet=make_sheet(run) if run.info.suite == "quick" else None,
        rates=rates_section(highest, go_on=command_line(resume(run.id, run.info))) if highest else None,
        reading=reading,
        explanation=explain_run(run, reading) if reading is not None or run.info.suite == SUITE else None,
        curves=[curve for each in runs for curve in curves_of(each)],
        names=readable_names([launch for each in runs for launch in each.launches.values()]),
    )
