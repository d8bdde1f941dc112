"""docs/own_data.md goes from CSVs to a plot: its commands run and do what it says."""

import dataclasses
import json
import pathlib
import re
import shlex
import textwrap

import numpy as np
import pytest
from commands import ROOT, python, rows

import leaf_data

PAGE = (ROOT / "docs" / "own_data.md").read_text()
MODULES = {
    pathlib.Path(path).name: (ROOT / "docs" / path).read_text()
    for path in re.findall(r"\((examples/own_data/\w+\.py)\)", PAGE)
}
COMMANDS = [
    shlex.split(text.replace("\\\n", " "))
    for text in re.findall(r"```\n(CHECKOUT/\.venv/bin/python .*?)```", PAGE, re.S)
]
# All commands in one process, which imports TensorFlow once.
RUNNER = f"""
import json, runpy, sys
sys.path.insert(0, {str(ROOT)!r})
import run_experiments
for script, *arguments in json.loads(sys.argv[1]):
    print("$", script, flush=True)
    if script.endswith("run_experiments.py"):
        code = run_experiments.main([script, *arguments])
        assert code == 0, (script, arguments, code)
    else:
        runpy.run_path(script, run_name="__main__")
"""


def run(folder, *commands):
    return python("-c", RUNNER, json.dumps(commands), cwd=folder)


@pytest.fixture(scope="module")
def page_run(tmp_path_factory):
    """The page's modules in a new folder, and the output of its commands there."""
    folder = tmp_path_factory.mktemp("mine")
    for name, code in MODULES.items():
        (folder / name).write_text(code)
    commands = []
    for _, *words in COMMANDS:
        commands.append([word.replace("CHECKOUT", str(ROOT)) for word in words])
    done = run(folder, *commands)
    assert done.returncode == 0, done.stderr
    return folder, done.stdout


def test_the_snippets_of_both_pages_run(tmp_path, monkeypatch):
    """With data of two clients; a store keeps the central test set."""
    monkeypatch.chdir(tmp_path)
    x, y = np.ones((8, 2), np.float32), np.arange(8, dtype=np.int32) % 2
    store = (ROOT / "docs" / "stores.md").read_text()
    names = {"dataclasses": dataclasses, "leaf_data": leaf_data, "np": np}
    names.update(x=x, y=y, my_reader=lambda: [("a", x, y), ("b", x, y)])
    for page in (store, PAGE):
        for code in re.findall(r"```python\n(.*?)```", page, re.S):
            exec(code, names)
    data = names["data"]
    assert data.train_examples.client_ids == ("a", "b")
    assert data.central_test.client_ids == ("central",)
    leaf_data.write_store(data, "again")
    assert leaf_data.open_store("again").central_test.num_examples == 8


def test_the_example_reports_its_training_and_test_data(tmp_path):
    """Equal rows of both parts are counted; test.csv and an empty file are refused."""
    (tmp_path / "readings.py").write_text(MODULES["readings.py"])
    row = "resting,60,1,200,40\n"
    header = "activity,pulse,steps,light,noise\n"
    folders = {
        "equal": {"a.csv": row * 10, "b.csv": row * 10},
        "pair": {"train.csv": row, "test.csv": row},
        "empty": {"a.csv": row * 2, "b.csv": ""},
        "one": {"a.csv": row},
    }
    for folder, files in folders.items():
        (tmp_path / folder).mkdir()
        for name, text in files.items():
            (tmp_path / folder / name).write_text(header + text)
    code = """
import leaf_data, readings
print(leaf_data.load("readings", "equal").describe())
for folder in ("pair", "empty", "one"):
    try:
        leaf_data.load("readings", folder)
    except leaf_data.DataError as error:
        print(error)
"""
    printed = python("-c", code, cwd=tmp_path).stdout
    assert "equal to training examples: 4 of 4 test examples" in printed
    assert "train.csv and pair/test.csv are a training and a test set" in printed
    assert "empty/b.csv: has no rows" in printed and "one/a.csv: has no" in printed


def test_what_inspect_prints_is_on_the_page(page_run):
    _, printed = page_run
    inspected = printed.split("$ ")[2]
    (shown,) = re.findall(r"clients and examples:\n\n(.*?)\n\n-", PAGE, re.S)
    for line in textwrap.dedent(shown).splitlines():
        assert line == "  ..." or line in inspected, line


def test_the_files_become_clients_with_their_names_and_sums(page_run):
    folder, printed = page_run
    files = sorted((folder / "devices").glob("*.csv"))
    devices = {path.stem: rows(path) for path in files}
    assert len(devices) == 12 and "12 clients" in printed
    tested = rows(folder / "out" / "DS" / "clients.csv")[:12]
    assert [row["client"] for row in tested] == list(devices)
    for row in tested:
        assert int(row["examples"]) == max(1, round(0.3 * len(devices[row["client"]])))
    for row in rows(folder / "out" / "DS" / "cohort.csv"):
        device_rows = devices[row["client"]]
        tested = max(1, round(0.3 * len(device_rows)))
        assert float(row["DS"]) == len(device_rows) - tested
        moving = sum(reading["activity"] != "resting" for reading in device_rows)
        trained = float(row["MO"]) * float(row["DS"])
        assert trained == pytest.approx(round(trained), abs=1e-4)
        assert moving - tested <= round(trained) <= moving
    info = json.loads((folder / "out" / "DS" / "run.json").read_text())
    assert info["settings"]["data"]["readings_test_share"] == 0.3


def test_the_example_learns_and_is_plotted(page_run):
    folder, printed = page_run
    for name in ("DS", "MO-LD-DS"):
        rounds = rows(folder / "out" / name / "rounds.csv")
        accuracy = [float(row["accuracy"]) for row in rounds]
        assert len(accuracy) == 15 and accuracy[-1] > max(0.8, accuracy[0])
    for name in ("out/accuracy.png", "behind_the_median.png"):
        assert (folder / name).read_bytes()[:4] == b"\x89PNG"
    inspected = printed.split("$ ")[2]
    assert "MO,LD,DS" in inspected
    assert (folder / "out" / "results.csv").exists()


def test_the_exported_model_takes_raw_readings_and_names_them(page_run):
    """It has the accuracy of a trained model on the rows of the files."""
    folder, _ = page_run
    run_folder = folder / "out" / "DS"
    about = json.loads((run_folder / "model" / "model.json").read_text())
    inputs, classes = about["inputs"], about["classes"]
    assert inputs == ["pulse", "steps", "light", "noise"]
    assert classes == ["resting", "walking", "running"]
    assert about["input_shape"] == [None, 4] and about["input_type"] == "float32"
    assert "light / 1500" in about["scaling"] and about["round"] == 15
    assert about["data"]["name"] == "readings" and "commit" in about
    info = json.loads((run_folder / "run.json").read_text())
    assert info["inputs"] == inputs and info["classes"] == classes
    devices = sorted((folder / "devices").glob("*.csv"))
    readings = [row for path in devices for row in rows(path)]
    x = [[float(row[name]) for name in inputs] for row in readings]
    np.save(folder / "x.npy", np.array(x, np.float32))
    done = python("-c", SERVE, str(run_folder / "model" / "saved_model"), cwd=folder)
    assert done.returncode == 0, done.stderr
    predicted = [classes[k] for k in np.load(folder / "predicted.npy")]
    right = [a == row["activity"] for a, row in zip(predicted, readings)]
    assert np.mean(right) > 0.9


SERVE = """
import sys, numpy as np, tensorflow as tf
model = tf.saved_model.load(sys.argv[1]).signatures["serving_default"]
scores = model(x=tf.constant(np.load("x.npy")))["scores"].numpy()
np.save("predicted.npy", scores.argmax(axis=-1))
"""


def test_a_wrong_name_and_a_wrong_row_are_rejected(page_run):
    folder, _ = page_run
    script = str(ROOT / "run_experiments.py")
    plugins = "--plugin=readings,activity"
    done = run(folder, [script, plugins, "--experiment=readings", "--model=perceptrn"])
    assert "unknown model 'perceptrn' (did you mean perceptron?)" in done.stderr
    path = folder / "devices" / "device_03.csv"
    path.write_text(path.read_text() + "flying,1,2,3,4\n")
    lines = len(path.read_text().splitlines())
    done = run(folder, [script, plugins, "--experiment=readings", "--inspect"])
    says = f"device_03.csv: line {lines}: activity is 'flying', not one of resting,"
    assert says in done.stderr


@pytest.mark.parametrize(
    ("row", "says"),
    [
        *((f"running,{bad},2,3,4", f"pulse is '{bad}': it has to be a number")
          for bad in ("nan", "inf", "1_7", "", "\uff11", "x", "0x1")),
        ("running,1e39,2,3,4", "pulse is '1e39': float32 would turn it into inf"),
        ("running,1,2,3", "has 4 fields, not 5"),
        ("running,1,5,2,3,4", "has 6 fields, not 5"),
        (",1,2,3,4", "activity is '', not one of resting"),
    ],
)  # fmt: skip
def test_the_reader_of_the_page_refuses_invalid_rows(tmp_path, monkeypatch, row, says):
    path = tmp_path / "d.csv"
    header = "\ufeffactivity,pulse,steps,light,noise\nwalking,1,2,3,4.5\n"
    path.write_text(header, "utf-8")
    assert read_rows(str(path)) == [(1, [1, 2, 3, 4.5])]
    path.write_text("activity, noise,pulse,steps,light,\nwalking , 4.5,1,2,3,\n")
    assert read_rows(str(path)) == [(1, [1, 2, 3, 4.5])]
    path.write_text("activity,pulse,steps,light,noise,pulse\nwalking,1,2,3,4.5,9\n")
    with pytest.raises(leaf_data.DataError, match="the column pulse appears twice"):
        read_rows(str(path))
    path.write_text(f"{header}{row}\n", "utf-8")
    with pytest.raises(leaf_data.DataError) as error:
        read_rows(str(path))
    assert str(error.value).startswith(f"{path}: line 3")
    assert says in str(error.value)


def read_rows(path):
    """Reads with the page's `read`, without running the module's registrations."""
    code = MODULES["readings.py"]
    functions = [code[: code.index("@dataclasses")], code[code.index("def read(") :]]
    names = {}
    exec(functions[0] + functions[1][: functions[1].index("@dataclasses")], names)
    return names["read"](path)
