"""Whether a run is of the paper's own reading: its network, and all of its images."""

from __future__ import annotations

from tff_pmc.models import MODELS
from tff_pmc.record.read import Run


def other_reading(run: Run) -> str:
    """Returns what a run's network has and its paper's text has not; "" for nothing."""
    settings = run.settings
    model = settings.get("model", "mnist_cnn")  # The oldest records name none.
    relu = model in MODELS and settings.get("conv_activation") == "relu"
    own = relu and MODELS[model]().conv_activation != "relu"
    return "ReLU after the convolutions" if own else ""


def image_fraction(run: Run) -> float:
    """Returns the part of the images that a run's data set has; 1 for all of them."""
    return float(run.data.get("options", {}).get("image_fraction", 1))
