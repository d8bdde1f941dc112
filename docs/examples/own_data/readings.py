"""A data set of CSVs, a model and a named experiment."""

import dataclasses
import pathlib

import numpy as np

import leaf_data
from declared_settings import Range, setting
from leaf_data.formats import csv_fields, csv_folder, data_files
from leaf_data.pixels import NO_PIXELS
from tff_pmc.experiments.experiment import EXPERIMENTS, Experiment
from tff_pmc.models import MODELS, ModelSettings
from tff_pmc.models.functional import classifier, initial_weights

ACTIVITIES = ("resting", "walking", "running")
SCALE = {"pulse": 220, "steps": 40, "light": 1500, "noise": 130}


@dataclasses.dataclass(frozen=True)
class Readings(leaf_data.Dataset):
    """Readings of wearables, a CSV for each device."""

    test_share: float = setting(
        0.2,
        "The share of each device's readings that it is tested on.",
        flag="readings_test_share",
        within=Range(lambda share: 0 < share < 1, "between 0 and 1"),
    )

    def load(self, data_dir=None, cache_dir=None):
        files = csv_folder.find(data_dir or "devices")
        if any(file.part == "test" for file in files):
            raise leaf_data.DataError(
                f"{files[0].path} and {files[-1].path} are a training and a test set "
                "by their names: here each CSV is a device"
            )
        paths = [pathlib.Path(file.path) for file in files]
        random = np.random.default_rng(self.seed)
        rows, train, test, start = [], [], [], 0
        for path in paths:
            rows += read(path)
            if len(rows) < start + 2:
                raise leaf_data.DataError(
                    f"{path}: has no rows, or one: it needs one to train and one to "
                    "test on"
                )
            order = start + random.permutation(len(rows) - start)
            count = round(self.test_share * len(order))
            count = min(max(1, count), len(order) - 1)
            test.append(order[:count])
            train.append(order[count:])
            start = len(rows)
        y = np.array([label for label, _ in rows])
        x = np.array([numbers for _, numbers in rows], np.float32)
        clients = [path.stem for path in paths]
        return leaf_data.FederatedDataset(
            name="readings",
            train_examples=leaf_data.Examples.from_parts(x, y, train, clients),
            test_examples=leaf_data.Examples.from_parts(x, y, test, clients),
            num_classes=len(ACTIVITIES),
            pixel_convention=NO_PIXELS,
            origin=leaf_data.Origin(
                "CSVs of devices",
                tuple((path.name, data_files.sha256(str(path))) for path in paths),
                str(paths[0].parent),
            ),
            options=self.options(),
            input_names=[*SCALE],
            class_names=ACTIVITIES,
        )


def read(path):
    """Reads a CSV as (label, numbers) of each row; an error names line and column."""
    labels_and_numbers = []
    for where, row in csv_fields.read_rows(str(path), ["activity", *SCALE]):
        numbers = [
            csv_fields.read_number(row[column], column, where) for column in SCALE
        ]
        activity = row["activity"].strip()
        if activity not in ACTIVITIES:
            words = f"activity is {activity!r}, not one of {', '.join(ACTIVITIES)}"
            raise leaf_data.DataError(f"{where}: {words}")
        labels_and_numbers.append((ACTIVITIES.index(activity), numbers))
    return labels_and_numbers


@dataclasses.dataclass(frozen=True)
class Perceptron(ModelSettings):
    """A hidden layer of 16 units."""

    element_shape = (len(SCALE),)
    element_dtype = "float32"
    scaling = "inside the model: " + ", ".join(f"{c} / {s}" for c, s in SCALE.items())

    def build(self):
        import tensorflow as tf

        shapes = [(len(SCALE), 16), (16,), (16, len(ACTIVITIES)), (len(ACTIVITIES),)]
        weights = initial_weights(shapes, self.initializer, self.seed)

        @tf.function
        def predict(model_weights, x, training=True):
            (kernel, bias, last_kernel, last_bias), _ = model_weights
            scaled = x / tf.constant([*SCALE.values()], tf.float32)
            hidden = tf.nn.relu(scaled @ kernel + bias)
            return hidden @ last_kernel + last_bias

        return classifier(
            weights, predict, self.element_shape, element_dtype=self.element_dtype
        )


leaf_data.register("readings", Readings)
MODELS.register("perceptron", Perceptron)
EXPERIMENTS.register(
    "readings",
    Experiment(
        "Readings of wearables: which activity is it?",
        settings={
            "dataset": "readings",
            "model": "perceptron",
            "rounds": 15,
            "clients_per_round": 4,
            "local_epochs": 3,
            "batch_size": 10,
            "learning_rate": 0.5,
            "targets": (50, 70, 90),
        },
    ),
)
