"""`hockney doctor --self-test`: measures machines of known truth, and compares."""

from __future__ import annotations

from hockney.cli import render
from hockney.cli.findings import with_half_width
from hockney.errors import ExitCode
from hockney.measure.self_test import Check, self_test
from hockney.report.findings import fact_text
from hockney.units import counted, format_bytes

_NAMES = {
    "t0_ns": "t_0",
    "r_inf_bytes_per_s": "r_inf",
    "n_half_bytes": "n_1/2",
    "L_ns": "L",
    "o_s_ns": "o_s",
    "o_r_ns": "o_r",
    "g_ns": "g",
    "G_ns_per_byte": "G",
    "intervals_share": "intervals with the truth",
    "switches_bytes": "protocol switches",
    "slow_ranks": "slow ranks",
}


def show_self_test(*, as_json: bool) -> int:
    """Print each check as soon as it is done, or one document; returns 1 if one fails."""
    checks = []
    for check in self_test():
        checks.append(check)
        if not as_json:
            render.say(_line(check))
    failed = sum(not check.is_met for check in checks)
    if as_json:
        render.print_json("self-test", {"failed": failed, "checks": checks})
    else:
        render.say(
            f"{counted(len(checks), 'check')}, {failed} failed" if failed else f"all {len(checks)} checks are met"
        )
    return ExitCode.WORSE if failed else ExitCode.DONE


def _line(check: Check) -> str:
    """`LogGP, L to 3,224 B: required 1.69 us, obtained 1.69 us ±0.1%: ok`."""
    where = ""
    if check.up_to_bytes is not None:
        where = f" to {format_bytes(check.up_to_bytes)}" if check.up_to_bytes else " of the longest"
    verdict = "ok" if check.is_met else "FAILED"
    who = f"{check.machine}, {_NAMES[check.what]}{where}"
    return f"{who}: required {_required(check)}, obtained {_obtained(check)}: {verdict}"


def _required(check: Check) -> str:
    if check.truth is None:
        between = "-" if check.what == "slow_ranks" else ", "
        return between.join(fact_text(check.what, each) for each in check.planted or ()) or "none"
    return f"{'at least ' * (check.what == 'intervals_share')}{fact_text(check.what, check.truth)}"


def _obtained(check: Check) -> str:
    if check.estimate is None:
        between = "-" if check.what == "slow_ranks" else " to "
        named = [between.join(fact_text(check.what, each) for each in parts) for parts in check.named or ()]
        return ", ".join(named) or "none"
    if check.what == "intervals_share":
        return fact_text(check.what, check.estimate)
    return with_half_width(check.estimate, lambda value: fact_text(check.what, value))
