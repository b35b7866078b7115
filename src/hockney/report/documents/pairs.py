"""Values between all pairs of ranks, or of hosts, for the screen, Markdown, the page, pictures and JSON."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from hockney.analysis.clusters import Pair
from hockney.analysis.health import Health
from hockney.analysis.pairs import PairMatrix, pair_matrices
from hockney.report.charts import PairUnit, PairValues
from hockney.report.document import Block, Matrix, Text, Title
from hockney.report.documents.tables import TableKind
from hockney.report.findings import class_text, inconclusive_text, outlier_text
from hockney.report.notes import one_launch
from hockney.results.runs import Run
from hockney.stats import Interval
from hockney.units import counted, format_bytes, format_ns, format_rate

HOSTS_MAX = 64
"""More have no matrix that can be read as text."""
_TEXTS: Mapping[PairUnit, Callable[[float], str]] = {"ns": format_ns, "bytes/s": format_rate}


def rank_values(matrix: PairMatrix, name_of: Callable[[str], str]) -> PairValues:
    """The times of a matrix; `name_of` a transport. A pair measured one way has that time both ways."""
    import numpy as np

    values = np.full((matrix.ranks, matrix.ranks), np.nan)
    for (a, b), time in matrix.shown.items():
        values[a, b] = time.value
        if (b, a) not in matrix.shown:
            values[b, a] = time.value
    load = "one pair at a time" if matrix.load == "idle" else "disjoint pairs at once"
    options = "".join(f", {name}={value}" for name, value in matrix.options)
    where = f"{name_of(matrix.transport)}, {format_bytes(matrix.bytes)}, {matrix.ranks} ranks"
    others = [f"{counted(matrix.others, 'pair')} in another machine state, or in several"] if matrix.others else []
    return PairValues(
        name=f"{where}, {load}{options}",
        ends="ranks",
        unit="ns",
        values=values,
        hosts=matrix.hosts if len(set(matrix.hosts)) > 1 else (),
        classes=(*map(class_text, matrix.classes), *others),
        missing=matrix.missing,
        cpus=matrix.cpus,
        framed=tuple(outlier.ranks for outlier in matrix.outliers),
        outliers=tuple(outlier_text(outlier, matrix.hosts) for outlier in matrix.outliers),
        inconclusive=tuple(inconclusive_text(pair, matrix.hosts) for pair in matrix.inconclusive[:5]),
        oversubscribed=matrix.oversubscribed,
    )


def host_values(health: Health) -> Iterator[PairValues]:
    """The bandwidth, then the latency; each only if it was measured."""
    import numpy as np

    known = health.matrices
    kinds: tuple[tuple[str, PairUnit, float | None, Mapping[Pair, Interval]], ...] = (
        ("Bandwidth, all pairs of a round at once", "bytes/s", known.usual_bytes_per_s, known.bytes_per_s),
        ("Latency of 8 B, half a round trip", "ns", known.usual_ns, known.latency_ns),
    )
    for name, unit, usual, measured in kinds:
        if usual is not None:
            values = np.full((len(known.hosts),) * 2, np.nan)
            for pair, interval in measured.items():
                values[pair] = interval.value
            missing = values.size - len(known.hosts) - len(measured)
            usually = f"usually {_TEXTS[unit](usual)}"
            framed = tuple(_ends_of(health))
            yield PairValues(name, "hosts", unit, values, known.hosts, (usually,), missing, framed=framed)


def _ends_of(health: Health) -> Iterator[tuple[int, ...]]:
    """The host, or both of a link, that each finding is about."""
    at = {name: number for number, name in enumerate(health.matrices.hosts)}
    for facts in (finding.facts for finding in health.findings):
        link = tuple(facts[end] for end in ("host", "other") if end in facts)
        for names in [link] if link else [(host,) for host in facts.get("hosts", ())]:
            if at.keys() >= {*names}:
                yield tuple(at[name] for name in names)


def pair_block(matrix: PairValues, title: str = "") -> Matrix:
    """The values as a block of a document."""
    values = [[None if math.isnan(value) else value for value in row] for row in matrix.values.tolist()]
    return Matrix(title or f"{matrix.name}: {', '.join(matrix.classes)}", matrix.names, values, matrix.unit)


def pairs_as_json(matrices: Iterable[PairMatrix]) -> dict[str, Any]:
    """For --json: `time_ns[source][target]` with its interval, null on the diagonal and for pairs without one."""
    documents = []
    for matrix in matrices:
        nodes = range(matrix.ranks)
        times = [[matrix.shown.get((a, b)) or matrix.shown.get((b, a)) for b in nodes] for a in nodes]
        ends = square_json(times, {"time_ns": "value", "low_ns": "low", "high_ns": "high"})
        outliers = [{**asdict(outlier), "factor": outlier.factor} for outlier in matrix.outliers]
        document = asdict(matrix) | ends | {"outliers": outliers}
        del document["times"], document["shown"]
        documents.append(document)
    return {"matrices": documents}


def square_json(rows: Sequence[Sequence[object]], names: Mapping[str, str]) -> dict[str, list[list[Any]]]:
    """A square for each name, of one attribute of its values; null where there is no value."""
    return {name: [[getattr(cell, of, None) for cell in row] for row in rows] for name, of in names.items()}


def matrix_blocks(matrix: PairMatrix) -> Iterator[Block]:
    """It with its classes and outliers."""
    floor = "" if matrix.floor_ns is None else f", floor {format_ns(matrix.floor_ns)}"
    values = rank_values(matrix, str)
    title = f"Half a round trip: {values.name} ({matrix.state}{floor})"
    if matrix.ranks <= HOSTS_MAX:
        yield pair_block(values, title)
    else:
        yield Title(title)
        yield Text(f"The matrix of {matrix.ranks} ranks is in --json only.")
    if matrix.oversubscribed:
        yield Text("There were more ranks than CPUs: scheduling times, not the transport's own.")
    if matrix.missing:
        yield Text(f"{counted(matrix.missing, 'pair')} without a figure.")
    for text in values.classes:
        yield Text(text)
    for text in values.outliers:
        yield Text(f"! {text}", tone="caution")
    if matrix.inconclusive:
        count = counted(len(matrix.inconclusive), "pair")
        yield Text(f"? {count} inconclusive (--json has all): {values.inconclusive[0]}")


def _pairs(matrices: Iterable[PairMatrix], run: Run) -> Iterator[Block]:
    for matrix in matrices:
        yield from matrix_blocks(matrix)
    yield from one_launch(series.shown.interval_over for series in run.series if series.shown)


KIND = TableKind(pair_matrices, lambda matrices, run, *_: _pairs(matrices, run), pairs_as_json)
