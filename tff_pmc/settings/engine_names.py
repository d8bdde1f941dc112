"""The names of the engines, for the flag and for `runtime`, which needs TensorFlow."""

ENGINES = ("local", "worker", "cluster")
"""`local` runs TFF's computations in this process, `worker` in TFF's own worker, and
`cluster` on the workers of Dask distributed."""

SPREADS = ("auto", "runs", "clients")
"""What is spread over a cluster: whole runs, or the clients of each round."""
