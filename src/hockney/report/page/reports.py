"""The figures of the five reports, redrawn: the results of each machine's model, with the published points.

The curves of the originals are lost. Lines are the models' (docs/machines.md), hollow marks the values of a text or
table.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from hockney.archive import Coordinate, Published, published
from hockney.archive.modelled import Modelled, modelled
from hockney.report.charts import Axis, Chart, Line, View, chart
from hockney.units import format_bytes, format_ns, format_rate

_SCALE = {"us": 1e3, "MB/s": 1e6, "%": 0.01}  # to ns, bytes/s and shares
_TIME, _RATE, _SHARE = Axis("", "ns"), Axis("", "bytes/s"), Axis("", "share", "linear")
_SIZES = Axis("message size", "bytes", "log2")
_MODES = ("nonblocking", "blocking")
_ANCOR_BYTES = 65500


def report_charts() -> list[Chart]:
    """One chart for each report, in the order of their dates."""
    return [_ancor(), _paragon(), _t3d(), _farms(), _sci()]


def _figures(report: str, **where: Coordinate) -> Iterator[tuple[Published, float]]:
    """The published figures, each with its value in ns, bytes/s or as a share."""
    for figure in published(report):
        if figure.value is not None and figure.matches(where):
            yield figure, figure.value * _SCALE[figure.unit]


def _value(report: str, **where: Coordinate) -> float:
    return next(_figures(report, **where))[1]


def _level(name: str, value: float, ends: tuple[float, float]) -> Line:
    """A level that was published without its point on the other axis."""
    return Line(name, [(end, value) for end in ends], "reference")


def _times(points: Iterable[Modelled]) -> list[tuple[float, float]]:
    return [(point.bytes, point.time_ns) for point in points if point.bytes]


def _rates(points: Iterable[Modelled]) -> list[tuple[float, float]]:
    return [(size, 1e9 * size / time_ns) for size, time_ns in _times(points)]


def _both(
    name: str, model: Iterable[tuple[float, float]], printed: Iterable[tuple[float, float]], number: int
) -> list[Line]:
    """The line of a model, and the published figures in the same colour."""
    return [
        Line(f"{name}, model", sorted(model), "model", color=number),
        Line(f"{name}, published", sorted(printed), "published", color=number),
    ]


# ---- Scali, 2000 ----------------------------------------------------------------------------------------------------


def _sci() -> Chart:
    scopes = {"between nodes": ("", "inter-node"), "within a node": ("within", "intra-node")}
    times, rates = list[Line](), list[Line]()
    for number, (name, (variant, scope)) in enumerate(scopes.items()):
        points = [point for point in modelled("scabench") if point.variant == variant]
        ends = (float(points[1].bytes), float(points[-1].bytes))
        where = {"benchmark": "ping-pong", "scope": scope}
        latency_ns, peak = _value("scabench", **where, bytes=0), _value("scabench", **where, metric="peak_bandwidth")
        times += _both(name, _times(points), [(32, _value("scabench", **where, bytes=32))], number)
        times.append(_level(f"{name}, 0 B: {format_ns(latency_ns)}", latency_ns, ends))
        rates.append(Line(f"{name}, model", _rates(points), "model", color=number))
        rates.append(_level(f"{name}, peak: {format_rate(peak)}", peak, ends))
    return chart("report-sci", "lines", _SIZES, _TIME, [View("latency", times), View("bandwidth", rates, y=_RATE)])


# ---- Paragon, 1995 --------------------------------------------------------------------------------------------------


def _paragon() -> Chart:
    names = {"": "NX csend/crecv", "psend": "pvm_psend/precv", "inplace": "PvmDataInPlace", "raw": "PvmDataRaw"}
    rate = _value("paragon", metric="asymptotic_bandwidth")
    lines = [
        Line(f"{name}, model", _rates(p for p in modelled("paragon") if p.variant == variant), "model", color=number)
        for number, (variant, name) in enumerate(names.items())
    ]
    lines.append(_level(f"NX, asymptote: {format_rate(rate)}", rate, (8, 4 << 20)))
    return chart("report-paragon", "lines", _SIZES, _RATE, [View("", lines)])


# ---- Ancor, 1994 ----------------------------------------------------------------------------------------------------


def _ancor() -> Chart:
    """The four modes, each with its three graphs: time, speed, CPU share, in both directions."""
    views = [view for write in _MODES for read in _MODES for view in _ancor_views(write, read)]
    first = views.pop(1)
    return chart("report-ancor", "lines", Axis("size of a write", "bytes", "log2"), _RATE, [first, *views])


def _ancor_views(write: str, read: str) -> list[View]:
    time, speed, share = list[Line](), list[Line](), list[Line]()
    spelt = {"write": write.replace("non", "non-"), "read": read.replace("non", "non-")}
    for number, (sender, name) in enumerate(((250, "250 to 590"), (590, "590 to 250"))):
        mode = {"write": write, "read": read, "source": str(number)}
        points = [
            point
            for point in modelled("ancor")
            if {"write": "blocking", "read": "blocking", "source": "0", **point.options} == mode
        ]

        speeds = [(_ANCOR_BYTES, value) for _, value in _figures("ancor", **spelt, sender=sender, metric="speed")]
        time.append(Line(f"{name}, model", _times(points), "model", color=number))
        speed += [line for line in _both(name, _rates(points), speeds, number) if line.points]
        for side, word in enumerate(("writer", "reader")):
            shares = [(point.bytes, point.cpu[side]) for point in points]
            share.append(Line(f"{name}, {word}, model", shares, "model", color=2 * number + side))
        for metric, lines, word, unit in (
            ("system_overhead", time, "overhead:", "us"),
            ("cpu_over_comm_time", share, "both sides, around", "%"),
            ("receiver_cpu", share, "reader, below", "%"),
        ):
            for figure, value in _figures("ancor", **spelt, sender=sender, metric=metric):
                lines.append(_level(f"{name}, {word} {figure.printed} {unit}", value, (1, _ANCOR_BYTES)))
    name = f"write {write}, read {read}"
    return [
        View(f"{name}: time of a write", time, y=_TIME),
        View(f"{name}: speed", speed, y=_RATE),
        View(f"{name}: CPU time over communication time", share, y=_SHARE),
    ]


# ---- GPMIMD, 1997 ---------------------------------------------------------------------------------------------------


def _farms() -> Chart:
    views = [
        _farm("Com-2.1", "pushfarm", "push farm with a supervisor, over receivers"),
        _farm("Com-2.2", "pullfarm", "pull farm with a supervisor, over receivers"),
    ]
    for size in sorted({int(figure.at["bytes"]) for figure, _ in _figures("atlas", benchmark="Com-3.1")}):
        name = f"active readout buffers, {format_bytes(size)}, over processors"
        views.append(_farm("Com-3.1", "robpush", name, "delay_us", size))
    views.append(_farm("Com-3.2", "robpull", "passive readout buffers, over processors", "delay_us"))
    return chart("report-farms", "lines", Axis("receivers", "count", "log2"), _TIME, views)


def _farm(benchmark: str, pattern: str, name: str, by: str = "senders", size: int | None = None) -> View:
    """The times of a farm, a curve for each number of senders or delay."""
    points = [p for p in modelled("atlas") if p.pattern.startswith(pattern) and size in (None, p.bytes)]
    figures = list(_figures("atlas", benchmark=benchmark, **({} if size is None else {"bytes": size})))
    has_senders = by == "senders"
    lines = []
    for number, of in enumerate(sorted({int(figure.at[by]) for figure, _ in figures})):
        others = 1 + of if has_senders else 0
        model = [(p.ranks - others, p.time_ns) for p in points if int(p.options.get(by, 0)) == of]
        over = "receivers" if has_senders else "processors"
        printed = [(float(f.at[over]), value) for f, value in figures if f.at[by] == of]
        lines += _both(f"{of} {'senders' if has_senders else 'us of computing'}", model, printed, number)
    return View(f"{benchmark}: {name}", lines)


# ---- T3D, 1996 ------------------------------------------------------------------------------------------------------


def _t3d() -> Chart:
    """The latencies of all pairs, ascending, with the printed values."""
    kinds = {"put": ("single_pairs", "put, one pair at a time"), "putpong": ("ping_pong", "ping-pong of puts")}
    views = []
    for pattern, (benchmark, name) in kinds.items():
        times_ns = sorted(point.time_ns for point in modelled("t3d") if point.pattern.partition(" ")[0] == pattern)
        count = len(times_ns)
        pairs = [((at + 0.5) / count, time_ns) for at, time_ns in enumerate(times_ns)]
        lines = [Line(f"{count} pairs, model", pairs, "model", color=0)]
        for metric, word in (("latency_max", "maximum"), ("latency_avg", "mean"), ("latency_min", "minimum")):
            value_ns = _value("t3d", benchmark=benchmark, metric=metric)
            lines.append(_level(f"{word}, published: {format_ns(value_ns)}", value_ns, (0.0, 1.0)))
        views.append(View(name, lines))
    return chart("report-t3d", "lines", Axis("share of all pairs", "share", "linear"), _TIME, views)
