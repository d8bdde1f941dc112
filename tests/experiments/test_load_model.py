"""What a finished run leaves: its model, in other programs and here; early ends."""

import dataclasses
import functools
import json
import pathlib
import subprocess
import sys
import types

import numpy as np
import pytest

import run_experiments
import tff_pmc
from tff_pmc.experiments.callbacks.best_model import BestModel
from tff_pmc.experiments.callbacks.early_stopping import EarlyStopping
from tff_pmc.experiments.experiment import settings
from tff_pmc.experiments.load_model import export_model, load_model
from tff_pmc.record.best_round import best_round
from tff_pmc.record.record_error import RecordError
from tff_pmc.record.results import read_results

RUN = [
    *("run_experiments.py", "--experiment=quickstart", "--priority=LD,DS"),
    *("--model=keras_simple_convnet", "--dropout=0", "--local_epochs=1"),
    *("--batch_size=20", "--clients_per_round=0.05", "--learning_rate=0.05"),
]

SCORES = """
import sys, numpy as np, tensorflow as tf
assert "tff_pmc" not in sys.modules
images = tf.constant(np.load("images.npy"))
for folder in ("model", "model_best"):
    loaded = tf.saved_model.load(f"{sys.argv[1]}/{folder}/saved_model")
    serve = loaded.signatures["serving_default"]
    np.save(f"{folder}.npy", serve(x=images)["scores"].numpy())
"""


@pytest.fixture(scope="module")
def early_run(tmp_path_factory):
    """A run that ends early, and keeps its best model; its folder."""
    place = tmp_path_factory.mktemp("trained") / "runs"
    options = ["--rounds=9", "--patience=1", "--keep=best", "--predictions"]
    code = run_experiments.main([*RUN, *options, f"--output_dir={place}"])
    assert code == 0
    return place


@pytest.fixture(scope="module")
def examples():
    """The test images and labels of the run's data set."""
    from leaf_data.dataset import DATASETS

    data = DATASETS["digits5k"]().load().test_examples
    return data.x, data.y


def test_the_exported_model_scores_as_recorded_without_this_package(
    early_run, examples, tmp_path
):
    images, labels = examples
    np.save(tmp_path / "images.npy", images)
    script = [sys.executable, "-c", SCORES, str(early_run / "LD-DS")]
    subprocess.run(script, check=True, cwd=tmp_path)
    results = read_results(str(early_run))
    for folder, row in (
        ("model", results.rounds.iloc[-1]),
        ("model_best", results.rounds.loc[results.rounds["accuracy"].idxmax()]),
    ):
        right = np.load(tmp_path / f"{folder}.npy").argmax(axis=1) == labels
        assert right.sum() == row["correct"]


def test_a_model_is_loaded_with_its_weights_and_written_again(
    early_run, examples, tmp_path
):
    images, labels = examples
    run = str(early_run / "LD-DS")
    rounds = read_results(run).rounds
    best = int(rounds["accuracy"].idxmax()) + 1
    for number in (None, best):
        model = load_model(run, number)
        scores = model.predict_on_batch(model.initial_weights, images, training=False)
        right = np.argmax(scores, axis=1) == labels
        expected = rounds.iloc[-1] if number is None else rounds.iloc[best - 1]
        assert right.sum() == expected["correct"]
    goal = tmp_path / "out"
    command = ["run_experiments.py", f"--export_model={run}", f"--output_dir={goal}"]
    assert run_experiments.main(command) == 0
    assert run_experiments.main(command) == 2  # Nothing is overwritten.
    with (
        np.load(goal / "weights.npz") as again,
        np.load(early_run / "LD-DS" / "model" / "weights.npz") as first,
    ):
        assert again.files == first.files
        assert again.files[:2] == ["conv_1/kernel", "conv_1/bias"]
        for name in again.files:
            np.testing.assert_array_equal(again[name], first[name])
    assert tff_pmc.load_model is load_model


def test_a_run_that_is_cut_off_at_its_early_end_is_resumed_to_it(early_run, tmp_path):
    place = tmp_path / "runs"
    subprocess.run(["cp", "-r", str(early_run), str(place)], check=True)
    path = place / "LD-DS" / "run.json"
    before = json.loads(path.read_text())
    path.write_text(json.dumps({**before, "status": "running"}))
    (place / "LD-DS" / "model" / "weights.npz").unlink()
    command = [*RUN, "--rounds=9", "--patience=1", "--keep=best", "--predictions"]
    assert run_experiments.main([*command, f"--output_dir={place}", "--resume"]) == 0
    after = json.loads(path.read_text())
    for name in ("status", "ended_early", "ended_after"):
        assert after[name] == before[name]
    for name in ("rounds.csv", "model/weights.npz"):
        first, again = (folder / "LD-DS" / name for folder in (early_run, place))
        assert first.read_bytes() == again.read_bytes()


def test_more_rounds_replace_the_model_of_the_first_end(early_run, tmp_path):
    run = tmp_path / "run"
    subprocess.run(["cp", "-r", str(early_run / "LD-DS"), str(run)], check=True)
    info = json.loads((run / "run.json").read_text())
    (run / "run.json").write_text(json.dumps({**info, "status": "interrupted"}))
    with np.load(early_run / "LD-DS" / "model" / "weights.npz") as right:
        arrays = [right[name] for name in right.files]
        np.savez(run / "model" / "weights.npz", *(0 * array for array in arrays))
    # It may have been killed between the row of a round and its checkpoint.
    rounds = run / "rounds.csv"
    last = rounds.read_text().splitlines()[-1]
    number = int(last.partition(",")[0])
    rounds.write_text(
        rounds.read_text() + last.replace(f"{number},", f"{number + 1},", 1) + "\n"
    )
    for which in (None, number):
        weights = load_model(str(run), which).initial_weights
        for array, like in zip([*weights[0], *weights[1]], arrays):
            np.testing.assert_array_equal(array, like)
    with pytest.raises(RecordError, match=f"no saved model of round {number + 1}"):
        load_model(str(run), number + 1)


@pytest.mark.parametrize(
    ("patience", "rounds", "ends"),
    [
        (2, [(1, "5"), (2, ""), (3, "")], False),  # Not tested since.
        (2, [(1, "5"), (2, ""), (3, "5")], True),
        (2, [(1, "5"), (2, ""), (3, "6")], False),
        (3, [(1, "5"), (2, ""), (3, "5")], False),
        (0, [(1, "5"), (2, ""), (3, "5")], False),
    ],
)
def test_a_round_without_a_test_ends_no_run(tmp_path, patience, rounds, ends):
    lines = ["round,correct,examples"]
    lines += [f"{number},{value},{value and 10}" for number, value in rounds]
    (tmp_path / "rounds.csv").write_text("\n".join(lines) + "\n")
    callback = EarlyStopping(patience=patience)
    callback.on_start(types.SimpleNamespace(folder=str(tmp_path)))
    number, value = rounds[-1]
    record = types.SimpleNamespace(tested=bool(value))
    finished = types.SimpleNamespace(round_num=number, record=record)
    assert bool(callback.after_round(finished)) == ends


def test_the_best_loss_is_compared_unrounded(tmp_path):
    sums = ["0.1100512", "0.1100487", "0.1100474", "0.1100480"]
    lines = ["round,test_loss,loss_sum,examples"]
    lines += [
        f"{place},0.004585,{loss_sum},24" for place, loss_sum in enumerate(sums, 1)
    ]
    (tmp_path / "rounds.csv").write_text("\n".join(lines) + "\n")
    assert best_round(str(tmp_path)) == (3, "test loss")


def test_a_run_that_ended_early_says_why(early_run, capsys):
    results = read_results(str(early_run))
    accuracy = results.rounds["accuracy"]
    best = int(accuracy.idxmax()) + 1
    assert len(accuracy) == best + 1 < 9
    (words,) = results.runs["ended_early"]
    assert words == (
        f"ended after round {best + 1}: no better test accuracy since round {best} "
        "(--patience=1)"
    )
    _, _, reason = words.partition(": ")
    note = f"LD,DS ended after {best + 1} rounds (seed 0): {reason}."
    assert note in (early_run / "results.md").read_text()
    page = (early_run / "report.html").read_text()
    assert "--patience=1" in page and "<svg" in page
    # It is finished, and stays so.
    command = [*RUN, "--rounds=9", "--patience=1", "--keep=best", "--predictions"]
    assert (
        run_experiments.main([*command, f"--output_dir={early_run}", "--resume"]) == 0
    )
    assert len(read_results(str(early_run)).rounds) == len(accuracy)


def test_resuming_with_other_callback_flags_equals_a_run_that_had_them(
    early_run, tmp_path
):
    """A run that `--patience=1` ended continues to the end of `--patience=2`."""
    flags, whole = ["--rounds=9", "--patience=2", "--keep=best"], tmp_path / "whole"
    assert run_experiments.main([*RUN, *flags, f"--output_dir={whole}"]) == 0
    place = tmp_path / "runs"
    subprocess.run(["cp", "-r", str(early_run), str(place)], check=True)
    again = [*RUN, *flags, "--predictions", f"--output_dir={place}", "--resume"]
    assert run_experiments.main(again) == 0
    resumed, expected = (parent / "LD-DS" for parent in (place, whole))
    for name in ("rounds.csv", "model_best/weights.npz", "model_best/round.txt"):
        assert (resumed / name).read_bytes() == (expected / name).read_bytes()
    for folder in (resumed, expected):
        assert "ended_early" not in json.loads((folder / "run.json").read_text())


@pytest.mark.parametrize(
    ("kept", "saved", "before", "refused"),
    [
        (2, 0, 3, False),
        (0, 2, 3, False),  # Of a run that was finished, and has more rounds now.
        (4, 0, 3, False),  # Killed after round 4, which is made again.
        (0, 0, 3, True),  # Begun with --keep=last.
        (1, 1, 3, True),  # The rounds 2 and 3 had --keep=last.
        (0, 0, 0, False),
    ],
)
def test_the_best_model_is_of_the_best_round_or_rejected(
    tmp_path, assert_one_line, kept, saved, before, refused
):
    """The best of three rounds is the second."""
    lines = ["round,correct,examples", "1,5,10", "2,7,10", "3,6,10"]
    (tmp_path / "rounds.csv").write_text("\n".join(lines) + "\n")
    if kept:
        np.savez(tmp_path / "weights_of_best.npz", kept, np.zeros(2))
    if saved:
        (tmp_path / "model_best").mkdir()
        (tmp_path / "model_best" / "round.txt").write_text(f"{saved}\n")
    run = types.SimpleNamespace(folder=str(tmp_path), rounds_before=before)
    for keep in ("last", "best"):
        start = functools.partial(BestModel(keep=keep).on_start, run)
        if keep == "best" and refused:
            assert_one_line(RecordError, start, "model of round 2", "without the flag")
        else:
            start()


@pytest.mark.parametrize("keep", ["last", "best"])
def test_no_other_rounds_model_is_saved_as_the_best(tmp_path, keep):
    """What the rounds before a resume with `--keep=last` had kept is not the best."""
    lines = ["round,correct,examples", "1,5,10", "2,7,10"]
    (tmp_path / "rounds.csv").write_text("\n".join(lines) + "\n")
    np.savez(tmp_path / "weights_of_best.npz", 1, np.zeros(2))
    callback = BestModel(keep=keep)
    callback.on_start(types.SimpleNamespace(folder=str(tmp_path), rounds_before=0))
    callback.on_end("finished")
    assert not (tmp_path / "model_best").exists()


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda run: None, "a run saves that of its last round"),
        (lambda run: (run / "run.json").unlink(), "run.json is missing"),
        (
            lambda run: (run / "run.json").write_text('{"settings": {}}'),
            "contains several runs: give the folder of one",
        ),
        (
            lambda run: [
                (run / "model" / "weights.npz").unlink(),
                (run / "checkpoint.npz").unlink(),
            ],
            "has no model and no checkpoint: it is empty",
        ),
        (
            lambda run: edit(run, "mnist_cnn"),
            "the saved weights do not fit the recorded model",
        ),
        (
            lambda run: edit(run, "mine"),
            "made with --plugin=mine: give the --plugin th",
        ),
    ],
)
def test_a_run_without_its_model_is_one_line(early_run, tmp_path, change, words):
    run = tmp_path / "run"
    subprocess.run(["cp", "-r", str(early_run / "LD-DS"), str(run)], check=True)
    change(run)
    with pytest.raises(RecordError, match=words) as caught:
        # Round 1 is neither the best nor the last.
        load_model(str(run), 1 if words.startswith("a run saves") else None)
    assert "\n" not in str(caught.value)


def test_names_of_inputs_and_classes_are_in_the_record_and_with_the_model(
    early_run, tmp_path
):
    from tff_pmc.experiments.running import loop  # It imports TensorFlow.

    quick = settings("quickstart", {})
    data = quick.data.load()
    names = ["zero", *"123456789"]
    named = dataclasses.replace(data, class_names=names)
    before, now = (loop.describe(quick, dataset) for dataset in (data, named))
    assert now["classes"] == names and "classes" not in before
    assert now["pixels"] == "white_on_black (0 = background, 255 = ink)"
    # What a resume compares, so that runs from before the names can be resumed.
    assert now["data"] == before["data"] and now["settings"] == before["settings"]
    run = tmp_path / "run"
    subprocess.run(["cp", "-r", str(early_run / "LD-DS"), str(run)], check=True)
    info = json.loads((run / "run.json").read_text())
    assert (run / "model" / "model.json").exists()
    columns = read_results(str(run)).runs.columns
    assert not {"data_inputs", "data_classes"} & {*columns}
    sessions = [{"at": "then", "versions": {"commit": "abc", "tff_pmc": "0.1"}}]
    words = {"unit": "letters", "tokens": ["a", "b"]}
    changed = {"classes": names, "inputs": ["pixel"], "resumed": sessions}
    changed["vocabulary"] = words
    (run / "run.json").write_text(json.dumps({**info, **changed}))
    runs = read_results(str(run)).runs
    assert runs["data_classes"][0] == tuple(names)
    assert runs["data_inputs"][0] == ("pixel",)
    goal = tmp_path / "out"
    export_model(str(run), str(goal))
    about = json.loads((goal / "model.json").read_text())
    assert about["classes"] == names and about["inputs"] == ["pixel"]
    assert about["vocabulary"] == words
    assert about["commit"] == "abc" and about["input_shape"] == [None, 28, 28]
    assert about["pixels"] == now["pixels"] and about["input_type"] == "uint8"
    assert about["round"] == len(read_results(str(run)).rounds)
    # A run from before has none of these.
    for name in ("classes", "inputs", "pixels", "scaling", "vocabulary"):
        changed.pop(name, None)
        info.pop(name, None)
    (run / "run.json").write_text(json.dumps({**info, **changed}))
    export_model(str(run), str(tmp_path / "older"))
    older = json.loads((tmp_path / "older" / "model.json").read_text())
    assert older["classes"] == older["inputs"] == [] and "vocabulary" not in older
    assert older["round"] == about["round"]


def test_each_model_is_saved_with_its_round(early_run):
    run = early_run / "LD-DS"
    rounds = read_results(str(run)).rounds
    best = int(rounds["accuracy"].idxmax()) + 1
    for folder, number in (("model", len(rounds)), ("model_best", best)):
        about = json.loads((run / folder / "model.json").read_text())
        assert about["round"] == number and about["run"] == "LD,DS"
        assert about["data"]["name"] == "digits5k"
        assert about["scaling"].startswith("none before the model")


def edit(run: pathlib.Path, model: str) -> None:
    """Changes the name of the model in `run.json`."""
    info = json.loads((run / "run.json").read_text())
    info["settings"]["model"]["model"] = model
    info["versions"]["--plugin=mine"] = "00"
    (run / "run.json").write_text(json.dumps(info))


def test_a_run_ends_when_all_targets_are_reached(tmp_path):
    place = tmp_path / "runs"
    options = ["--rounds=6", "--targets=1", "--until=targets", "--reach=at_least"]
    assert run_experiments.main([*RUN, *options, f"--output_dir={place}"]) == 0
    results = read_results(str(place))
    from tff_pmc.reports.statistics.rounds_to_target import rounds_to_target

    reached = rounds_to_target(results, [1])["rounds"]
    assert len(results.rounds) == reached.max() < 6
    assert "all targets are reached" in results.runs["ended_early"][0]


def test_tables_of_an_unknown_experiment_are_rejected(early_run, tmp_path, capsys):
    run = tmp_path / "run"
    subprocess.run(["cp", "-r", str(early_run / "LD-DS"), str(run)], check=True)
    info = json.loads((run / "run.json").read_text())
    info["settings"]["experiment"] = "mine"
    (run / "run.json").write_text(json.dumps(info))
    tables = ["", f"--tables={run}", f"--output_dir={tmp_path / 'out'}"]
    assert run_experiments.main(tables) == 2
    words = "has runs of the experiment mine, which is unknown here: give the --plugin"
    assert words in capsys.readouterr().err


def test_targets_without_clients_are_rejected_before_a_folder_is_made(tmp_path, capsys):
    place = tmp_path / "runs"
    options = ["--rounds=2", "--until=targets", "--record_clients=none"]
    assert run_experiments.main([*RUN, *options, f"--output_dir={place}"]) == 2
    assert "remove --record_clients=none" in capsys.readouterr().err
    assert not place.exists()
