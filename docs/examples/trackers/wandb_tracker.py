"""The callback `wandb`: a run of Weights & Biases for each run, in a project."""

import pathlib

import matplotlib.pyplot  # noqa: F401  `wandb.Image` looks for it.
import wandb

import tff_pmc
from tff_pmc.experiments.callbacks import CALLBACKS, Callback
from tff_pmc.reports.figures import plots


class WeightsAndBiases(Callback):
    def on_start(self, run):
        self._folder, known = run.folder, pathlib.Path(run.folder, "wandb_run_id.txt")
        begun = known.read_text() if known.exists() else None  # By a run to resume.
        about = {"name": run.settings.label, "config": run.settings.by_flag()}
        wandb.init(project="tff_pmc", id=begun, resume="allow", **about)
        known.write_text(wandb.run.id)

    def after_round(self, round):
        wandb.log(round.numbers, step=round.round_num)

    def on_end(self, status):
        if status == "finished":
            found = plots.report(tff_pmc.read_results(self._folder))
            wandb.log({name: wandb.Image(plot) for name, plot in found.figures.items()})
        wandb.finish(exit_code=int(status != "finished"))


CALLBACKS.register("wandb", WeightsAndBiases)
