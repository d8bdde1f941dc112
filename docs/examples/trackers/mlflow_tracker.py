"""The callback `mlflow`: a run of MLflow for each; MLFLOW_TRACKING_URI says where."""

import pathlib

import mlflow

import tff_pmc
from tff_pmc.experiments.callbacks import CALLBACKS, Callback
from tff_pmc.reports.figures import plots


class MLflow(Callback):
    def on_start(self, run):
        self._folder, known = run.folder, pathlib.Path(run.folder, "mlflow_run_id.txt")
        begun = known.read_text() if known.exists() else None  # By a run to resume.
        started = mlflow.start_run(begun, run_name=run.settings.label)
        known.write_text(started.info.run_id)
        mlflow.log_params({} if begun else run.settings.by_flag())

    def after_round(self, round):
        mlflow.log_metrics(round.numbers, step=round.round_num)

    def on_end(self, status):
        if status == "finished":
            results = tff_pmc.read_results(self._folder)
            for name, figure in plots.report(results).figures.items():
                mlflow.log_figure(figure, f"{name}.png")
        mlflow.end_run("FINISHED" if status == "finished" else "KILLED")


CALLBACKS.register("mlflow", MLflow)
