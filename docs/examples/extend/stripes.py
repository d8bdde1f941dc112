"""A data set with a setting of its own."""

import dataclasses

import numpy as np

import leaf_data
from declared_settings import AT_LEAST_1, setting
from leaf_data.pixels import WHITE_ON_BLACK


@dataclasses.dataclass(frozen=True)
class Stripes(leaf_data.Dataset):
    """Small pictures of one stripe, whose row is the label; four clients."""

    stripe_width: int = setting(1, "The stripe's width, pixels.", within=AT_LEAST_1)

    def load(self, data_dir=None, cache_dir=None):
        random = np.random.default_rng(self.seed)
        y = random.integers(0, 8, 80).astype(np.int32)
        x = np.zeros((80, 8, 8), np.uint8)
        for picture, row in zip(x, y):
            picture[row : row + self.stripe_width] = 255
        splits = np.array([0, 10, 25, 45, 80])
        examples = leaf_data.Examples(x, y, splits, ("a", "b", "c", "d"))
        return leaf_data.FederatedDataset(
            name="stripes",
            train_examples=examples,
            test_examples=examples.take(5),
            num_classes=8,
            pixel_convention=WHITE_ON_BLACK,
            origin=leaf_data.Origin("drawn stripes", (), ""),
            options={"stripe_width": self.stripe_width, "seed": self.seed},
        )


leaf_data.register("stripes", Stripes)
