"""Run folders that no run can have written: refused, and never made a table of."""

import gzip
import json
import os
import warnings

import pytest

from leaf_data.formats import places
from tff_pmc.record import read
from tff_pmc.record.record_error import RecordError

GOOD = {
    "rounds.csv": [
        "round,accuracy,correct,examples,p10,p50,p90,ordering,testing_rounds",
        "1,0.5,5,10,0.5,0.5,0.5,DS,1",
        "2,0.7,7,10,0.675,0.7083,0.7417,DS,1",
        '3,0.6,6,10,0.5167,0.5833,0.65,"LD,DS",2',
    ],
    "clients.csv": [
        "round,client,correct,examples",
        *("1,a,2,4", "1,b,3,6", "2,a,3,4", "2,b,4,6", "3,a,2,4", "3,b,4,6"),
    ],
    "weights.csv": [
        "round,ordering,in_force,coefficient_of_variation,effective_clients,"
        "total_variation",
        *(f"{n},DS,1,0.0,1.0,0.0" for n in (1, 2, 3)),
    ],
    "candidates.csv": [
        "round,trial,ordering,correct,examples,accuracy,kept",
        *("1,1,DS,5,10,0.5,1", "2,1,DS,7,10,0.7,1", "3,1,DS,5,10,0.5,0"),
        '3,2,"LD,DS",6,10,0.6,1',
    ],
    "cohort.csv": [
        "round,client,DS,LD,excluded,weight",
        *("1,a,40.0,2.0,0,1.0", "1,b,inf,nan,1,0.0", "2,b,9.0,1.0,0,1.0"),
    ],
}
INFO = {
    "format": 2,
    "label": "DS",
    "system": "Prioritized",
    "note": "as ever",
    "settings": {
        "experiment": "quickstart",
        "training": {"rounds": 3, "learning_rate": 0.1},
        "aggregation": {"priority": ["DS"], "criteria": ["DS", "LD"]},
        "record": {"targets": [70], "reach": "above"},
    },
    "data": {"name": "mnist", "clients": 2, "origin": {"source": "x", "sha256": {}}},
    "versions": {"commit": None, "numpy": "1"},
    "status": "finished",
}


@pytest.fixture
def write(tmp_path):
    """Writes a whole run folder, with some of its files in the place of the good."""

    def in_folder(info=INFO, **tables):
        text = info if isinstance(info, str) else json.dumps(info)
        (tmp_path / "run.json").write_text(text)
        for name, lines in GOOD.items():
            lines = tables.get(name.partition(".")[0], lines)
            text = lines if isinstance(lines, str) else "\n".join([*lines, ""])
            (tmp_path / name).write_bytes(text.encode("utf-8", "surrogateescape"))
        return str(tmp_path)

    return in_folder


def lines(name, *changes):
    """The good lines of a file, those of some places replaced."""
    found = list(GOOD[f"{name}.csv"])
    for place, line in changes:
        found[place] = line
    return {name: found}


def shuffled(name):
    head, first, *rest = GOOD[f"{name}.csv"]
    return {name: [head, *rest, first]}


def cut(name):
    return {name: "\n".join(GOOD[f"{name}.csv"])[:-1]}


def test_a_good_folder_is_read(write):
    run = read.read_run(write())
    assert run.correct.tolist() == [[2, 3], [3, 4], [2, 4]]
    assert run.examples.tolist() == [4, 6] and run.targets == (70,)
    assert list(run.candidates["kept"]) == [1, 1, 0, 1]
    assert run.cohort["DS"].tolist()[:2] == [40.0, float("inf")]
    assert run.rounds["ordering"].tolist() == ["DS", "DS", "LD,DS"]
    # The settings are by flag, whatever their group.
    assert run.settings["learning_rate"] == 0.1 and run.settings["criteria"]
    assert (run.label, run.system, run.note) == ("DS", "Prioritized", "as ever")
    assert run.reach == "above" and run.adjustment == "fixed"


def test_what_not_every_run_has_may_be_missing(write):
    folder = write()
    for name in ("candidates.csv", "cohort.csv"):
        os.unlink(os.path.join(folder, name))
    run = read.read_run(folder)
    assert (run.candidates, run.cohort) == (None, None)


def test_names_are_text_whatever_they_look_like(write):
    """Not a missing value, a number or two rows."""
    names = ["NA", '"nan\nx"']
    rows = [f"{n},{name},{n},4" for n in (1, 2, 3) for name in names]
    rounds = [f"{n},{n / 4},{2 * n},8" for n in (1, 2, 3)]
    run = read.read_run(
        write(
            clients=["round,client,correct,examples", *rows],
            rounds=["round,accuracy,correct,examples", *rounds],
            cohort=["round,client,DS,excluded,weight", "1,NA,4.0,0,1.0"],
        )
    )
    assert run.correct.tolist() == [[1, 1], [2, 2], [3, 3]]
    assert run.cohort["client"].tolist() == ["NA"]


@pytest.mark.parametrize(
    ("system", "weight"),
    [("prioritized", 0.999999), ("prioritized", 0), ("q_fedavg", 17.5), ("fednova", 3)],
)
def test_weights_sum_to_1_or_to_nothing_or_to_the_length_of_a_step(
    write, system, weight
):
    settings = {**INFO["settings"], "system": system}
    table = lines("cohort", (3, f"2,b,9.0,1.0,0,{weight}"))
    table |= lines("weights", (2, f"2,DS,1,0.0,{float(weight > 0)},0.0"))
    run = read.read_run(write(changed(settings=settings), **table))
    assert run.cohort["weight"].tolist() == [1, 0, weight]


@pytest.mark.parametrize(
    ("tables", "says"),
    [
        *((shuffled(name), f"{name}.csv") for name in ("rounds", "clients", "weights")),
        (lines("rounds", (2, "1,0.7,7,10,0.6,0.7,0.8,DS,1")), "row 2 is of round 1"),
        (lines("rounds", (1, "0,0.5,5,10,0.4,0.5,0.6,DS,1")), "row 1 is of round 0"),
        (lines("rounds", (3, "5,0.6,6,10,0.5,0.6,0.7,DS,2")), "row 3 is of round 5"),
        (lines("rounds", (1, "1,nan,5,10,0.4,0.5,0.6,DS,1")), "has only some of accur"),
        (lines("rounds", (2, "2,,5,10,0.4,0.5,0.6,DS,1")), "has only some of accura"),
        (lines("rounds", (1, "1,,,,,,,DS,1")), "a round has only some of"),
        (lines("rounds", (2, "2,,,,,,,DS,1")), "differ in the column correct"),
        (lines("rounds", (2, "2,0.5,2.5,10,0.4,0.5,0.6,DS,1")), "no count as correct"),
        (lines("rounds", (1, "1,1.5,5,10,0.4,0.5,0.6,DS,1")), "no share as accuracy"),
        (lines("rounds", (1, "1,0.5,-5,10,0.4,0.5,0.6,DS,1")), "no count as correct"),
        (lines("rounds", (1, "1,0.5,11,10,0.4,0.5,0.6,DS,1")), "11 correct of 10"),
        (lines("rounds", (1, "1,0.5,4,10,0.4,0.5,0.6,DS,1")), "differ in the column"),
        (lines("rounds", (1, "1,0.6,5,10,0.5,0.5,0.5,DS,1")), "the column accuracy of"),
        (
            lines("rounds", (1, "1,0.5,5,10,0.5,0.5,0.6,DS,1")),
            "the column p90 of round 1",
        ),
        (lines("rounds", (1, "1,0.5,5,11,0.4,0.5,0.6,DS,1")), "the column examples"),
        (lines("rounds", (1, "1,0.5")), "rounds.csv"),
        (lines("rounds", (1, "1,0.5,5,10,0.5,0.5,0.5,DS,1,1")), "rounds.csv"),
        (lines("rounds", (0, "round,accuracy,accuracy")), "a column is there twice"),
        (lines("rounds", (0, "number,accuracy")), "it lacks the column 'round'"),
        ({"cohort": [",".join(map(str, range(257)))]}, "it has more than 256 columns"),
        (lines("clients", (1, "," * 500_000)), "fields or more, not 4"),
        ({"rounds": ""}, "it has no header"),
        ({"rounds": "round\n" + "\udcff\n"}, "rounds.csv"),
        ({"rounds": GOOD["rounds.csv"][:3]}, "rounds.csv has 2 rounds and clients"),
        (lines("clients", (2, "1,a,3,6")), "round 1 has 'a' twice"),
        (lines("clients", (6, "3,c,4,6")), "round 3 has others in the column 'client'"),
        (lines("clients", (6, "3,b,4,7")), "round 3 has others in the column 'exampl"),
        (lines("clients", (6, "4,b,4,6")), "round 3 has others in the column 'round'"),
        (lines("clients", (1, "1,a,5,4")), "5 correct of 4"),
        (lines("clients", (1, f"1,a,{1 << 60},{1 << 60}")), "no count as correct"),
        (lines("clients", (1, "1,a,2.5,4")), "clients.csv"),
        (lines("clients", (1, "1,a," + "9" * 40 + ",4")), "clients.csv"),
        ({"clients": GOOD["clients.csv"][:-1]}, "it ends within a round"),
        ({"clients": GOOD["clients.csv"][:-2]}, "has 3 rounds and clients.csv has 2"),
        ({"clients": GOOD["clients.csv"][:1]}, "it has no rows"),
        (cut("clients"), "it ends within a row"),
        ({"clients": ["round,client,correct,examples", '1,"a,2,4']}, "clients.csv"),
        ({"clients": ["round,client,correct,examples", "1,a,0,0"]}, "has examples"),
        (lines("weights", (2, "2,DS,1,0.0,1.0")), "row 2 has no share"),
        (lines("weights", (2, "2,DS,2,0.1,1.9,0.0")), "no flag as in_force"),
        (lines("weights", (2, "2,DS,1,often,1.9,0.0")), "weights.csv"),
        (lines("weights", (2, "2,DS,1,0.0,1.0,-5")), "no share as total_variation"),
        (lines("weights", (2, "2,DS,1,0.0,0.9,0.0")), "effective clients of round 2"),
        (lines("weights", (1, "1,LD,0,0.0,2.0,0.5")), "effective clients of round 1"),
        (
            lines("candidates", (4, '3,2,"LD,DS",6,10,0.6,0')),
            "has not one that is kept",
        ),
        (lines("candidates", (2, "2,1,DS,11,10,0.7,1")), "11 correct of 10"),
        (lines("cohort", (2, "1,a,1.0,2.0,0,0.5")), "round 1 has 'a' twice"),
        (lines("cohort", (1, "1,a,forty,2.0,0,1.0")), "cohort.csv"),
        (lines("cohort", (3, "2,b,inf,1.0,0,1.0")), "round 2 counts 'b', with a crit"),
        (lines("cohort", (3, "2,b,9.0,1e308,0,1.0")), "criterion that is no float32"),
        (lines("rounds", (1, "1,0.5,0,0,0.4,0.5,0.6,DS,1")), "a round has no examples"),
        (lines("cohort", (3, "2,b,9.0,1.0,0,0.9")), "weights of round 2 in cohort.csv"),
        (lines("cohort", (3, "2,b,9.0,1.0,0,inf")), "round 2 in cohort.csv sum to inf"),
    ],
)
def test_what_no_run_has_written_is_refused(write, tables, says, assert_one_line):
    folder = write(**tables)
    warnings.simplefilter("error")  # Nothing is said before the one line.
    assert_one_line(RecordError, lambda: read.read_run(folder), says, folder)


def changed(**parts):
    return {**INFO, **parts}


@pytest.mark.parametrize(
    ("info", "says"),
    [
        *((text, "must be a table") for text in ("[]", "null", "3", '"a"', "true")),
        ("", "is not JSON"),
        ("[" * 100_000, "is nested too deeply"),
        ('{"data":' * 40 + "{}" + "}" * 40, "is nested too deeply"),
        ('{"format": ' + "9" * 5000 + "}", "is not JSON: a number has 5000 digits"),
        ('{"label": "\\ud800"}', "is not JSON"),
        ('{"a": "' + "x" * (5 << 20) + '"}', "more than"),
        (changed(settings=[]), "settings must be a table"),
        (changed(data={"name": 3}), "data.name must be text of"),
        (changed(data={"clients": -1}), "data.clients must be a whole number"),
        (changed(data={"origin": {"source": []}}), "data.origin.source must be"),
        (changed(label=["DS"]), "label must be text of"),
        (changed(status="done"), "status must be one of"),
        (changed(versions=3), "versions must be a table of texts"),
        (changed(settings={"targets": [0]}), "settings.targets must be a list"),
        (changed(settings={"a": {"rounds": "3"}}), "settings.a.rounds must be a whole"),
        (changed(settings={"a": {"rounds": 0}}), "a whole number, at least 1"),
        (changed(settings={"a": {"rounds": True}}), "a.rounds must be a whole number"),
        (changed(settings={"learning_rate": 1e999}), "learning_rate must be a number"),
        (changed(settings={"criteria_ranges": [["DS", 1]]}), "each a list of 3"),
        (
            changed(settings={"\x1b" + "x" * 99: {"rounds": "3"}}),
            f"\\x1b{'x' * 39}.rou",
        ),
        ({"settings": {}}, "lacks 'label'"),
        (changed(settings={"priority": []}), "settings.priority must be"),
    ],
)
def test_a_run_json_that_is_none_is_refused(write, info, says, assert_one_line):
    folder = write(info)
    assert_one_line(RecordError, lambda: read.read_run(folder), says, folder)


def test_what_a_record_lacks_is_said_when_it_is_needed(write):
    run = read.read_run(write({**INFO, "settings": {}, "data": {}}))
    for ask in (
        lambda: run.conditions,
        lambda: run.data_caveat,
        lambda: run.settings["experiment"],
    ):
        with pytest.raises(RecordError, match="lacks"):
            ask()


@pytest.mark.parametrize("name", ["run.json", *GOOD])
def test_what_only_stands_in_the_place_of_a_file_is_not_waited_for(write, name):
    """A pipe has no other end here, and /dev/zero none at all."""
    folder = write()
    path = os.path.join(folder, name)
    for put in (os.mkfifo, os.mkdir, lambda p: os.symlink("/dev/zero", p)):
        os.unlink(path)
        put(path)
        with pytest.raises(RecordError, match="cannot be read"):
            read.read_run(folder)
        if os.path.isdir(path):
            os.rmdir(path)
            open(path, "w").close()


@pytest.mark.parametrize("missing", ["run.json", "clients.csv", "rounds.csv"])
def test_a_missing_file_is_named(write, missing):
    folder = write()
    os.unlink(os.path.join(folder, missing))
    with pytest.raises(RecordError, match=missing):
        read.read_run(folder)
    with pytest.raises(FileNotFoundError):  # As it was before it had a type.
        read.read_run(folder)


@pytest.mark.parametrize("packed", [False, True])
def test_what_a_record_takes_is_bounded(write, peak_of, packed):
    """About ten times its bytes unpacked, and all of it within one budget."""
    rows = [f"{n},c{k},1,2" for n in range(1, 501) for k in range(200)]
    text = "\n".join([GOOD["clients.csv"][0], *rows, ""])
    folder = write(clients=text)
    path = os.path.join(folder, "clients.csv")
    if packed:
        with gzip.open(path + ".gz", "wt") as file:
            file.write(text)
        os.unlink(path)
    taken = peak_of(lambda: read.read_table(folder, "clients.csv"))
    assert taken < 11 * len(text)
    with places.budget(len(text) - 1), pytest.raises(RecordError, match="clients.csv"):
        read.read_table(folder, "clients.csv")
