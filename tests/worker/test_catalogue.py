"""Libraries whose worker cannot be built: the reason, and what to do."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.builders import make_library

from hockney.worker import catalogue
from hockney.worker.build import Recipe, build_worker
from hockney.worker.errors import BuildError
from hockney.worker.libraries import REPAIR, Missing


@pytest.mark.parametrize(("known", "how"), [("", REPAIR), ("free some space", "free some space")])
def test_a_library_whose_worker_cannot_be_built_is_missing(
    known: str, how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def build(recipe: Recipe) -> Path:
        if recipe.family == "mpi":
            raise BuildError("mpicc is broken", known)
        return build_worker(recipe)

    monkeypatch.setattr(catalogue, "build_worker", build)
    library = make_library()
    assert catalogue.load(libraries=[library]).missing == (Missing(library.id, "mpicc is broken", how),)
