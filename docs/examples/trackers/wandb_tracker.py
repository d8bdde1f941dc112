"""The callback `wandb`: a run of Weights & Biases for each run, in a project."""

import pathlib
import re
import tempfile

import wandb

from tff_pmc.experiments.callbacks import CALLBACKS, Callback

REFUSED = r"[^A-Za-z0-9_.-]"  # In names of artifacts.


class WeightsAndBiases(Callback):
    def on_start(self, run):
        self._run, self._step = run, run.rounds_before
        id_file = pathlib.Path(run.folder, "wandb_run_id.txt")
        run_id = id_file.read_text() if id_file.exists() else None  # To resume.
        about = {"project": "tff_pmc", "name": run.settings.label}
        wandb.init(id=run_id, resume="allow", **about)
        # A resume may raise --rounds.
        wandb.config.update(run.settings.by_flag(), allow_val_change=True)
        id_file.write_text(wandb.run.id)

    def after_round(self, round):
        self._step = round.round_num
        wandb.log(round.numbers, step=self._step)

    def on_end(self, status):
        if status == "finished":
            with tempfile.TemporaryDirectory() as folder:
                self._run.write_reports(folder)
                plots = sorted(pathlib.Path(folder).glob("*.png"))
                images = {f"plots/{p.stem}": wandb.Image(str(p)) for p in plots}
                wandb.log(images, step=self._step)  # Resumes log the next step.
                self._log_folder(folder, "reports")
            for model in pathlib.Path(self._run.folder).glob("model*"):
                self._log_folder(model, model.name)
        wandb.finish(exit_code=int(status != "finished"))

    def _log_folder(self, folder, kind):
        name = re.sub(REFUSED, "_", f"{self._run.settings.label}-{kind}")
        artifact = wandb.Artifact(name, type=kind)
        artifact.add_dir(str(folder))
        wandb.log_artifact(artifact)


CALLBACKS.register("wandb", WeightsAndBiases)
