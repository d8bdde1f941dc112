"""A column of `rounds.csv`: the largest weight of a client in the round."""

from tff_pmc.record.tables import ROUNDS, SHARE, Column

ROUNDS.add(Column("largest_weight", SHARE, lambda record: float(record.weights.max())))
