"""Plots how far the weakest devices are behind the median one."""

from matplotlib.figure import Figure

from tff_pmc.reports.read_folder import read_runs

figure = Figure()
axes = figure.subplots()
for run in read_runs("out"):
    axes.plot(
        run.rounds["round"], run.rounds["p50"] - run.rounds["p10"], label=run.label
    )
axes.set_xlabel("communication round")
axes.locator_params(axis="x", integer=True)
axes.set_ylabel("median accuracy minus 10th percentile")
axes.legend()
figure.savefig("behind_the_median.png")
