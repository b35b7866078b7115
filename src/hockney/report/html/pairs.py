"""Times between all pairs of ranks, embedded as 16-bit numbers."""

from __future__ import annotations

import base64
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from hockney.analysis.health import health_of
from hockney.analysis.pairs import PairMatrix
from hockney.report.findings import class_text, inconclusive_text, outlier_text
from hockney.report.hosts import host_matrices
from hockney.report.html.charts import plain
from hockney.report.html.material import Material
from hockney.results.runs import Run
from hockney.units import format_bytes

if TYPE_CHECKING:
    from hockney.model import FloatArray

MISSING = 0xFFFF


@dataclass(frozen=True)
class MatrixItem:
    """The words next to a matrix."""

    name: str
    classes: tuple[str, ...]
    outliers: tuple[str, ...]
    inconclusive: tuple[str, ...]
    missing: int
    oversubscribed: bool
    values: str = "half round trips"
    ends: str = "ranks"


def matrices_of(material: Material) -> tuple[PairMatrix, ...]:
    """Those of the first run, idle before loaded."""
    matrices = material.reading.matrices if material.reading is not None else ()
    return tuple(sorted(matrices, key=lambda m: (m.transport, m.ranks, m.options, m.bytes, m.load)))


def matrix_item(material: Material, matrix: PairMatrix) -> MatrixItem:
    """Classes, outliers and missing pairs, in words."""
    load = "one pair at a time" if matrix.load == "idle" else "disjoint pairs at once"
    options = "".join(f", {name}={value}" for name, value in matrix.options)
    where = f"{material.name_of(matrix.transport)}, {format_bytes(matrix.bytes)}, {matrix.ranks} ranks"
    return MatrixItem(
        name=f"{where}, {load}{options}",
        classes=tuple(map(class_text, matrix.classes)),
        outliers=tuple(outlier_text(outlier, matrix.hosts) for outlier in matrix.outliers),
        inconclusive=tuple(inconclusive_text(pair, matrix.hosts) for pair in matrix.inconclusive[:5]),
        missing=matrix.missing,
        oversubscribed=matrix.oversubscribed,
    )


def matrix_times_ns(matrix: PairMatrix) -> FloatArray:
    """A row for each rank; NaN where a pair has no time. A pair measured one way has that time both ways."""
    import numpy as np

    times = np.full((matrix.ranks, matrix.ranks), np.nan)
    for (a, b), time in matrix.times.items():
        times[a, b] = time.value
        if (b, a) not in matrix.times:
            times[b, a] = time.value
    return times


def matrix_json(matrix: PairMatrix, name: str) -> dict[str, Any]:
    """As the page embeds it: the logarithm of each time in 16 bits, row by row, little-endian.

    A time is low * exp(n * step); rounding costs step / 2, a ten-thousandth where the slowest pair takes a thousand
    times as long as the fastest. 65535 is a pair without a time.
    """
    return {
        **_encoded(matrix_times_ns(matrix)),
        "name": name,
        "unit": "ns",
        "hosts": list(matrix.hosts) if len(set(matrix.hosts)) > 1 else [],
        "cpus": list(matrix.cpus),
        "floor": plain(matrix.floor_ns),
        "outliers": [list(outlier.ranks) for outlier in matrix.outliers],
    }


def _encoded(values: FloatArray) -> dict[str, Any]:
    import numpy as np

    is_known = ~np.isnan(values)
    low, high = float(values[is_known].min()), float(values[is_known].max())
    step = max(math.log(high / low), 1e-9) / (MISSING - 1)
    numbers = np.full(values.shape, MISSING, dtype="<u2")
    numbers[is_known] = np.rint(np.log(values[is_known] / low) / step).astype("<u2")
    return {
        "ranks": len(values),
        "low": low,
        "step": step,
        "times": base64.b64encode(numbers.tobytes()).decode("ascii"),
    }


def of_hosts(run: Run) -> list[tuple[MatrixItem, dict[str, Any]]]:
    """The bandwidth and the latency between all hosts of a run of `health`."""
    import numpy as np

    health = health_of(run)
    hosts, made = health.matrices.hosts, []
    for matrix in host_matrices(health):
        values = np.full((len(hosts),) * 2, np.nan)
        for pair, interval in matrix.values.items():
            values[pair] = interval.value
        missing = values.size - len(hosts) - len(matrix.values)
        what = "bandwidths" if matrix.unit == "bytes/s" else "half round trips"
        title = matrix.title
        item = MatrixItem(title, (matrix.usually,), (), (), missing, oversubscribed=False, values=what, ends="hosts")
        words = {"name": title, "unit": matrix.unit, "hosts": list(hosts), "cpus": [], "floor": None, "outliers": []}
        made.append((item, {**_encoded(values), **words}))
    return made
