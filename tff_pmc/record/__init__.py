"""The record of a run: its columns, its folder, written, read and resumed."""
