"""Predictions as a document and as JSON, and their errors against measurements."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from operator import attrgetter, itemgetter
from typing import Any

from hockney.analysis.predict.change import PARAMETERS
from hockney.measure.overflow import Overflow
from hockney.measure.predict import Checked, Prediction, Validation
from hockney.measure.what_if import SLOWDOWNS, Effect, Predicted, Tolerance, Tolerances
from hockney.model import Point
from hockney.report.commands import typed
from hockney.report.document import Block, Column, Item, Sentence, Table, Text, Title, records
from hockney.report.documents.rates import rates_section
from hockney.report.words import bounds_column, known_text, size_text
from hockney.results.runs import Run
from hockney.units import format_bytes, format_duration_s, format_messages, format_ns, format_rate
from hockney.worker.catalogue import split_name

_GAIN_MIN = 5e-4  # less is printed as 0.0 %
_RANGES = "‡: ranges, as figures of the fitted run are. For 95 % intervals measure it for longer."
_ALONE = "every pair is as fast as these two ranks alone; memory, NIC and switch are never full."
_TOO_SLOW = 0.25  # errors above contradict that a model is optimistic
_WHAT = (Column("what", key=True, wrap=True), Column("size", right=True, key=True))


# ---- tables ---------------------------------------------------------------------------------------------------------


def prediction_document(done: Sequence[Predicted]) -> Iterator[Block]:
    """The predictions and the requested analyses of each case, then what holds for all, each once."""
    for each in done:
        yield from _case(each)
    missing = {point: reason for each in done for point, reason in each.missing.items()}
    if missing:
        yield Title("Not predicted")
        yield from _missing(missing)
    if len(done) > 1:
        yield Sentence()
    for assumption in assumptions_of(done):
        yield Text(assumption)


def assumptions_of(done: Sequence[Predicted]) -> list[str]:
    """What fitted models assume, how wrong they were, and how to get intervals; each once."""
    fitted = [(each, each.case.fit, each.case.checked) for each in done if each.case.fit is not None]
    if not fitted:
        return []
    checked = [each for _, _, each in fitted if each is not None]
    is_optimistic = all(row.error <= _TOO_SLOW for each in checked for row in each.rows)
    word, network = "Optimistic" if is_optimistic else "Assumed", fitted[0][0].case.network
    limits = f"memory and NIC are never full. The network is {network}."
    notes = [f"{word}: {limits if network else f'{_ALONE} Name a network: --topology, --link.'}"]
    is_range = any(fit.figures.has_ranges for _, fit, _ in fitted)
    bounds = "range" if is_range else "interval"
    has_bounds = any(row.low_ns is not None for each, _, _ in fitted for row in each.predictions)
    errors = [f"the model itself was off by {'; '.join(map(_error_text, checked))}"] if checked else []
    if known := [f"the {bounds} has only the noise of the input"] * has_bounds + errors:
        notes.append(f"T{'; '.join(known)[1:]}.")
    if unknown := [fit.transport for _, fit, each in fitted if each is None]:
        notes.append(f"How far off such models are: {typed('predict', '--validate', '-t', ','.join(unknown))}")
    if takes_s := max(each.intervals_s or 0.0 for each, _, _ in fitted):
        enough = format_duration_s(math.ceil(1.5 * takes_s * len(done)))
        notes.append(f"For {bounds}s: --time {enough.replace(' min', 'm').replace(' ', '')}.")
    return notes + [_RANGES] * (is_range and has_bounds)


def _error_text(checked: Validation) -> str:
    """`10% in the median, up to 30% too fast and 1.9 times too slow on tcp (run 3)`: compared with measurements."""
    ratios = [1 + row.error for row in checked.rows]
    worst = (1 / max(1e-9, min(ratios)), max(ratios))
    fast, slow = (f"{ratio:.1f} times" if ratio >= 1.5 else f"{max(0.0, ratio - 1):.0%}" for ratio in worst)
    most = f"up to {fast} too fast and {slow} too slow"
    run = f"run {checked.run}{', on a busy machine' if checked.is_busy else ''}"
    return f"{checked.median_error:.0%} in the median, {most} on {checked.transport} ({run})"


def _case(predicted: Predicted) -> Iterator[Block]:
    case = predicted.case
    with_changes = f", with {' '.join(predicted.changes)}" if predicted.changes else ""
    yield Title(f"{case.plan.suite} on {case.model.name} ({case.model.machine.title}){with_changes}")
    if predicted.rates is not None:
        yield rates_section(predicted.rates, more="Searched in virtual time.")
    elif predicted.predictions:
        yield from _times(predicted.predictions)
    else:
        yield Text("No time predicted: the reason is below.")
    yield from _overflows(predicted.overflows)
    if predicted.effects is not None:
        yield from _effects(predicted.effects)
    if predicted.tolerances is not None:
        yield from _tolerances(predicted.tolerances)


def _overflows(overflows: Sequence[Overflow]) -> Iterator[Block]:
    """What each point's switches drop first."""
    if overflows:
        yield Title("First overflow")
    for each in overflows:
        yield Item(overflow_text(each), head=f"{_name(each.point)} {size_text(each.point)}" * (len(overflows) > 1))


def overflow_text(of: Overflow) -> str:
    """`The port of builder 1 (rank 17) drops first, from 3.2 k/s on; it holds 64 KiB.`, with the next step."""
    holds = f"{'all ports of a switch hold' if of.is_shared else 'it holds'} {format_bytes(of.buffer_bytes)}"
    if of.rank is None:
        highest = f", even at {format_messages(of.clean_hz)} offered" if of.clean_hz else ""
        return f"No port drops a segment{highest}; {holds.replace('it', 'each')}."
    who = f"{of.role} (rank {of.rank})" if of.role else f"rank {of.rank}"
    port = f"A port between switches, on the way to {who}," if of.is_inner else f"The port of {who}"
    if of.drops_hz is None:
        return f"{port} drops most of {of.drops:,} lost segments; {holds}."
    if of.clean_hz is None:
        return f"{port} drops segments even at {format_messages(of.drops_hz)}: one event is too much; {holds}."
    from_hz = f"{port} drops first, at {format_messages(of.drops_hz)}"
    return f"{from_hz}; {holds}. At {format_messages(of.clean_hz)} nothing is lost."


def _missing(reasons: Mapping[Point, str]) -> Iterator[Block]:
    """Each reason once, after the curves whose points have it."""
    for reason in dict.fromkeys(reasons.values()):
        names = dict.fromkeys(_name(point) for point, why in reasons.items() if why == reason)
        yield Item(reason, head="; ".join(names))


def _times(rows: Sequence[Prediction]) -> Iterator[Block]:
    bounds = bounds_column(rows, attrgetter("time_ns", "low_ns", "high_ns"), format_ns)
    columns: dict[Column, Callable[[Prediction], str]] = {
        _WHAT[0]: lambda row: _name(row.point),
        _WHAT[1]: lambda row: size_text(row.point),
        Column("predicted", right=True, tone="strong"): lambda row: format_ns(row.time_ns),
        **{Column(title, right=True): cell for title, cell in bounds.items()},
        Column("events", right=True, optional=True): _events,
        Column("rate", right=True, optional=True): lambda row: known_text(row.bytes_per_s, format_rate),
        Column("changed", right=True): lambda row: known_text(row.changed_ns, format_ns),
        Column("change", right=True): _change,
        Column("outside the fit", wrap=True): _outside,
    }
    yield records(columns, rows)


def _events(row: Prediction) -> str:
    is_rate = row.point.traits.events and not row.point.rate_hz and row.time_ns > 0
    return format_messages(1e9 / row.time_ns) if is_rate else ""


def _outside(prediction: Prediction) -> str:
    """`above 1 MiB`; "" within the fit."""
    size, above = prediction.outside_bytes, prediction.point.bytes > (prediction.outside_bytes or 0)
    return "" if size is None else f"{'above' if above else 'below'} {format_bytes(size)}"


def _change(row: Prediction) -> str:
    """`-31.0%`; a pattern that takes no time has no change in per cent."""
    if row.changed_ns is None or row.time_ns <= 0:
        return "" if row.changed_ns is None else "-"
    change = row.changed_ns / row.time_ns - 1
    return f"{change:+.1%}" if abs(change) >= _GAIN_MIN else "0.0%"


def _name(point: Point) -> str:
    """`pairs, 2 ranks (apart)`: a curve with the variant of the model."""
    variant = split_name(point.transport)[2]
    return point.text() + (f" ({variant})" if variant else "")


def _effects(effects: Sequence[Effect]) -> Iterator[Block]:
    """A row for each parameter that matters, the most important first."""

    def cells(effect: Effect) -> list[str]:
        point, most = max(effect.gains.items(), key=itemgetter(1))
        change = f"{_parameter(effect)} {'doubled' if PARAMETERS[effect.change.key].is_rate else 'halved'}"
        return [change, f"{effect.gain:.1%}", f"{most:.1%}", f"{_name(point)} {size_text(point)}"]

    columns = [Column("change", wrap=True, key=True), Column("gain", right=True, tone="strong")]
    if any(len(effect.gains) > 1 for effect in effects):
        columns += [Column("largest gain", right=True), Column("of", wrap=True)]
    effective = [effect for effect in effects if max(map(abs, effect.gains.values()), default=0.0) >= _GAIN_MIN]
    yield Title("Gain of each change")
    yield Table(columns, [cells(effect)[: len(columns)] for effect in effective])
    if idle := [_parameter(effect) for effect in effects if effect not in effective]:
        yield Text(f"No effect: {', '.join(idle)}.")


def _parameter(effect: Effect) -> str:
    return f"{PARAMETERS[effect.change.key].title} ({effect.change.key})"


def _tolerances(tolerances: Sequence[Tolerances]) -> Iterator[Block]:
    """A table for each way to be slower, with a row for each point: how much makes it 1, 2 and 5 % slower."""
    kinds: dict[str, tuple[Callable[[Tolerances], Tolerance], Callable[[float], str]]] = {
        "How much latency can be added to each message": (attrgetter("latency"), format_ns),
        "How much bandwidth can be lost": (attrgetter("bandwidth"), "{:.1%}".format),
    }
    columns = [*_WHAT, *(Column(f"{slowdown:.0%} slower", right=True) for slowdown in SLOWDOWNS)]
    for title, (tolerance_of, text) in kinds.items():
        yield Title(title)
        limits = ((row.point, tolerance_of(row).limits.values()) for row in tolerances)
        rows = [[_name(of), size_text(of), *(known_text(x, text, "any") for x in to)] for of, to in limits]
        yield Table(columns, rows)


# ---- JSON -----------------------------------------------------------------------------------------------------------


def predicted_json(predicted: Predicted) -> dict[str, Any]:
    """The same values, and the curves of tolerances."""
    record, of = predicted.case.model.record, predicted.case.checked
    document: dict[str, Any] = {
        "suite": predicted.case.plan.suite,
        "model": {name: record[name] for name in ("name", "title", "key", "exact")},
        "changes": predicted.changes,
        "predictions": predicted.predictions if predicted.rates is None else (),
        "not_predicted": [{"point": point, "reason": reason} for point, reason in predicted.missing.items()],
        "assumptions": assumptions_of([predicted]),
        "model_error": of and {"run": of.run, "median": of.median_error, "largest": of.largest_error},
    }
    if predicted.overflows:
        document["overflows"] = predicted.overflows
    if predicted.rates is not None:
        document |= vars(predicted.rates)
    if predicted.effects is not None:
        document["sensitivity"] = [
            {"parameter": each.change.key, "factor": each.change.factor, "gain": each.gain}
            | {"gains": [{"point": point, "gain": gain} for point, gain in each.gains.items()]}
            for each in predicted.effects
        ]
    if predicted.tolerances is not None:
        document["tolerance"] = [
            {
                "point": row.point,
                "latency": _tolerance_json(row.latency, "added_ns"),
                "bandwidth": _tolerance_json(row.bandwidth, "lost"),
            }
            for row in predicted.tolerances
        ]
    return document


def _tolerance_json(tolerance: Tolerance, added: str) -> dict[str, Any]:
    return {
        "limits": [{"slowdown": slowdown, added: limit} for slowdown, limit in tolerance.limits.items()],
        "curve": [[slowdown, each] for each, slowdown in tolerance.curve],
    }


# ---- validation ------------------------------------------------------------------------------------------------------


def validation_document(run: Run, done: Sequence[Validation]) -> Iterator[Block]:
    """Each prediction next to its measurement, and how large the errors are."""
    yield Title(f"Predictions from the basic figures of run {run.id}, next to its other figures")
    columns: dict[Column, Callable[[Checked], str]] = {
        _WHAT[0]: lambda row: row.point.text(),
        _WHAT[1]: lambda row: size_text(row.point),
        Column("predicted", right=True): lambda row: format_ns(row.predicted_ns),
        Column("measured", right=True): lambda row: format_ns(row.measured_ns.value),
        Column("error", right=True): lambda row: f"{row.error:+.1%}",
    }
    for each in done:
        yield Title(f"{each.transport}{f', {each.state}' if each.state else ''}")
        yield records(columns, each.rows)
        yield from _missing(each.missing)
    yield Title("Size of the errors")
    yield errors_table(done, lambda each: each.transport)


def errors_table(done: Iterable[Validation], name_of: Callable[[Validation], str]) -> Table:
    """How large the errors of predictions against measurements are."""
    columns: dict[Column, Callable[[Validation], str]] = {
        Column("transport", key=True): name_of,
        Column("points", right=True): lambda each: str(len(each.rows)),
        Column("median error", right=True): lambda each: known_text(each.median_error, "{:.1%}".format),
        Column("within 10%", right=True): lambda each: known_text(each.share_within(0.10), "{:.0%}".format),
        Column("within 25%", right=True): lambda each: known_text(each.share_within(0.25), "{:.0%}".format),
    }
    return records(columns, done)


def validation_json(each: Validation) -> dict[str, Any]:
    """The same values."""
    return {
        "transport": each.transport,
        "state": each.state,
        "median_error": each.median_error,
        "within_10_percent": each.share_within(0.10),
        "within_25_percent": each.share_within(0.25),
        "points": [{**vars(row), "measured_ns": row.measured_ns.value, "error": row.error} for row in each.rows],
    }
