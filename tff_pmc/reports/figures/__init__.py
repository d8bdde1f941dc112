"""Figures of runs: data frames in, figures of Matplotlib out; none is written here."""
