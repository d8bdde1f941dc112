"""The callback `mlflow`: a run of MLflow for each; MLFLOW_TRACKING_URI says where."""

import pathlib
import re
import tempfile

import mlflow

from tff_pmc.experiments.callbacks import CALLBACKS, Callback

REFUSED = r"[^\w./: -]|^/|/(?=/|$)"  # In names of metrics.


class MLflow(Callback):
    def on_start(self, run):
        self._run, settings = run, run.settings.by_flag()
        id_file = pathlib.Path(run.folder, "mlflow_run_id.txt")
        run_id = id_file.read_text() if id_file.exists() else None  # To resume.
        started = mlflow.start_run(run_id, run_name=run.settings.label)
        id_file.write_text(started.info.run_id)
        # A tag can change, a parameter cannot: a resume may raise --rounds.
        mlflow.set_tag("rounds", settings.pop("rounds"))
        mlflow.log_params({} if run_id else settings)

    def after_round(self, round):
        numbers = {re.sub(REFUSED, "_", n): v for n, v in round.numbers.items()}
        mlflow.log_metrics(numbers, step=round.round_num)

    def on_end(self, status):
        if status == "finished":
            with tempfile.TemporaryDirectory() as folder:
                self._run.write_reports(folder)
                mlflow.log_artifacts(folder)
            for model in pathlib.Path(self._run.folder).glob("model*"):
                mlflow.log_artifacts(model, model.name)
        mlflow.end_run("FINISHED" if status == "finished" else "KILLED")


CALLBACKS.register("mlflow", MLflow)
