"""Plots how far the weakest devices are behind the median one."""

from matplotlib.figure import Figure

import tff_pmc

figure = Figure()
axes = figure.subplots()
for label, rounds in tff_pmc.read_results("out").rounds.groupby("label", sort=False):
    axes.plot(rounds["round"], rounds["p50"] - rounds["p10"], label=label)
axes.set_xlabel("communication round")
axes.locator_params(axis="x", integer=True)
axes.set_ylabel("median accuracy minus 10th percentile")
axes.legend()
figure.savefig("behind_the_median.png")
