"""Runs of a model that is built at once, whose plots are not drawn."""

import pytest
from cli import softmax


@pytest.fixture(scope="module", autouse=True)
def quick(request):
    """Plots are drawn in the runs of one file; what they show, tests/reports holds."""
    from tff_pmc.reports import figures

    with softmax() as patch:
        if request.module.__name__ != "test_runs":
            patch.setattr(figures, "png", lambda figure: b"\x89PNG")
        yield
