"""The figures of the five reports, redrawn: the results of each machine's model, with the published points.

The curves of the originals are lost. Lines are the models' (docs/machines.md), hollow marks the values of a text or
table.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from hockney.archive import Coordinate, Published, published
from hockney.archive.modelled import Modelled, modelled
from hockney.report.html.charts import Axis, Chart, Line, PointValues, View
from hockney.units import format_bytes, format_ns, format_rate

_MB = 1e6
_TIME, _RATE, _SHARE = Axis("", "ns"), Axis("", "bytes/s"), Axis("", "share", "linear")
_SIZES = Axis("message size", "bytes", "log2")
_MODES = ("nonblocking", "blocking")
_ANCOR_BYTES = 65500


def report_charts() -> list[Chart]:
    """One chart for each report, in the order of their dates."""
    return [_ancor(), _paragon(), _t3d(), _farms(), _sci()]


def _figures(report: str, **where: Coordinate) -> Iterator[Published]:
    return (figure for figure in published(report) if figure.value is not None and figure.matches(where))


def _value(report: str, **where: Coordinate) -> float:
    return next(_figures(report, **where)).value or 0.0


def _reference(name: str, value: float, ends: tuple[float, float]) -> Line:
    """A level that was published without its place on the other axis."""
    return Line(name, [(end, value, None, None) for end in ends], "reference")


def _times(points: Iterable[Modelled]) -> list[PointValues]:
    return [(point.bytes, point.time_ns, None, None) for point in points if point.bytes]


def _rates(points: Iterable[Modelled]) -> list[PointValues]:
    return [(point.bytes, 1e9 * point.bytes / point.time_ns, None, None) for point in points if point.bytes]


# ---- Scali, 2000 ----------------------------------------------------------------------------------------------------


def _sci() -> Chart:
    places = {"between nodes": ("", "inter-node"), "within a node": ("within", "intra-node")}
    times: list[Line] = []
    rates: list[Line] = []
    for place, (name, (variant, scope)) in enumerate(places.items()):
        points = [point for point in modelled("scabench") if point.variant == variant]
        ends = (float(points[1].bytes), float(points[-1].bytes))
        where = {"benchmark": "ping-pong", "scope": scope}
        latency_ns = _value("scabench", **where, bytes=0) * 1e3
        at_32_ns = _value("scabench", **where, bytes=32) * 1e3
        peak = _value("scabench", **where, metric="peak_bandwidth") * _MB
        times += [
            Line(f"{name}, model", _times(points), "model", color=place),
            Line(f"{name}, published", [(32, at_32_ns, None, None)], "published", color=place),
            _reference(f"{name}, 0 B: {format_ns(latency_ns)}", latency_ns, ends),
        ]
        rates += [
            Line(f"{name}, model", _rates(points), "model", color=place),
            _reference(f"{name}, peak: {format_rate(peak)}", peak, ends),
        ]
    return Chart(
        id="report-sci",
        title="Scali cluster with SCI, 2000: ping-pong",
        about="Latency and bandwidth over message size of a model of the cluster, with the published figures.",
        kind="lines",
        x=_SIZES,
        y=_TIME,
        views=(View("latency", tuple(times)), View("bandwidth", tuple(rates), y=_RATE)),
        note="The report prints latencies of 0 and 32 B and peak rates; the model was fitted to them.",
    )


# ---- Paragon, 1995 --------------------------------------------------------------------------------------------------


def _paragon() -> Chart:
    names = {"": "NX csend/crecv", "psend": "pvm_psend/precv", "inplace": "PvmDataInPlace", "raw": "PvmDataRaw"}
    rate = _value("paragon", metric="asymptotic_bandwidth") * _MB
    lines = [
        Line(f"{name}, model", _rates(p for p in modelled("paragon") if p.variant == variant), "model", color=place)
        for place, (variant, name) in enumerate(names.items())
    ]
    return Chart(
        id="report-paragon",
        title="Intel Paragon, 1995: bandwidth of PVM and the native library",
        about="Bandwidth over message size of four ways to send on a model of the Paragon.",
        kind="lines",
        x=_SIZES,
        y=_RATE,
        views=(View("", (*lines, _reference(f"NX, asymptote: {format_rate(rate)}", rate, (8, 4 << 20)))),),
        note="The text prints the rate of NX, the order of the four, and that PvmDataInPlace gains beyond 1 MB. The "
        "latency and the costs of copies are assumed.",
    )


# ---- Ancor, 1994 ----------------------------------------------------------------------------------------------------


def _ancor() -> Chart:
    """The four modes, each with its three graphs: time, speed, CPU share, in both directions."""
    views: list[View] = []
    for write in _MODES:
        for read in _MODES:
            name = f"write {write}, read {read}"
            time, speed, share = _ancor_lines(write, read)
            views.append(View(f"{name}: time of a write", tuple(time), y=_TIME))
            views.append(View(f"{name}: speed", tuple(speed), y=_RATE))
            views.append(View(f"{name}: CPU time over communication time", tuple(share), y=_SHARE))
    return Chart(
        id="report-ancor",
        title="RS/6000 250 and 590 with an Ancor fabric, 1994: a byte stream, blocking or not",
        about="Time, speed and CPU share of a stream over the size of a write, in four modes and two directions.",
        kind="lines",
        x=Axis("size of a write", "bytes", "log2"),
        y=_RATE,
        views=(views[1], *(view for view in views if view is not views[1])),
        note="The note prints overheads, the speed of the faster direction at 65,500 B, and two CPU shares. How much "
        "slower the other direction is, and a writer's costs, are assumed.",
    )


def _ancor_lines(write: str, read: str) -> tuple[list[Line], list[Line], list[Line]]:
    time: list[Line] = []
    speed: list[Line] = []
    share: list[Line] = []
    spelt = {"write": write.replace("non", "non-"), "read": read.replace("non", "non-")}
    for place, (source, name) in enumerate((("0", "250 to 590"), ("1", "590 to 250"))):
        points = [point for point in modelled("ancor") if _is_mode(point, write, read, source)]
        time.append(Line(f"{name}, model", _times(points), "model", color=place))
        speed.append(Line(f"{name}, model", _rates(points), "model", color=place))
        for side, word in enumerate(("writer", "reader")):
            values: list[PointValues] = [(point.bytes, point.cpu[side], None, None) for point in points]
            share.append(Line(f"{name}, {word}, model", values, "model", color=2 * place + side))
        sender = 590 if source == "1" else 250
        for figure in _figures("ancor", **spelt, sender=sender, metric="speed"):
            value = (figure.value or 0) * _MB
            speed.append(Line(f"{name}, published", [(_ANCOR_BYTES, value, None, None)], "published", color=place))
        time += [
            _reference(f"{name}, overhead: {figure.printed} us", (figure.value or 0) * 1e3, (1, _ANCOR_BYTES))
            for figure in _figures("ancor", **spelt, sender=sender, metric="system_overhead")
        ]
        for metric, word in (("cpu_over_comm_time", "both sides, around"), ("receiver_cpu", "reader, below")):
            for figure in _figures("ancor", **spelt, sender=sender, metric=metric):
                level = (figure.value or 0) / 100
                share.append(_reference(f"{name}, {word} {figure.printed} %", level, (1, _ANCOR_BYTES)))
    return time, speed, share


def _is_mode(point: Modelled, write: str, read: str, source: str) -> bool:
    given = {"write": "blocking", "read": "blocking", "source": "0", **point.options}
    return given == {"write": write, "read": read, "source": source}


# ---- GPMIMD, 1997 ---------------------------------------------------------------------------------------------------


def _farms() -> Chart:
    views = [_supervised("Com-2.1", "pushfarm", "push farm"), _supervised("Com-2.2", "pullfarm", "pull farm")]
    sizes = sorted({int(figure.at["bytes"]) for figure in _figures("atlas", benchmark="Com-3.1")})
    views += [_robs("Com-3.1", "robpush", size, f"active readout buffers, {format_bytes(size)}") for size in sizes]
    views.append(_robs("Com-3.2", "robpull", None, "passive readout buffers"))
    return Chart(
        id="report-farms",
        title="GPMIMD machine, 1997: farms",
        about="Times of an event in farms of transputers over their size, of a model and as published.",
        kind="lines",
        x=Axis("receivers", "count", "log2"),
        y=_TIME,
        views=tuple(views),
        note="The model is the calibrated one: four of these 120 figures and the duration of a time slice "
        "were used for it.",
    )


def _supervised(benchmark: str, pattern: str, name: str) -> View:
    senders = sorted({int(figure.at["senders"]) for figure in _figures("atlas", benchmark=benchmark)})
    lines = []
    for place, count in enumerate(senders):
        points: list[PointValues] = [
            (point.ranks - 1 - count, point.time_ns, None, None)
            for point in modelled("atlas")
            if point.pattern.startswith(pattern) and point.options["senders"] == str(count)
        ]
        printed: list[PointValues] = [
            (float(figure.at["receivers"]), (figure.value or 0) * 1e3, None, None)
            for figure in _figures("atlas", benchmark=benchmark, senders=count)
        ]
        lines += _both(f"{count} senders", points, printed, place)
    return View(f"{benchmark}: {name} with a supervisor, over receivers", tuple(lines))


def _robs(benchmark: str, pattern: str, size: int | None, name: str) -> View:
    where: dict[str, Coordinate] = {"benchmark": benchmark} | ({} if size is None else {"bytes": size})
    figures = list(_figures("atlas", **where))
    lines = []
    for place, delay in enumerate(sorted({int(figure.at["delay_us"]) for figure in figures})):
        points: list[PointValues] = [
            (point.ranks, point.time_ns, None, None)
            for point in modelled("atlas")
            if point.pattern.startswith(pattern)
            and size in (None, point.bytes)
            and int(point.options.get("delay_us", 0)) == delay
        ]
        printed: list[PointValues] = [
            (float(figure.at["processors"]), (figure.value or 0) * 1e3, None, None)
            for figure in figures
            if figure.at["delay_us"] == delay
        ]
        lines += _both(f"{delay} us of computing", points, printed, place)
    return View(f"{benchmark}: {name}, over processors", tuple(lines))


def _both(name: str, points: Sequence[PointValues], printed: Sequence[PointValues], place: int) -> list[Line]:
    """The line of a model, and the published figures in the same colour."""
    return [
        Line(f"{name}, model", sorted(points), "model", color=place),
        Line(f"{name}, published", sorted(printed), "published", color=place),
    ]


# ---- T3D, 1996 ------------------------------------------------------------------------------------------------------


def _t3d() -> Chart:
    """The latencies of all pairs, ascending, with the printed values."""
    kinds = {"put": ("single_pairs", "put, one pair at a time"), "putpong": ("ping_pong", "ping-pong of puts")}
    views = []
    for pattern, (benchmark, name) in kinds.items():
        times_ns = sorted(point.time_ns for point in modelled("t3d") if point.pattern.partition(" ")[0] == pattern)
        count = len(times_ns)
        pairs: list[PointValues] = [((at + 0.5) / count, time_ns, None, None) for at, time_ns in enumerate(times_ns)]
        lines = [Line(f"{count} pairs, model", pairs, "model", color=0)]
        for metric, word in (("latency_max", "maximum"), ("latency_avg", "mean"), ("latency_min", "minimum")):
            value_ns = _value("t3d", benchmark=benchmark, metric=metric) * 1e3
            lines.append(_reference(f"{word}, published: {format_ns(value_ns)}", value_ns, (0.0, 1.0)))
        views.append(View(name, tuple(lines)))
    return Chart(
        id="report-t3d",
        title="Cray T3D, 1996: latencies of pairs of processing elements",
        about="The latency of every pair among 16 processing elements on a model, in the order of size.",
        kind="lines",
        x=Axis("share of all pairs", "share", "linear"),
        y=_TIME,
        views=tuple(views),
        note="Of all pairs the newsletter prints maximum, mean and minimum. The model knows hops and turns of the "
        "torus; no distance is as long as the largest times.",
    )
