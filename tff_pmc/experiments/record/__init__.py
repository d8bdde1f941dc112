"""The record of a run: its folder, rows and checkpoints."""
