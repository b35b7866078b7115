"""Points without figures: each reason once, and of many curves the names alone."""

from __future__ import annotations

from hockney.model import Point
from hockney.report.notes import by_reason, folded

NEEDS = "form=persistent needs the library's own {0}, and mpi has no persistent {0}: see allgather"
NAMES = ("gather", "gatherv", "bcast", "reduce")


def curves(*names: str, transport: str = "mpi", sizes: tuple[int, ...] = (8, 64)) -> list[Point]:
    return [Point(transport, name, 2, size, (("form", "persistent"),)) for name in names for size in sizes]


def test_reasons_that_differ_by_the_name_of_the_pattern_are_one() -> None:
    points = curves(*NAMES)
    grouped = by_reason([*((NEEDS.format(point.pattern), point) for point in points), ("too long", points[0])])
    assert grouped == {NEEDS.format("…"): points, "too long": points[:1]}
    of_one = by_reason((NEEDS.format("gather"), point) for point in curves("gather"))
    assert of_one == {NEEDS.format("gather"): curves("gather")}


def test_many_curves_are_one_row_of_names() -> None:
    assert folded(curves(*NAMES[:3])) is None
    assert folded(curves(*NAMES)) == ("gather, gatherv, bcast, reduce", "mpi", "8 B, 64 B")
    several = [*curves("ring", "put", sizes=(8,)), *curves("ring", "put", transport="tcp", sizes=(8, 64))]
    assert folded(several) == ("ring, put", "mpi, tcp", "")
