"""Prioritized multi-criteria federated learning on TensorFlow Federated.

The server's weighted mean is replaced by criteria, a score over them and a
search over scores; see `docs/architecture.md`. Importing this package, or
`tff_pmc.scores`, does not import TensorFlow.
"""

__version__ = "0.1.0"
