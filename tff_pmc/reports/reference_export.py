"""Export of a run of ours in the form that the authors' published code writes.

Its `Evaluation/evaluation.py` and `plots.py` then read our runs. `reference_code`
has the format.
"""

from __future__ import annotations

import os
import tempfile

import tff_pmc
from tff_pmc.record import read
from tff_pmc.record.predictions import Predictions
from tff_pmc.record.record_error import ClientsLeftOutError, RecordError
from tff_pmc.reports import reference_code
from tff_pmc.reports.escape import printable

_FORMS = dict(mnist="mnist", digits5k="mnist", celeba="celeba", drawn_faces="celeba")
_REAL = {"mnist": "MNIST", "celeba": "CelebA"}
_PRINTED_AS = {"CB": "IS", "IS": "CB"}
_README = """\
A run in the form of sisinflab/ClientAware-FL, written by tff_pmc {version}.

data set:  {data_set}
ordering:  {ordering}
index:     {index}, which Evaluation/evaluation.py prints as {printed}
{notes}
client_P.csv is the same client in every round and in every run of this federation:
the P-th. (In folders that the published code writes itself, P is the place in a list
that is shuffled every round.)
%_clients in accuracy.csv counts the clients that have at least the target accuracy;
evaluation.py counts those strictly above the target it is given.
"""
_LABEL_NOTE = """\
Mind the names. CB is the class balance and IS the sharpness of the images, here and
in the published code's training, whose index 1 is the class balance. But its
evaluation script prints index 1 as IS and index 2 as CB.
"""
_MD_NOTE = """\
Mind MD. Here it is one norm over the whole model, as in the paper; the published code
takes a norm for each layer's kernel and their mean (--model_divergence=by_layer).
"""
_PAPER_NOTE = """\
Mind the settings. This run began from the paper's, which differ from what the published
code does in more than params.txt has room for (--protocol=reference_code).
"""

# What the published code cannot be told, and has always; and the words for another.
_PLAIN = {
    "adjustment": ("fixed", "it is adjusted online ({})"),
    "system": ("prioritized", "its system is {}"),
    "normalization": ("sum", "its criteria are normalized by {}"),
    "clip_norm": (0, "its updates are clipped to the norm {:g}"),
    "server_learning_rate": (1, "its server's learning rate is {:g}"),
    "server_optimizer": ("sgd", "its server_optimizer is {}"),
    "client_optimizer": ("sgd", "its client_optimizer is {}"),
    "client_rate_decay": (1, "its clients' learning rate decays by {}"),
    "prox_mu": (0, "its prox_mu is {}"),
    "selection": ("uniform", "its selection is {}"),
    "keep_own_model": (False, "its keep_own_model is {}"),
    "evaluate_every": (1, "its evaluate_every is {}"),
}

_HELD_OUT_NOTE = """\
Mind the training examples. {fraction:.0%} of each client's were held out.
"""
_DATA_NOTE = """\
Mind the data. This is no run on the whole of {real}: see the data set above.
"""


def write(run_folder: str, output: str, target_accuracy: float = 0.95) -> None:
    """Writes one of our runs in the published code's form.

    The clients keep the federation's order in every round. The published code has
    them in a shuffled order, but nothing it computes depends on that order except
    tables that pair two runs by file name, which the shuffling makes wrong.

    `output` is the new folder; `evaluation.py` takes the folder above it, and every
    entry there for a run. `target_accuracy` is what `%_clients` in `accuracy.csv` is
    about. A run that the form cannot hold is a `RecordError`.
    """
    run = read.read_run(run_folder)
    index, form = index_of(run), _form(run)
    if not len(run.examples):
        raise ClientsLeftOutError
    clients = run.data.get("clients", len(run.examples))
    if len(run.examples) < clients:
        raise RecordError(
            f"{run_folder}: {len(run.examples)} of {clients} clients were tested "
            "(--evaluate_clients), and the published code tests all"
        )
    if (run.examples == 0).any():
        raise RecordError(f"{run_folder}: a client has no test example")
    if os.path.exists(output):
        raise RecordError(f"{output} is there already; nothing is overwritten")
    parent = os.path.dirname(os.path.abspath(output))
    os.makedirs(parent, exist_ok=True)
    # In its place only when it is whole: a part of a run would be read as a run.
    with tempfile.TemporaryDirectory(dir=parent) as scratch:
        folder = os.path.join(scratch, "run")
        os.makedirs(folder)
        _write_texts(run, index, folder, target_accuracy)
        for round_num in range(1, len(run.correct) + 1):
            place = os.path.join(folder, f"round_{round_num}")
            _write_round(run.predictions(round_num), form, place)
        os.rename(folder, output)


def index_of(run: read.Run) -> int:
    """Returns the index 0 to 8 of a run's ordering, by the meaning of its criteria.

    What the index means there is the weighted mean of the clients' models, with the
    criteria divided by their sums: for a run that aggregated otherwise there is none,
    which is a `RecordError`.
    """
    settings = run.settings
    known = reference_code.orderings(_form(run))
    order = tuple(reference_code.by_meaning(code) for code in settings["priority"])
    reasons = [
        words.format(settings[name])
        for name, (plain, words) in _PLAIN.items()
        if settings.get(name, plain) != plain
    ]
    if order not in known:
        only = ", ".join(map(">".join, known))
        reasons.append(f"the published code has only {only}")
    if reasons:
        raise RecordError(
            f"{run.path}: the ordering {'>'.join(settings['priority'])} has no index "
            f"in the published code: {reasons[0]}"
        )
    return known.index(order)


def _form(run: read.Run) -> str:
    name = run.data["name"]
    if name not in _FORMS:
        raise RecordError(f"{run.path}: the published code has no data set {name}")
    return _FORMS[name]


def _write_texts(run: read.Run, index: int, folder: str, target: float) -> None:
    settings, data = run.settings, run.data
    clients, form = len(run.examples), _FORMS[data["name"]]
    size = settings["clients_per_round"]
    lines = [
        f"Local learning rate: {settings['learning_rate']}",
        f"E (local epochs): {settings['local_epochs']}",
        f"B (local batch size): {settings['batch_size'] or None}",
        f"C (fraction of clients): {size if size < 1 else size / clients}",
        f"{reference_code.NUM_CLIENTS}: {clients}",
        f"Target accuracy: {target}",
        f"{reference_code.PERMUTATION}: {index}",
    ]
    if form == "mnist":
        kind = "iid" if settings["partition"] == "iid" else "non-iid"
        lines.insert(0, f"{reference_code.LOCAL_DATA}: {kind}")
    _write(os.path.join(folder, reference_code.PARAMETERS), "\r\n".join(lines))

    rows = ["n_round,%_clients,aggr_accuracy\n"]
    for round_num, correct in enumerate(run.correct, start=1):
        satisfied = int((correct / run.examples >= target).sum())
        share, accuracy = satisfied * 100 / clients, run.accuracy[round_num - 1]
        # Round 1 is written by pandas there, and the others by the csv module.
        end = "\n" if round_num == 1 else "\r\n"
        rows.append(f"{round_num},{share!r},{float(accuracy)!r}{end}")
    _write(os.path.join(folder, "accuracy.csv"), "".join(rows))

    known = reference_code.orderings(form)
    names = [_PRINTED_AS.get(code, code) for code in known[index]]
    readme = _README.format(
        version=tff_pmc.__version__,
        data_set=f"{data['name']} ({run.source})" if run.source else data["name"],
        ordering=run.label,
        index=index,
        printed="_".join([str(index), *names]),
        notes="".join(f"\n{note}" for note in _notes(run, form)),
    )
    _write(os.path.join(folder, "README.txt"), printable(readme))


def _notes(run: read.Run, form: str) -> list[str]:
    """Returns the notes on what the published code's form does not show."""
    settings = run.settings
    of_whole = settings.get("model_divergence", "whole") == "whole"
    held_out = settings.get("judge_on", "test") != "test"
    fraction = settings["validation_fraction"] if held_out else 0
    notes = {
        _DATA_NOTE.format(real=_REAL[form]): run.data_caveat
        or run.data["name"] != form,
        _LABEL_NOTE: form == "celeba",
        _MD_NOTE: of_whole and "MD" in settings["priority"],
        _HELD_OUT_NOTE.format(fraction=fraction): held_out,
        _PAPER_NOTE: settings.get("protocol", "paper") == "paper",
    }
    return [note for note, holds in notes.items() if holds]


def _write_round(predictions: Predictions, form: str, folder: str) -> None:
    os.makedirs(folder)
    # The sigmoid's output is rounded in place there, and stays a float.
    predicted = predictions.predicted.astype(float if form == "celeba" else int)
    pairs = [f"{a},{b}" for a, b in zip(predicted.tolist(), predictions.y.tolist())]
    splits = predictions.row_splits.tolist()
    for place, (start, end) in enumerate(zip(splits, splits[1:]), start=1):
        lines = [reference_code.HEADER, *pairs[start:end], ""]
        _write(os.path.join(folder, f"client_{place}.csv"), "\n".join(lines))


def _write(path: str, text: str) -> None:
    with open(path, "w", newline="") as file:
        file.write(text)
