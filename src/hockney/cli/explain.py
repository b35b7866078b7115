"""`hockney explain`: what the figures of a run, or of a machine of the archive, say in sentences."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from hockney.cli import complete, render
from hockney.cli.common import command
from hockney.cli.copying import commands_in
from hockney.cli.render import Column
from hockney.errors import UsageError, unknown
from hockney.units import counted, format_bytes, format_ns, format_rate

if TYPE_CHECKING:
    from hockney.analysis.explain import Explanation, Finding, Lacking, Layer, Line, OffLine, Parameters
    from hockney.stats.fit import Estimate

_ARM_MAX = 0.5  # a longer arm, as a fraction of the value, makes no centre worth a word
_FEW = 5  # findings that are told where not all are asked for
_VAGUE = 10.0  # an interval whose ends differ so much has no upper end worth a word


@command("explain", example="hockney explain last\nhockney explain --machine t3d")
@click.argument("reference", required=False, metavar="[RUN]", shell_complete=complete.runs)
@click.option(
    "-m",
    "--machine",
    metavar="NAME",
    help="A machine of the archive in place of a run: its published figures.",
    shell_complete=complete.machines,
)
@click.option("--all", "everything", is_flag=True, help="Every finding, by transport, with its sources; and --lacking.")
@click.option("--lacking", is_flag=True, help="All that could not be looked for, and what each thing needs.")
def explain(
    reference: str | None, machine: str | None, everything: bool, lacking: bool, *, as_json: bool, store: Path | None
) -> None:
    """Say in words what the figures of a run show.

    Protocol switches with the thresholds that the library documents, caches, ratios and laws that are not as they
    should be, time slices, slow ranks, and operations slower than their parts: the strongest findings, each once for
    all transports that show it, or with --all every one. Then what each layer adds, how much could not be looked for,
    and which runs have some of it; with --lacking what, and why. RUN is a number, a label, `last` (if none is named),
    or `last~1` for the one before; docs/explain.md tells what each finding means.
    """
    if reference is not None and machine is not None:
        raise UsageError("explain takes a run or a machine of the archive (--machine NAME): give one of them, not both")
    found = _with_sentences(_of_machine(machine) if machine is not None else _of_run(reference, store))
    if as_json:
        render.print_json("explain", explanation_json(found))
    else:
        _print(found, everything=everything, lacking=lacking)


def _with_sentences(found: Explanation) -> Explanation:
    """Until every detector returns typed findings."""
    from hockney.report.findings import evidence_of, title_of

    findings = tuple(
        one if one.typed is None else replace(one, sentence=f"{title_of(one.typed)}. {evidence_of(one.typed)}")
        for one in found.findings
    )
    return replace(found, findings=findings)


def explanation_json(found: Explanation) -> dict[str, Any]:
    """All that is said; what advises in words has its commands beside it."""
    document = asdict(found)
    for finding in document["findings"]:
        finding.pop("typed", None)
        finding["commands"] = commands_in(finding["remedy"])
    for lacking in document["lacking"]:
        lacking["commands"] = commands_in(lacking["got_by"])
    return document


def _of_run(reference: str | None, store: Path | None) -> Explanation:
    from hockney.analysis.explain import explain_run
    from hockney.results.runs import open_results

    with open_results(store) as results:
        try:
            run = results.run("last" if reference is None else reference)
        except UsageError as error:
            from hockney.archive import machines

            if reference not in machines():
                raise
            raise UsageError(
                f"no run is called '{reference}', but a machine of the archive is: "
                f"`hockney explain --machine {reference}`"
            ) from error
        return explain_run(run)


def _of_machine(name: str) -> Explanation:
    from hockney.analysis.explain import explain_machine
    from hockney.archive import machines

    if name not in machines():
        raise unknown("machine", name, machines())
    return explain_machine(machines()[name])


def _print(found: Explanation, *, everything: bool, lacking: bool) -> None:
    count = len(found.findings)
    render.title(f"{found.subject}: {counted(count, 'finding') if count else 'no findings'}", first=True)
    for note in found.notes:
        render.note(note, style="dim")
    if everything:
        _print_by_transport(found.findings)
    else:
        _print_strongest(found)
    _print_lines(found.lines)
    _print_off_lines(found.off_lines)
    _print_loggp(found.loggp)
    _print_layers(found.layers)
    if found.lacking:
        render.title("What could not be looked for")
        if everything or lacking:
            for one in found.lacking:
                render.item(f"{one.what}: {one.text}", style="dim")
        else:
            _print_how_to_get(found.lacking)


def _print_how_to_get(lacking: Sequence[Lacking]) -> None:
    """How much lacks, and what measures some of it."""
    commands: dict[str, list[str]] = {}
    for one in lacking:
        commands.setdefault(one.got_by, []).append(one.what)
    for command_, names in commands.items():
        if command_:
            render.item(f"For {', '.join(names)}: {command_}.", style="dim")
    render.item(f"{counted(len(lacking), 'thing')} in all: `--lacking` says which, and what each needs.", style="dim")


def _print_by_transport(findings: Sequence[Finding]) -> None:
    for transport in dict.fromkeys(finding.transport for finding in findings):
        own = [finding for finding in findings if finding.transport == transport]
        states = ", ".join(dict.fromkeys(finding.state for finding in own if finding.state))
        named = transport or "Several transports"
        render.title(f"{named} ({states})" if states else named)
        for finding in own:
            untold = [source for source in finding.sources if source not in finding.sentence]
            _print_finding(finding, finding.kind, finding.remedy, *untold)


def _print_strongest(found: Explanation) -> None:
    """A few, each once for all transports that show it; what is left is counted."""
    from hockney.analysis.explain.summary import gather

    gathered = gather(found.findings)
    told = gathered[:_FEW]
    if told:
        render.title("The strongest findings" if len(told) < len(found.findings) else "Findings")
    for one in told:
        _print_finding(one.strongest, _head(one.strongest, found.subject), one.also, one.strongest.remedy)
    left = sum(1 + len(one.others) for one in gathered[_FEW:])
    if len(told) < len(found.findings):
        more = f"{left} more: " if left else ""
        render.item(f"{more}`--all` tells every one, by transport and with its sources.", style="dim")


def _head(finding: Finding, subject: str) -> str:
    """`protocol switch on tcp (near)`; of a machine of the archive every finding is its own."""
    where = f" on {finding.transport}" if finding.transport not in ("", subject) else ""
    return f"{finding.kind}{where}" + (f" ({finding.state})" if finding.state else "")


def _print_finding(finding: Finding, head: str, *below: str | None) -> None:
    more = f" (and {finding.more_alike} more alike)" if finding.more_alike else ""
    render.item(finding.sentence + more, head=head)
    for text in below:
        if text:
            render.item(text, style="dim")


def _print_lines(lines: Sequence[Line]) -> None:
    if not lines:
        return
    render.title("Straight lines through the times (t_0 + size / r_inf), by segment")
    columns = _fit_columns("t_0", "r_inf", "n_1/2", "misses")
    rows = [
        (
            f"{line.pattern} on {line.transport}" + (f", {counted(line.ranks, 'rank')}" if line.ranks != 2 else ""),
            f"{format_bytes(line.first_bytes)} - {format_bytes(line.last_bytes)}",
            _with_arm(line.t0_ns, format_ns),
            _with_arm(line.r_inf_bytes_per_s, format_rate),
            _with_arm(line.n_half_bytes, lambda value: format_bytes(round(value))),
            f"{line.relative_rms:.1%}",
            line.state,
            line.pair_class or "-",
        )
        for line in lines
    ]
    share = _print_classed(columns, rows)
    render.note(
        "misses: root mean square of what the line leaves, each size as it weighs. -: the figures don't tell it. The "
        f"state that most measurements saw stands first.{share}"
    )


def _print_off_lines(found: Sequence[OffLine]) -> None:
    curves: dict[tuple[object, ...], list[OffLine]] = {}
    is_classed = len({one.pair_class for one in found}) > 1
    for one in found:
        curves.setdefault((one.transport, one.pattern, one.ranks, one.pair_class, one.state), []).append(one)
    for own in curves.values():
        first = own[0]
        ranks = f", {counted(first.ranks, 'rank')}" if first.ranks != 2 else ""
        share = f"ranks share {first.pair_class}" if is_classed and first.pair_class else ""
        where = ", ".join(filter(None, (first.state, share)))
        sizes = ", ".join(f"{format_bytes(one.bytes)} ({format_ns(one.time_ns.value)})" for one in own)
        of = f"{first.pattern} on {first.transport}{ranks}" + (f" ({where})" if where else "")
        render.note(f"Of {of}, explained by none of the lines above: {sizes}.")


def _print_loggp(found: Sequence[Parameters]) -> None:
    if not found:
        return
    render.title("LogGP by segment of the half round trip")
    columns = _fit_columns("L", "o_s", "o_r", "g", "1/G", "misses", "holds")
    holds = {True: "yes", False: "no", None: "not told"}
    rows = [
        (
            f"{one.pattern} on {one.transport}" + (f", {counted(one.ranks, 'rank')}" if one.ranks != 2 else ""),
            f"{format_bytes(one.loggp.first_bytes)} - {format_bytes(one.loggp.last_bytes)}",
            *(
                _with_arm(value, format_ns)
                for value in (one.loggp.latency_ns, one.loggp.send_ns, one.loggp.receive_ns, one.loggp.gap_ns)
            ),
            _with_arm(one.loggp.rate_bytes_per_s, format_rate),
            f"{one.loggp.relative_rms:.1%}",
            holds[one.loggp.holds],
            one.state,
            one.pair_class or "-",
        )
        for one in found
    ]
    share = _print_classed(columns, rows)
    render.note(
        "holds: whether L, o_s and o_r are all above zero. Where one is below, both ends work on a message at once, "
        "and LogGP does not describe the transport (docs/methods.md). misses: root mean square of what the lines leave "
        f"of all sizes' times.{share}"
    )


def _fit_columns(*titles: str) -> list[Column]:
    """Of a table of what was fitted to curves: of what, its values, and where it holds."""
    return [
        Column("of", wrap=True, key=True),
        Column("sizes", right=True, key=True),
        *(Column(title, right=True) for title in titles),
        Column("state", key=True),
        Column("ranks share", key=True),
    ]


def _print_classed(columns: Sequence[Column], rows: Sequence[Sequence[str]]) -> str:
    """A table whose last column is the pair class; where that is one for all, it is the sentence given back instead."""
    classes = {row[-1] for row in rows}
    if len(classes) > 1:
        render.table(columns, rows)
        return ""
    render.table(columns[:-1], [row[:-1] for row in rows])
    known = classes - {"-"}
    return f" All of it is between ranks that share {known.pop()}." if known else ""


def _with_arm(value: Estimate | None, text: Callable[[float], str]) -> str:
    """`133 ns ±1.2%`: the longer arm of the interval; a range, or a bound, where that is half the value or more.

    None of these can be below zero: what an interval that reaches there says is said in words.
    """
    from hockney.analysis.explain.finding import relative

    if value is None:
        return "-"
    if value.low <= 0:
        return f"at most {text(value.high)}" if value.high > 0 else "below 0"
    arm = relative(value)
    if arm < _ARM_MAX:
        return f"{text(value.value)} ±{arm:.1%}"
    is_vague = value.high >= _VAGUE * value.low
    return f"at least {text(value.low)}" if is_vague else f"{text(value.low)} to {text(value.high)}"


def _print_layers(layers: Sequence[Layer]) -> None:
    if not layers:
        return
    render.title("What each layer adds to half a round trip")
    for layer in layers:
        render.item(f"{layer.text} {layer.sizes_text} ({layer.state}){layer.remark}")
