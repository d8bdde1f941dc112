"""Loads and exports the trained models of runs on disk."""

from __future__ import annotations

import os
from typing import Any, Optional

import numpy as np

from declared_settings import UnknownNameError
from leaf_data.formats.data_files import Folder, expand_path
from tff_pmc._lazy import tff
from tff_pmc.algorithms.run_context import build_model
from tff_pmc.models import MODELS
from tff_pmc.models.model_folder import (
    BEST_MODEL,
    MODEL,
    WEIGHTS,
    order_arrays,
    read_round,
    save_model,
)
from tff_pmc.models.weights_file import with_initial_weights
from tff_pmc.record import checkpoints
from tff_pmc.record.files import FINISHED, RUN_JSON, make_empty_folder, read_json
from tff_pmc.record.record_error import RecordError
from tff_pmc.record.tables import ROUNDS


def load_model(
    run: Folder, round: Optional[int] = None
) -> tff.learning.models.FunctionalModel:
    """Returns the trained model of a run, a `tff.learning.models.FunctionalModel`.

    Its `initial_weights` are the trained ones.

        model = tff_pmc.load_model("runs/quickstart-20260101-120000/LD-DS-MD")
        scores = model.predict_on_batch(model.initial_weights, images, training=False)

    Args:
        run: the folder of one run. The model of an interrupted run is that of its last
            checkpoint.
        round: the round whose model to load: the last, or with `--keep=best` the best;
            by default the last.

    Raises:
        RecordError: the folder contains no run or no model, the model of this round was
            not saved, or the model's plugin is not imported; the message is one line.
    """
    return _load(expand_path(run), round)[0]


def about_model(run: str, round_num: int) -> dict[str, Any]:
    """Returns the content of `model.json` for a run's model after a round."""
    info = read_json(os.path.join(run, RUN_JSON), ("label", "data"))
    # The last session trained the model.
    versions = [info, *(info.get("resumed") or [])][-1].get("versions", {})
    data = info["data"]
    return {
        "inputs": info.get("inputs", []),
        "scaling": info.get("scaling", ""),
        **({"pixels": info["pixels"]} if "pixels" in info else {}),
        "classes": info.get("classes", []),
        **({"vocabulary": info["vocabulary"]} if "vocabulary" in info else {}),
        "data": {name: data.get(name) for name in ("name", "options")},
        "run": info["label"],
        "round": round_num,
        "commit": versions.get("commit"),
        "tff_pmc": versions.get("tff_pmc"),
    }


def _load(run: str, round: Optional[int]) -> tuple[Any, int]:
    """Returns the trained model and its round."""
    model, best = _untrained_model(run), os.path.join(run, BEST_MODEL)
    if round is not None and round == read_round(best):
        arrays = order_arrays(model, _read_arrays(os.path.join(best, WEIGHTS)))
        return _with_weights(model, arrays, run), round
    path = os.path.join(run, MODEL, WEIGHTS)
    # While a run is resumed with more rounds, model/ is that of its former last round.
    ended = read_json(os.path.join(run, RUN_JSON)).get("status") == FINISHED
    if ended and os.path.exists(path):
        rounds, arrays = len(ROUNDS.read(run)), order_arrays(model, _read_arrays(path))
    else:
        rounds, arrays = _load_checkpoint(run, model)
    if round not in (None, rounds):
        raise RecordError(
            f"{run} has no saved model of round {round}: a run saves that of its last "
            f"round, {rounds}, and with --keep=best that of the best"
        )
    return _with_weights(model, arrays, run), rounds


def export_model(run: str, folder: str) -> None:
    """Writes the trained model of a run into a new folder, in the form of `model/`.

    Raises:
        RecordError: as `load_model` does, or because the folder is not empty.
    """
    run, folder = expand_path(run), expand_path(folder)
    model, round_num = _load(run, None)
    weights = tff.learning.models.ModelWeights(*model.initial_weights)
    make_empty_folder(folder)
    save_model(model, weights, folder, about=about_model(run, round_num))


def _untrained_model(run: str) -> Any:
    """Builds the untrained model of a run from its recorded settings."""
    path = os.path.join(run, RUN_JSON)
    info = read_json(path, ("settings",))
    if "label" not in info:
        raise RecordError(f"{run} contains several runs: give the folder of one")
    settings = info["settings"]
    try:
        values = settings["model"]
        kind = MODELS[values["model"]]
        return build_model(kind.from_flag_values(values))
    except UnknownNameError as error:
        flags = [key for key in info.get("versions", {}) if key.startswith("--plugin")]
        made_with = (
            f"the run was made with {' '.join(flags)}: give" if flags else "give"
        )
        raise RecordError(
            f"{path}: {error}; {made_with} the --plugin that has it, or in Python "
            "import its module first"
        ) from error
    except (KeyError, TypeError, ValueError) as error:
        raise RecordError(
            f"{path}: the recorded model settings are invalid: {error}"
        ) from error


def _load_checkpoint(run: str, model: Any) -> tuple[int, list[Any]]:
    """Returns the round of a checkpoint and the model's weights."""
    path = os.path.join(run, checkpoints.FILE_NAME)
    if not os.path.exists(path):
        raise RecordError(
            f"{run} has no model and no checkpoint: it is empty, or an early version "
            "wrote it"
        )
    # The model's weights are the first leaves of the state of every process.
    count = sum(map(len, model.initial_weights))
    names = [f"leaf_{number}" for number in range(count)]
    round_num, *arrays = _read_arrays(path, ["round", *names]).values()
    return int(round_num), arrays


def _read_arrays(path: str, names: Optional[list[str]] = None) -> dict[str, Any]:
    try:
        with np.load(path, allow_pickle=False) as archive:
            return {name: archive[name] for name in names or archive.files}
    except Exception as error:  # Damaged archives raise nearly anything.
        raise RecordError(f"{path} cannot be read: {error}") from error


def _with_weights(model: Any, arrays: list[Any], run: str) -> Any:
    trainable, others = model.initial_weights
    like = [np.asarray(tensor) for tensor in (*trainable, *others)]
    if [a.shape for a in arrays] != [b.shape for b in like]:
        raise RecordError(f"{run}: the saved weights do not fit the recorded model")
    return with_initial_weights(model, arrays)
