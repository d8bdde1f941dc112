"""The meaning of pixels' values, in drawings of ink and in photographs."""

from __future__ import annotations

import dataclasses


@dataclasses.dataclass(frozen=True)
class PixelConvention:
    """The meaning of stored values: which is paper and which is ink.

    MNIST and LEAF's FEMNIST are each other's negatives (background 0 against
    255); a model trained on one must not be fed the other unawares.

    Attributes:
        name: a word for the convention.
        background: the uint8 value of empty paper; None in a photograph.
        ink: the uint8 value of full ink; None in a photograph.
    """

    name: str
    background: int | None
    ink: int | None

    def __str__(self) -> str:
        if self.background is None:
            return self.name
        return f"{self.name} ({self.background} = background, {self.ink} = ink)"


WHITE_ON_BLACK = PixelConvention("white_on_black", background=0, ink=255)
"""The convention of MNIST."""

BLACK_ON_WHITE = PixelConvention("black_on_white", background=255, ink=0)
"""The convention of FEMNIST."""

PHOTOGRAPH = PixelConvention("photograph", background=None, ink=None)
"""Red, green and blue of a photograph, 0 = dark."""

NO_PIXELS = PixelConvention("no pixels", background=None, ink=None)
"""For inputs that are not images: numbers, or ids of words."""
