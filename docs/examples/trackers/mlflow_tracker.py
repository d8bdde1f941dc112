"""The callback `mlflow`: a run of MLflow for each; MLFLOW_TRACKING_URI says where."""

import pathlib

import mlflow

import tff_pmc
from tff_pmc.experiments.callbacks import CALLBACKS, Callback
from tff_pmc.reports.figures import plots


class MLflow(Callback):
    def on_start(self, run):
        self._folder = run.folder
        id_file = pathlib.Path(run.folder, "mlflow_run_id.txt")
        run_id = id_file.read_text() if id_file.exists() else None  # To resume.
        started = mlflow.start_run(run_id, run_name=run.settings.label)
        id_file.write_text(started.info.run_id)
        mlflow.log_params({} if run_id else run.settings.by_flag())

    def after_round(self, round):
        mlflow.log_metrics(round.numbers, step=round.round_num)

    def on_end(self, status):
        if status == "finished":
            results = tff_pmc.read_results(self._folder)
            for name, figure in plots.report(results).figures.items():
                mlflow.log_figure(figure, f"{name}.png")
        mlflow.end_run("FINISHED" if status == "finished" else "KILLED")


CALLBACKS.register("mlflow", MLflow)
