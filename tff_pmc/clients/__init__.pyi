from tff_pmc.clients.cohort_source import data_source
from tff_pmc.clients.dataset_training import with_attributes
from tff_pmc.clients.packing import pack, pack_client_data

__all__ = ["data_source", "pack", "pack_client_data", "with_attributes"]
