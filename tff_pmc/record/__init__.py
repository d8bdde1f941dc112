"""The record of a run: its tables and its folder, written, read and resumed."""
