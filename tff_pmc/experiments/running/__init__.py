"""The loop of a run's rounds, several runs, and tasks without training."""
