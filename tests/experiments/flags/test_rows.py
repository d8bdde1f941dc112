"""The rows of a comparison: which runs they are, and what these are called."""

import pytest
from cli import labels, parse_settings

from tff_pmc.experiments.experiment import EXPERIMENTS, Experiment
from tff_pmc.settings import SettingError
from tff_pmc.settings.row_names import RowName, find_baseline

# The rows, and the labels of their runs.
NAMES = """
fedavg => FedAvg
fedavg; qffl => FedAvg / q-FFL
fedavg; qffl; => FedAvg / q-FFL
fedprox fedprox_mu=.001; fedprox fedprox_mu=0.1 => FedProx, mu 0.001 / FedProx, mu 0.1
fedprox mu=1; qffl q=1 => FedProx, mu 1 / q-FFL, q 1
qffl qffl_q=1; qffl --qffl_q=5 => q-FFL, q 1 / q-FFL, q 5
prioritized priority=LD,DS,MD normalization=sum; prioritized priority=LD,DS,MD normalization=max => LD,DS,MD, normalization sum / LD,DS,MD, normalization max
fedavg client_optimizer=adam learning_rate=.001 => FedAvg, client optimizer adam, learning rate 0.001
# What the label of an algorithm has already is not said twice.
fedavg server_optimizer=adam => FedAvg, server adam
fedavg server_optimizer=adam server_learning_rate=.03 => FedAvg, server adam, server learning rate 0.03
fedavg selection=power_of_choice => FedAvg, power of choice
fedavg prox_mu=0.1; fedavg num_clients=50 => FedAvg, prox 0.1 / FedAvg, 50 clients
owa owa_weights=0.5,0.3,0.2 => OWA[0.5,0.3,0.2]:DS,LD,MD
product criteria=DS^0.5,LD => product:DS^0.5,LD
# Without an ordering a row has all criteria.
prioritized; prioritized adjustment=backtracking => DS,LD,MD / DS,LD,MD (backtracking)
prioritized criteria=DS,LD => DS,LD
Q-FFL; FedAvg keep_own_model=true => q-FFL / FedAvg, keep own model
"""  # noqa: E501


@pytest.mark.parametrize(
    "case", [line for line in NAMES.splitlines() if " => " in line]
)
def test_a_row_is_named_by_what_it_sets(case):
    rows, expected = case.split(" => ")
    assert labels(f"--rows={rows}") == expected.split(" / ")


# The rows, other flags, and a part of the refusal.
REFUSED = """
; | | --rows=: a row is empty
fedavg; ; | | : a row is empty
fedavg; ; qffl | | a row is empty
fedavg; fedprx | | --rows: fedprx: unknown algorithm 'fedprx' (did you mean fedprox?)
mu=1 | | --rows: 'mu=1' does not begin with an algorithm
fedprox fedprox_m=1 | | --rows: fedprox fedprox_m=1: Unknown command line flag 'fedprox_m'. Did you mean: fedprox_mu
fedprox mu 1 | | 'mu' is not a setting: write FLAG=VALUE
fedprox fedprox_mu= | | 'fedprox_mu=' is not a setting
fedprox fedprox_mu=1 fedprox_mu=2 | | fedprox_mu is given twice
fedprox fedprox_mu=x | | --rows: fedprox fedprox_mu=x: flag --fedprox_mu=x
fedprox fedprox_mu=-1 | | --rows: fedprox fedprox_mu=-1: --fedprox_mu must be 0 or more
fedavg qffl_q=1 | | --qffl_q has no effect on the algorithm fedavg: it is a setting of the algorithm qffl
fedavg priority=DS | | --priority has no effect on the algorithm fedavg
fedavg adjustment=backtracking | | --adjustment has no effect on the algorithm fedavg
prioritized priority=all | | --priority=all is several rows
fedavg batch_seed=1 | | --batch_seed must be equal in all rows
fedavg targets=50 | | --targets must be equal in all rows
fedavg output_dir=x | | --output_dir holds for all rows
fedavg; fedavg | | 'fedavg' and 'fedavg' are the same run, FedAvg
fedavg; fedavg local_epochs=5 | | 'fedavg' and 'fedavg local_epochs=5' are the same run
fedavg | --priority=LD | --priority cannot be combined with rows
fedavg | --algorithms=qffl | --algorithms cannot be combined with rows
fedavg | --inspect | --inspect cannot be combined with rows
fedavg | --qffl_q=1 | --qffl_q has no effect on the algorithm fedavg
fedavg | --experiment=lr_search | --rows does not apply to --experiment=lr_search
fedprox mu=1; fedprox mu=2 | --baseline=fedprox | --baseline: fedprox fits several rows: name one of FedProx, mu 1; FedProx, mu 2
fedavg | --rows=qffl | --rows is given twice: give it once, with ';' between
"""  # noqa: E501


@pytest.mark.parametrize("case", REFUSED.strip().splitlines())
def test_a_row_that_cannot_be_run_is_named(case):
    rows, others, message = case.split(" |", 2)
    with pytest.raises(SettingError) as refusal:
        parse_settings(f"--rows={rows}", *others.split())
    assert message.strip() in str(refusal.value)


def test_flags_apply_to_all_rows_that_do_not_set_them():
    flags = ["--rows=fedavg; qffl; fedavg local_epochs=1", "--local_epochs=2"]
    runs = parse_settings(*flags, "--qffl_q=3")
    assert [run.training.local_epochs for run in runs] == [2, 2, 1]
    assert runs[1].algorithm.q == 3
    assert [run.folder_name for run in runs] == [
        "fedavg",
        "q_ffl",
        "fedavg_local_epochs_1",
    ]
    # A change keeps the row's name.
    assert runs[2].with_seed(7).label == "FedAvg, local epochs 1"


def test_an_experiment_declares_rows_as_the_flag_does(monkeypatch):
    texts = ("fedavg", "fedprox fedprox_mu=0.1", "prioritized priority=LD,DS,MD")
    quickstart = EXPERIMENTS["quickstart"]
    mine = Experiment("Mine.", quickstart.settings, rows=texts)
    monkeypatch.setitem(EXPERIMENTS._things, "mine", mine)
    of_flag = labels(f"--rows={';'.join(texts)}")
    assert labels("--experiment=mine") == of_flag
    assert of_flag == ["FedAvg", "FedProx, mu 0.1", "LD,DS,MD"]


ROWS = [
    ("DS", "Prioritized", "prioritized"),
    ("LD,DS", "Prioritized", "prioritized"),
    ("LD,DS (backtracking)", "Prioritized", "prioritized"),
    ("q-FFL, q 1", "q-FFL", "qffl"),
    ("q-FFL, q 5", "q-FFL", "qffl"),
    ("Median, 3 clients", "Median", "median", "3 clients"),
    ("Median, 4 clients", "Median", "median", "4 clients"),
    ("AFL", "AFL", "afl"),
    ("AFL, local epochs 2", "AFL", "afl"),
]
ROWS = [RowName(*row) for row in ROWS]


@pytest.mark.parametrize(
    ("name", "row"),
    [
        *[("DS", "DS"), ("FedAvg", "DS"), ("fedavg", "DS"), ("FedAvg (DS)", "DS")],
        *[("ld,ds", "LD,DS"), ("LD-DS_backtracking", "LD,DS (backtracking)")],
        *[("q-FFL, q 5", "q-FFL, q 5"), ("q_ffl_q_5", "q-FFL, q 5")],
        *[("median", "Median"), ("afl", "AFL")],
    ],
)
def test_a_baseline_is_found_by_any_of_its_names(name, row):
    assert find_baseline(ROWS, name) == row


@pytest.mark.parametrize(
    ("name", "message"),
    [
        *[
            (n, "is not one of the rows: DS; LD,DS; LD,DS")
            for n in ("MD", "prioritized")
        ],
        *[
            (n, "several rows: name one of q-FFL, q 1; q-FFL, q 5")
            for n in ("qffl", "Q-FFL")
        ],
    ],
)
def test_a_baseline_that_fits_no_row_or_several_lists_the_rows(name, message):
    with pytest.raises(ValueError, match=message):
        find_baseline(ROWS, name)


def test_federated_averaging_is_the_ordering_ds_or_the_algorithm():
    with pytest.raises(ValueError, match="FedAvg is not one of"):
        find_baseline(ROWS[1:], "FedAvg")
    assert find_baseline([RowName("FedAvg", "FedAvg", "fedavg")], "DS") == "FedAvg"
