"""Data sets as federations of clients, independent of training.

    import leaf_data

    data = leaf_data.load("digits5k", partition="noniid", seed=3)
    print(data.describe())
    data.train_examples.client("client_000")["x"]   # numpy, uint8 [40, 28, 28]
    data.train.create_tf_dataset_for_client("client_000")   # TFF's ClientData

`load` returns a data set by name, and `names()` lists the names. To add one, derive a
class from `Dataset` and `register` it. A loaded data set is a `FederatedDataset` of
`Examples`; `read_client_table` reads a `ClientTable` of further attributes of the
clients, which can be joined to it.

Importing this package needs numpy only. The modules of the data sets are imported when
the first one is loaded, and pandas where CelebA's lists are read. TensorFlow and TFF
are imported when `FederatedDataset.train` or `.test` is first used, when MNIST is
downloaded, and when a database of TFF's is read into its cache.
"""

from __future__ import annotations

from declared_settings import SettingError, Settings, setting
from leaf_data.client_table import ClientTable, read_client_table
from leaf_data.dataset import Dataset, load, names, register
from leaf_data.errors import DataError
from leaf_data.examples import MASKED, Examples
from leaf_data.federated import FederatedDataset, Origin
from leaf_data.pixels import PixelConvention
from leaf_data.store import open_store, write_store
from leaf_data.text import Vocabulary

__all__ = [
    "MASKED",
    "ClientTable",
    "DataError",
    "Dataset",
    "Examples",
    "FederatedDataset",
    "Origin",
    "PixelConvention",
    "SettingError",
    "Settings",
    "Vocabulary",
    "load",
    "names",
    "open_store",
    "read_client_table",
    "register",
    "setting",
    "write_store",
]
