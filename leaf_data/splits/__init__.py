"""Splits of examples among clients: pure functions of labels, counts and a seed."""
