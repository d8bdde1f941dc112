"""FEMNIST of LEAF's files: writers in several, progress, damaged files."""

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


def test_files_that_are_damaged(tmp_path, assert_refused, toy):
    toy.write_split(tmp_path)
    path = next((tmp_path / "data" / "train").glob("all_data_10_*"))
    text = path.read_text()
    path.write_text(text[: len(text) // 2])
    assert_refused(lambda: toy.load(tmp_path), f"{path}: user d: truncated or not JSON")
    path.write_text(text.replace('"users": ["d",', '"users": ["x",'))
    assert_refused(
        lambda: toy.load(tmp_path), f"{path}: user x: is in users but not in"
    )
    path.write_text("")
    assert_refused(lambda: toy.load(tmp_path), f"{path}: truncated or not JSON")
    shutil.copy(path, path.with_name("all_data_10_niid_1_keep_0_train_9.json"))
    assert_refused(lambda: toy.load(tmp_path), "different runs of preprocess.sh")


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


def test_numbers_of_files_that_no_array_can_hold(tmp_path, assert_refused, toy):
    for digits in (10, 23, 5000):
        name = f"all_data_{'9' * min(digits, 200)}.json"
        path = tmp_path / "all_data" / name
        toy.write(path, {"a": toy.user(1, 3)})
        assert_refused(lambda: toy.load(tmp_path), f"{path}: is not named as LEAF does")
        path.unlink()
    toy.write(tmp_path / "all_data" / "all_data_999999999.json", {"a": toy.user(1, 3)})
    assert toy.load(tmp_path, sample_fraction=0.9).client_ids == ("a",)
