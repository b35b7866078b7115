"""The input of the page's sections: the runs, read once."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from hockney.analysis.explain import Explanation
from hockney.analysis.explain.curve import Reading
from hockney.errors import Fix
from hockney.report.html.curves import CurveData
from hockney.report.sheet import Sheet
from hockney.results.runs import Results, Run


@dataclass(frozen=True)
class Material:
    """The first run, the subject of the page, with everything derived from it, and the other runs.

    `reading` and `explanation` are None if no figure has an interval, `sheet` for another suite than quick. `curves`
    are of all runs. `names` are the readable ones of transports; `command_line` writes a fix as a shell command.
    """

    results: Results
    run: Run
    others: tuple[Run, ...]
    sheet: Sheet | None
    reading: Reading | None
    explanation: Explanation | None
    curves: Sequence[CurveData]
    names: Mapping[str, str]
    command_line: Callable[[Fix], str]

    def name_of(self, transport: str) -> str:
        """The readable name of a transport."""
        return self.names.get(transport, transport)

    @property
    def runs(self) -> tuple[Run, ...]:
        """All runs, the first one first."""
        return (self.run, *self.others)
