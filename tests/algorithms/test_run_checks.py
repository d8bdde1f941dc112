"""Checks of a run's settings against its data, before its folder is made."""

import json

import numpy as np
import pytest
from labelled_positions import CLASSES, POSITIONS, Table, label_positions

import leaf_data
from declared_settings import SettingError
from tff_pmc import models


@pytest.mark.parametrize(
    ("changes", "y", "message"),
    [
        ({}, POSITIONS, ""),
        ({"label_shape": ()}, np.maximum(POSITIONS[:, 0], 0), ""),
        (
            {},
            np.maximum(POSITIONS[:, 0], 0),
            "expects labels of (None, 3) int32, and made_up provides int32",
        ),
        (
            {"label_shape": ()},
            POSITIONS,
            "expects labels of (None,) int32, and made_up provides [n, 3] int32",
        ),
        (
            {"label_shape": (2,)},
            POSITIONS,
            "expects labels of (None, 2) int32, and made_up provides [n, 3] int32",
        ),
        (
            {"has_scores": False},
            POSITIONS,
            "must return scores [n, 3, classes] for made_up, whose labels are one for",
        ),
        (
            {"counts_masked": True},
            POSITIONS,
            "its loss must be the mean over the positions whose label is not -1: call",
        ),
        ({"counts_masked": True}, np.maximum(POSITIONS, 0), ""),
        (
            {},
            np.full_like(POSITIONS, -1),
            "no client of made_up has a train label that counts: all are -1",
        ),
    ],
)
def test_a_mismatch_of_model_and_labels_is_named(monkeypatch, changes, y, message):
    from tff_pmc.algorithms.run_context import RunContext
    from tff_pmc.experiments.experiment import experiment_values
    from tff_pmc.settings import RunSettings

    kind = type("Changed", (Table,), changes)
    monkeypatch.setitem(models.MODELS._things, "table", kind)
    settings = RunSettings.from_flag_values(
        {"priority": ("DS",), "model": "table"},
        inherited=experiment_values("quickstart"),
    )
    if not message:
        assert RunContext.from_settings(settings, label_positions(y)).cohort_sampler
        return
    with pytest.raises(SettingError) as error:
        RunContext.from_settings(settings, label_positions(y))
    assert message in str(error.value) and "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("num_ids", "x", "tokens", "message"),
    [
        (CLASSES, [0, CLASSES - 1], "", ""),
        (0, [0, CLASSES - 1], "abcdef", ""),
        (CLASSES, [0, CLASSES], "", "takes the ids 0 to 3, and made_up has 0 to 4"),
        (CLASSES, [-1, 1], "", "takes the ids 0 to 3, and made_up has -1 to 1"),
        # Which a text has, if no example.
        (CLASSES, [0, 1], "abcdef", "takes the ids 0 to 3, and made_up has 0 to 5"),
    ],
)
def test_ids_beyond_those_of_the_model_are_named(
    monkeypatch, num_ids, x, tokens, message
):
    from tff_pmc.algorithms.run_checks import check_run
    from tff_pmc.experiments.experiment import settings

    kind = type("Changed", (Table,), {"num_ids": num_ids})
    monkeypatch.setitem(models.MODELS._things, "table", kind)
    config = settings("quickstart", {"priority": ("DS",), "model": "table"})
    inputs = np.resize(x, (5, 3)).astype(np.int32)
    vocabulary = leaf_data.Vocabulary("letters", tuple(tokens)) if tokens else None
    data = label_positions(POSITIONS, x=inputs, vocabulary=vocabulary)
    if not message:
        check_run(config, data, config.model.build)
        return
    with pytest.raises(SettingError, match=message):
        check_run(config, data, config.model.build)


@pytest.mark.parametrize(
    ("recorded", "tokens", "message"),
    [
        ("abcd", "abcd", ""),
        ("abcd", "", ""),
        ("", "abcd", ""),
        (None, "abcd", ""),  # There is no model.json.
        ("abdc", "abcd", "its model has another vocabulary than made_up, so that ids"),
    ],
)
def test_weights_of_another_vocabulary_are_refused(
    monkeypatch, tmp_path, recorded, tokens, message
):
    from leaf_data.formats.data_files import sha256
    from tff_pmc.algorithms.run_context import RunContext
    from tff_pmc.experiments.experiment import settings

    def vocabulary(letters):
        return leaf_data.Vocabulary("letters", tuple(letters)) if letters else None

    about = {"vocabulary": vocabulary(recorded).to_dict() if recorded else {}}

    path = str(tmp_path / "weights.npz")
    np.savez(path, np.eye(CLASSES, dtype=np.float32))
    if recorded is not None:
        (tmp_path / "model.json").write_text(json.dumps(about))
    monkeypatch.setitem(models.MODELS._things, "table", Table)
    values = {"model": "table", "initial_weights": (path, sha256(path))}
    config = settings("quickstart", {"priority": ("DS",), **values})
    data = label_positions(POSITIONS, vocabulary=vocabulary(tokens))
    if not message:
        RunContext.from_settings(config, data)
        return
    with pytest.raises(SettingError, match=message):
        RunContext.from_settings(config, data)


def test_a_client_without_a_position_that_counts_is_not_drawn():
    from tff_pmc.algorithms.run_checks import build_cohort_sampler
    from tff_pmc.experiments.experiment import settings

    y = np.array(POSITIONS)
    y[3:] = -1
    sampler = build_cohort_sampler(settings("quickstart", {}), label_positions(y))
    assert sampler.trainable.tolist() == [0]
