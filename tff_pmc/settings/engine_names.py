"""The names of the engines, for the flag and for `runtime`, which needs TensorFlow."""

ENGINES = ("local", "worker")
"""`local` runs TFF's computations in this process, `worker` in TFF's own worker."""
