"""`store`: a store on disk, as a data set that the command line can name."""

from __future__ import annotations

import dataclasses

from leaf_data.dataset import Dataset, register
from leaf_data.errors import DataError
from leaf_data.federated import FederatedDataset
from leaf_data.formats.data_files import Folder
from leaf_data.settings import setting
from leaf_data.store import open_store


@dataclasses.dataclass(frozen=True)
class Stored(Dataset):
    """A store of your own, on disk, of up to millions of clients."""

    reads_folder = False
    path: str = setting(
        "", "The folder of the store, as leaf_data.write_store writes it.", flag="store"
    )
    verify: bool = setting(
        False,
        "Read all of the store, and hold it against its checksums, before the run.",
        flag="verify_data",
    )

    def load(
        self, data_dir: Folder | None = None, cache_dir: Folder | None = None
    ) -> FederatedDataset:
        """Opens the store; `data_dir` has no meaning here."""
        if not self.path:
            raise DataError("store: name its folder with --store")
        data = open_store(self.path, verify=self.verify)
        # Where it is and how it was opened are not what it is.
        return dataclasses.replace(data, options={**data.options, "seed": self.seed})


register("store", Stored)
