"""The clients' side of a round: packing, local training, and what clients measure.

`pack` and `pack_client_data` make the packs of clients that a process takes, and
`with_attributes` a dataset of batches with what is known of its client beside it;
`data_source` draws cohorts for a program of TFF.
"""

from tff_pmc.clients.data_source import data_source
from tff_pmc.clients.dataset_training import with_attributes
from tff_pmc.clients.packing import pack, pack_client_data

__all__ = ["data_source", "pack", "pack_client_data", "with_attributes"]
