"""FEMNIST of LEAF's files: writers in several, progress, and what is refused."""

from __future__ import annotations

import shutil

import pytest

from leaf_data.datasets.femnist import femnist_leaf

pytestmark = pytest.mark.usefixtures("no_download")


def test_a_writer_in_several_files(tmp_path, caplog, toy):
    toy.write(tmp_path / "all_data" / "all_data_1.json", {"b": toy.user(2, 4)})
    toy.write(
        tmp_path / "all_data" / "all_data_2.json",
        {"a": toy.user(1, 3), "b": toy.user(2, 5, 4), "c": toy.user(3, 2)},
    )
    toy.write(tmp_path / "all_data" / "all_data_3.json", {"c": toy.user(3, 2)})
    data = toy.load(tmp_path)
    assert data.client_ids == ("b", "a", "c")
    train, test = toy.seen(data.train_examples), toy.seen(data.test_examples)
    assert sorted(train["b"] + test["b"]) == toy.numbered(2, 0, 9)
    assert sorted(train["c"] + test["c"]) == toy.numbered(3, 0, 2)
    assert "all_data_2.json: user b: joined" in caplog.text
    assert "all_data_3.json: user c: the same examples as before" in caplog.text


def test_progress_is_shown_on_stderr_for_long_work(tmp_path, monkeypatch, capsys, toy):
    toy.write_split(tmp_path)
    toy.load(tmp_path)
    assert capsys.readouterr().err == ""
    bar = femnist_leaf.tqdm.tqdm
    monkeypatch.setattr(femnist_leaf.tqdm, "tqdm", lambda **k: bar(**{**k, "delay": 0}))
    toy.load(tmp_path, cache_dir=tmp_path / "elsewhere")
    captured = capsys.readouterr()
    assert "FEMNIST, once: 100%" in captured.err and captured.out == ""


def test_a_user_without_any_example_is_named(tmp_path, assert_refused, toy):
    toy.write_split(tmp_path)
    name = "data/{0}/all_data_7_niid_05_keep_0_{0}_9.json"
    toy.write(
        tmp_path / name.format("train"), {"f": toy.user(6, 3), "g": toy.user(7, 0)}
    )
    toy.write(
        tmp_path / name.format("test"), {"f": toy.user(6, 1, 3), "g": toy.user(7, 0)}
    )
    assert_refused(
        lambda: toy.load(tmp_path),
        "all_data_7_niid_05_keep_0_train_9.json: user g: has no examples in any file",
    )


def test_one_file_as_train_and_test_is_refused(tmp_path, assert_refused, toy):
    toy.write_split(tmp_path)
    names = [f"all_data_10_niid_05_keep_0_{part}_9.json" for part in ("train", "test")]
    train, test = (tmp_path / "data" / n.split("_")[-2] / n for n in names)
    shutil.copy(train, test)
    assert_refused(lambda: toy.load(tmp_path), f"{train} and {test} are the same")


def test_pixels_are_rounded_from_floats_and_ints(tmp_path, toy):
    image = [k % 256 / 255 for k in range(784)]
    image[256:260] = [0, 1, 0.3, 0.999]
    for part, label in (("train", 61), ("test", 60)):
        user = {"x": [image], "y": [label]}
        toy.write(tmp_path / part / f"all_data_0_{part}_9.json", {"a": user})
    found = toy.load(tmp_path).train_examples.x.reshape(-1)
    expected = [k % 256 for k in range(784)]
    expected[256:260] = [0, 255, 76, 255]  # 76.5 goes to the even one.
    assert found.tolist() == expected


def _with(place, value):
    """A user whose second of three images has this value."""
    x = [[1.0] * 784 for _ in range(3)]
    x[1][place] = value
    return {"x": x, "y": [1, 2, 3]}


_HUGE = 10**400


@pytest.mark.parametrize(
    "user, message",
    [
        (_with(5, 255), "image 1 has the value 255, not in [0, 1]"),
        (_with(5, 1.0001), "image 1 has the value 1.0001, not in [0, 1]"),
        (_with(5, -0.5), "image 1 has the value -0.5, not in [0, 1]"),
        (_with(5, float("nan")), "image 1 has the value nan, not in [0, 1]"),
        (_with(5, float("inf")), "image 1 has the value inf, not in [0, 1]"),
        (_with(5, _HUGE), "an image has a value that is not in [0, 1]"),
        (_with(5, "0.5"), "image 1 has the value '0.5'"),
        (_with(5, None), "image 1 has the value None"),
        (_with(5, True), "image 1 has the value True"),
        (_with(5, [1]), "image 1 has the value [1]"),
        ({"x": [[1.0] * 783], "y": [1]}, "image 0 is 783 values, not 784 values"),
        ({"x": [[[1.0] * 28] * 28], "y": [1]}, "image 0 is 28 values, not 784"),
        ({"x": ["f.png"], "y": [1]}, "image 0 is 'f.png', not 784 values"),
        ({"x": [[1.0] * 784], "y": [62]}, "label 0 is 62, not one of 0 to 61"),
        ({"x": [[1.0] * 784], "y": [-1]}, "label 0 is -1, not one of 0 to 61"),
        ({"x": [[1.0] * 784], "y": [1.5]}, "label 0 is 1.5, not one of"),
        ({"x": [[1.0] * 784], "y": ["A"]}, "label 0 is 'A', not one of"),
        ({"x": [[1.0] * 784], "y": [False]}, "label 0 is False, not one of"),
        ({"x": [[1.0] * 784], "y": [1, 2]}, "1 examples but 2 labels"),
    ],
)
def test_users_that_are_not_femnists(tmp_path, user, message, assert_refused, toy):
    path = tmp_path / "all_data" / "all_data_0.json"
    toy.write(path, {"good": toy.user(2, 2), "bad": user})
    assert_refused(lambda: toy.load(tmp_path), f"{path}: user bad: {message}")
    assert not list(tmp_path.rglob("*.npz"))
