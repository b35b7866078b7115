"""`hockney run --dry-run`: the points to measure, the skipped ones with the reason, and the time needed."""

from __future__ import annotations

from hockney.measure.plan import make_plan, refuse_empty
from hockney.render.json import print_json
from hockney.render.text import show
from hockney.report.documents.plan import plan_document
from hockney.suites import Suite
from hockney.worker.catalogue import load
from hockney.worker.points import RunOptions, transport_words


def show_plan(suite: Suite, asked: RunOptions, *, as_json: bool) -> int:
    """Print the plan; nothing is started or stored. Returns the exit code. Raises UsageError for an empty plan."""
    plan = make_plan(suite, asked, load(transport_words(suite, asked)))
    refuse_empty(plan)
    if as_json:
        document = {
            "dry_run": True,
            "suite": plan.suite,
            "plan": plan.as_json(),
            "first_rounds_s": plan.first_rounds_s(),
            "points": plan.points,
            "skipped": plan.skipped,
        }
        print_json("run", document)
    else:
        show(plan_document(plan))
    return 0
