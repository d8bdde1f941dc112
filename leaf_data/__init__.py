"""Data sets as federations of clients; knows nothing of training.

    import leaf_data

    data = leaf_data.load("digits5k", partition="noniid", seed=3)
    print(data.describe())
    data.train_examples.client("client_000")["x"]   # numpy, uint8 [40, 28, 28]
    data.train.create_tf_dataset_for_client("client_000")   # TFF's ClientData

`load` is the one way in; `names()` lists what it knows. Importing this package
and loading a data set need numpy only. TensorFlow and TFF are imported by the
views `FederatedDataset.train` and `.test`, the first time one is asked for (and
by the download of MNIST, the one time it happens).
"""

from __future__ import annotations

from leaf_data.client_table import ClientTable, read_client_table
from leaf_data.errors import DataError
from leaf_data.examples import Examples
from leaf_data.federated import FederatedDataset, Origin, PixelConvention
from leaf_data.registry import load, names

__all__ = [
    "ClientTable",
    "DataError",
    "Examples",
    "FederatedDataset",
    "Origin",
    "PixelConvention",
    "load",
    "names",
    "read_client_table",
]
