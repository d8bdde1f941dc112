"""Data sets as federations of clients; knows nothing of training.

    import leaf_data

    data = leaf_data.load("digits5k", partition="noniid", seed=3)
    print(data.describe())
    data.train_examples.client("client_000")["x"]   # numpy, uint8 [40, 28, 28]
    data.train.create_tf_dataset_for_client("client_000")   # TFF's ClientData

`load` is the one way in, and `names()` lists the data sets it knows. `Dataset` says how
to write another one, `register` makes it known. What is loaded is a `FederatedDataset`
of `Examples`; `read_client_table` reads a `ClientTable` of what else is known of the
clients, which goes with it.

Importing this package needs numpy only. The modules of the data sets are imported when
the first one is asked for, and pandas where CelebA's lists are read. TensorFlow and TFF
are imported by the views `FederatedDataset.train` and `.test`, the first time one is
asked for (and where MNIST is downloaded, or a database of TFF's is read into its cache,
the one time they are).
"""

from __future__ import annotations

from leaf_data.client_table import ClientTable, read_client_table
from leaf_data.dataset import Dataset, load, names, register
from leaf_data.errors import DataError
from leaf_data.examples import Examples
from leaf_data.federated import FederatedDataset, Origin
from leaf_data.pixels import PixelConvention
from leaf_data.settings import SettingError, Settings, setting
from leaf_data.store import open_store, write_store

__all__ = [
    "ClientTable",
    "DataError",
    "Dataset",
    "Examples",
    "FederatedDataset",
    "Origin",
    "PixelConvention",
    "SettingError",
    "Settings",
    "load",
    "names",
    "open_store",
    "read_client_table",
    "register",
    "setting",
    "write_store",
]
