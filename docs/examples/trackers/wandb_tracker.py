"""The callback `wandb`: a run of Weights & Biases for each run, in a project."""

import pathlib

import matplotlib.pyplot  # noqa: F401  `wandb.Image` looks for it.
import wandb

import tff_pmc
from tff_pmc.experiments.callbacks import CALLBACKS, Callback
from tff_pmc.reports.figures import plots


class WeightsAndBiases(Callback):
    def on_start(self, run):
        self._folder = run.folder
        id_file = pathlib.Path(run.folder, "wandb_run_id.txt")
        run_id = id_file.read_text() if id_file.exists() else None  # To resume.
        about = {"name": run.settings.label, "config": run.settings.by_flag()}
        wandb.init(project="tff_pmc", id=run_id, resume="allow", **about)
        id_file.write_text(wandb.run.id)

    def after_round(self, round):
        wandb.log(round.numbers, step=round.round_num)

    def on_end(self, status):
        if status == "finished":
            figures = plots.report(tff_pmc.read_results(self._folder)).figures
            wandb.log({name: wandb.Image(plot) for name, plot in figures.items()})
        wandb.finish(exit_code=int(status != "finished"))


CALLBACKS.register("wandb", WeightsAndBiases)
