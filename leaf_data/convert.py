"""Makes a store from LEAF's JSON files, or from a folder of CSVs.

    python -m leaf_data.convert leaf/data/synthetic my_store
    python -m leaf_data.convert clinics my_store --label=outcome --test_fraction=0.2

It takes LEAF's data sets whose x are numbers of one shape: they become float32, and y
classes, one for each example or a list with one for each position, or with
`--label_type=number` the values of a regression. The text of
Shakespeare, Sent140 and Reddit becomes ids, as in the data sets of these names. Other
texts and names of images raise an error. CSVs are one for each client and named after
it, or have a column of the clients' names, `--client`. The column `--label` is y: whole
numbers from 0, or words, which become classes in sorted order, or with
`--label_type=number` the values of a regression. The other columns are x, float32.
Files named as a training and a test set (`train.csv`, `test.csv`) become these sets.
The store records the names of inputs, classes and the columns.
"""

from __future__ import annotations

import argparse
import json
import signal
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Optional

import tqdm

from leaf_data import csv_clients, leaf_clients
from leaf_data.dataset import load
from leaf_data.errors import DataError, error_summary, shorten
from leaf_data.formats import csv_fields, csv_folder, data_files, file_parts, leaf_json
from leaf_data.formats.file_parts import NamedFile
from leaf_data.store import open_store, write_store

_LONGEST_CLASSES = 1 << 13  # Characters of the names that a store's options repeat.


def _notes(folder: str, files: Sequence[NamedFile]) -> Iterator[str]:
    """Yields what users need to know of a folder of CSVs before it is read."""
    if unread := csv_folder.list_unread(folder, files):
        names = shorten(", ".join(unread), 300)
        yield f"{folder}: only its CSVs are read; these are not: {names}"
    tests = [file.path for file in files if file.part == "test"]
    if tests:
        train, test = (
            f"{first}{f' and {count - 1} more' if count > 1 else ''}"
            for first, count in (
                (files[0].path, len(files) - len(tests)),
                (tests[0], len(tests)),
            )
        )
        yield (
            f"by their names the training set is {train}, the test set {test}: rename "
            "files that are not"
        )


def main(arguments: Optional[Sequence[str]] = None) -> int:
    """Carries out the command; returns the exit code."""
    parser = _build_parser()
    options = parser.parse_args(arguments)
    try:
        _convert(options, parser.prog)
    except (DataError, OSError) as error:
        print(f"{parser.prog}: {error_summary(error, 900)}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print(f"{parser.prog}: interrupted: no store was written", file=sys.stderr)
        return 130
    return 0


def _build_parser() -> argparse.ArgumentParser:
    title = (__doc__ or "").partition("\n")[0]
    parser = argparse.ArgumentParser("python -m leaf_data.convert", description=title)
    parser.add_argument("folder", help="LEAF's JSON files, or CSVs")
    parser.add_argument("store", help="the folder that is made")
    parser.add_argument("--label", default="", help="of CSVs: the column of the labels")
    parser.add_argument(
        "--label_type",
        choices=("class", "number"),
        default="class",
        help="whether these are classes or numbers, the values of a regression",
    )
    parser.add_argument(
        "--client",
        default="",
        help="of CSVs: the column of the clients' names; by default a file is a client",
    )
    parser.add_argument(
        "--join",
        action="store_true",
        help="join the rows of a client that is in several CSVs; by default an error",
    )
    parser.add_argument(
        "--test_fraction",
        type=float,
        default=0.0,
        help="of each client's examples, to test on; where no files have others",
    )
    parser.add_argument("--seed", type=int, default=0, help="of the test fraction")
    parser.add_argument(
        "--keep_equal_together",
        action="store_true",
        help="draw all or none of the examples that are equal, to test on",
    )
    return parser


def _convert(options: argparse.Namespace, program: str) -> None:
    """Writes the store and prints its description; notes are printed on stderr."""

    def note(text: str) -> None:
        print(f"{program}: {text}", file=sys.stderr)

    folder, label = data_files.check_folder(options.folder), options.label
    input_names: Sequence[str] = ()
    class_names: Sequence[str] = ()
    header: dict[str, Any] = {}
    classes: Mapping[str, int] = {}
    if label:
        files = csv_folder.find(folder)
        parts = [file.part for file in files]
        for text in _notes(folder, files):
            note(text)
        input_names = csv_clients.read_input_names(folder, label, options.client)
        header["label_column"] = label
        if options.client:
            header["client_column"] = options.client
        if options.label_type == "class":
            classes = csv_clients.read_classes(folder, label, options.client)
            if csv_fields.parse_number(next(iter(classes))) is None:  # Words.
                class_names = [*classes]
                if len(json.dumps(class_names)) < _LONGEST_CLASSES:
                    header["classes"] = class_names
        clients = csv_clients.read_clients(
            folder, label, classes, options.client, options.join
        )
    elif options.client:
        raise DataError("--client needs --label: both name columns of CSVs")
    elif options.join:
        raise DataError("--join needs --label: it joins the rows of CSVs")
    else:
        leaf_files = _find_leaf_files(folder)
        parts = [file.part for file in leaf_files]
        if name := leaf_clients.detect_dataset(leaf_files):
            _convert_text(name, folder, options)
            return
        clients = leaf_clients.read_clients(folder, options.label_type)
    fraction = options.test_fraction
    if fraction and "test" in parts:
        fraction = 0.0
        note("--test_fraction has no effect, because there are test files")
    # Closed first, its line ends before that of an error.
    with tqdm.tqdm(clients, "clients", unit="client", mininterval=1) as shown:
        write_store(
            shown,
            options.store,
            test_fraction=fraction,
            seed=options.seed,
            keep_equal_together=options.keep_equal_together,
            options=header,
            input_names=input_names,
            class_names=class_names,
        )
    data = open_store(options.store)
    print(data.describe())
    if label and not options.client and len(data.client_ids) == 1:
        number = "one CSV" if len(parts) == 1 else "one CSV of each part"
        note(
            f"all examples are of one client, {data.client_ids[0]}, because there is "
            f"{number}: --client=COLUMN makes one client of each name in a column"
        )


def _convert_text(name: str, folder: str, options: argparse.Namespace) -> None:
    """Writes the store of one of LEAF's data sets of text, with its vocabulary."""
    if options.label_type != "class":
        raise DataError(
            f"--label_type={options.label_type} has no effect on LEAF's {name}, whose "
            "labels are classes: omit it"
        )
    if options.test_fraction or options.keep_equal_together:
        raise DataError(
            "--test_fraction and --keep_equal_together have no effect on LEAF's "
            f"{name}, which is split by LEAF's rule: omit them"
        )
    with tempfile.TemporaryDirectory() as cache:
        data = load(name, folder, cache_dir=cache, seed=options.seed)
        write_store(data, options.store)
    print(open_store(options.store).describe())


def _find_leaf_files(folder: str) -> tuple[leaf_json.LeafFile, ...]:
    """Returns LEAF's files; an error that points out CSVs."""
    try:
        return leaf_json.find("LEAF", [folder])
    except DataError as error:
        if csvs := file_parts.list_files(folder, ".csv"):
            raise DataError(
                f"{csvs[0]} is a CSV: --label=COLUMN must name the column of the "
                "labels; without it LEAF's JSON files are read"
            ) from error
        raise


if __name__ == "__main__":
    # As with Ctrl-C, nothing is left behind.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    sys.exit(main())
