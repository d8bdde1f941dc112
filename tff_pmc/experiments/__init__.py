"""Named experiments, the loop that runs them, and the folder of a run."""
