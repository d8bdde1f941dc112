"""What is run: named experiments, the round loop, and the run folder."""
