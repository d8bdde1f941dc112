"""Runs prioritized multi-criteria federated training and makes its tables.

`python run_experiments.py --help` has examples, the papers' flag files, and all
flags.
"""

import os
import signal
import sys
import time

if sys.version_info[:2] not in ((3, 9), (3, 10), (3, 11)):
    sys.exit(
        "run_experiments.py: TensorFlow Federated needs Python 3.9, 3.10 or 3.11, and "
        f"this is {sys.version.split()[0]}; run `make quickstart PYTHON=python3.11`"
    )

from absl import flags

import leaf_data
from tff_pmc.experiments.flags import (
    cluster_flags,
    command_line,
    flag_definitions,
    plugins,
)
from tff_pmc.experiments.flags.command import LR_SEARCH, Command
from tff_pmc.reports import output
from tff_pmc.reports.escape import printable
from tff_pmc.settings import SettingError

EXIT_BAD_INPUT = 2
SCRIPT = "tff-pmc"
"""The command that an installation makes (pyproject.toml)."""


def main(argv, flag_values=flags.FLAGS):
    """Parses the command line and runs; returns the exit code."""
    try:
        plugins.import_plugins(argv[1:])
        flag_definitions.define(flag_values)
        if any(
            argument in ("--help", "-help", "-h", "--helpfull") for argument in argv
        ):
            from tff_pmc.experiments.flags import flag_help

            print(flag_help.help_text(how_to_call()))
            return 0
        rest, from_files = flag_definitions.parse(argv, flag_values)
        given = flag_definitions.given(flag_values)
        command = Command.of_flags(given)
        if command.data_dir and not os.path.isdir(command.data_dir):
            raise SettingError(f"--data_dir={command.data_dir} is no folder")
        if rest:
            raise SettingError(f"unexpected argument: {rest[0]}")
        if "format" in given and not command.tables:
            raise SettingError("--format goes with --tables")
        forms = output.Output(command.format, command.figures)
        if command.compare or command.export or command.tables:
            from tff_pmc.experiments import side_by_side

            with output.using(forms):
                print(printable(side_by_side.text(command, given)))
            return 0
        table = read_table(command)
        runs = command_line.parse(given, tuple(table.values), from_files)
        cluster = cluster_flags.cluster_of(command, given)
        if cluster is not None:
            from tff_pmc.runtime import cluster_probe

            cluster_probe.check_installed()
            cluster_probe.check_answer(cluster)
    except BrokenPipeError:
        raise
    except (flags.Error, OSError, ValueError) as error:
        return fail(error, EXIT_BAD_INPUT)
    with output.using(forms):
        return execute(command, runs, table, cluster)


def read_table(command):
    """Returns the table of client attributes, empty without the flag."""
    if not command.client_table:
        return leaf_data.ClientTable()
    return leaf_data.read_client_table(command.client_table)


def execute(command, runs, table, cluster=None):
    """Loads the data and runs; imports TensorFlow and TFF only here."""
    first = runs[0]
    output_dir = command.output_dir or os.path.join(
        "runs", f"{command.experiment}-{time.strftime('%Y%m%d-%H%M%S')}"
    )
    recorded = "" if command.inspect else output_dir
    # An interrupt or a termination leaves by one way, wherever it comes: during the
    # import of TensorFlow, too, whose C code would swallow an exception.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda n, _: _leave(n, recorded))
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
    os.environ.setdefault("GRPC_VERBOSITY", "ERROR")
    from tff_pmc.experiments.running import (
        inspection,
        rate_search,
        suite,
        tensorboard_events,
    )
    from tff_pmc.experiments.running.jobs import Federations
    from tff_pmc.reports.record_error import RecordError
    from tff_pmc.runtime import (
        ClusterError,
        Runtime,
        WorkerDiedError,
        WorkerStartError,
    )

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, _interrupt)
    try:
        if command.resume and not command.output_dir:
            raise SettingError("--resume needs the --output_dir of the run")

        load = Federations(command.data_dir, command.cache_dir, table)
        engine = command.engine if cluster is None else "cluster"
        data = load(first)
        if command.inspect:
            others = [settings.system.score(settings) for settings in runs]
            text = inspection.inspect(
                first,
                others,
                data,
                engine=engine,
                private=command.private_worker,
                cluster=cluster,
            )
            print(printable(text))
            return 0
        print(printable(data.describe()), flush=True)
        if any(settings.two_stage for settings in runs):
            print(
                f"The system {first.names['system']} needs the totals first: two "
                "aggregations a round, and every client's update is kept until the "
                "second"
            )
        if command.tensorboard:
            print(printable(tensorboard_events.how_to_open(output_dir)), flush=True)
        with Runtime(
            engine, private=command.private_worker, cluster=cluster
        ) as running:
            runner = runner_of(command, cluster, running, len(runs), load, output_dir)
            how = {"resume": command.resume, "tensorboard": command.tensorboard}
            if command.experiment == LR_SEARCH:
                texts = rate_search.search(
                    runs, data, output_dir, held_out=command.held_out, **how
                )
            else:
                how.update(seeds=command.seeds, runner=runner)
                texts = suite.run_all(runs, load, output_dir, **how)
        text = f"\n{texts}\n\nResults, records and plots: {output_dir}"
        print(printable(text), flush=True)
        return 0
    except (SettingError, RecordError, leaf_data.DataError) as error:
        return fail(error, EXIT_BAD_INPUT)
    except BrokenPipeError:
        raise
    except (ClusterError, WorkerStartError, OSError) as error:
        return fail(f"{error}{_how_to_go_on(recorded)}", 1)
    except WorkerDiedError as error:
        fail(f"{error}{_how_to_go_on(recorded)}", 1)
        # The record is closed. An ordinary end would let TFF's finalizers talk to
        # the dead worker, and bury the line above under their tracebacks.
        os._exit(1)
    except Interrupted as error:
        return fail(f"interrupted{_how_to_go_on(recorded)}", 128 + error.number)


def runner_of(command, cluster, running, num_runs, load, output_dir):
    """Returns what makes the runs; None for this process, one after another."""
    if cluster is None or command.experiment == LR_SEARCH:
        return None
    connection = running.engine.connection
    num_runs *= len(command.seeds) or 1
    spread = cluster_flags.spread_of(
        cluster.spread, num_runs, len(connection.workers())
    )
    if spread == "clients":
        return None
    from tff_pmc.experiments.running.spread_runs import SpreadRuns

    running.engine.record(spread)
    return SpreadRuns(connection, load, output_dir, list(command.plugin))


class Interrupted(BaseException):
    """Raised on a signal to stop, so that files are closed first."""

    def __init__(self, number):
        """Takes the signal's number."""
        super().__init__(number)
        self.number = number


def _interrupt(number, unused_frame):
    raise Interrupted(number)


def _leave(number, output_dir):
    fail(f"interrupted{_how_to_go_on(output_dir)}", 0)
    os._exit(128 + number)  # Nothing has been begun yet.


def _how_to_go_on(output_dir):
    """Returns words on the record's folder and on resuming, if there is a record."""
    if not output_dir or not os.path.exists(os.path.join(output_dir, "run.json")):
        return ""
    return (
        f"; what was recorded is in {output_dir}; the same command with "
        f"--output_dir={output_dir} --resume goes on"
    )


def fail(error, code):
    """Reports an error in one line on stderr; returns the exit code."""
    line = printable(" ".join(str(error).split()))
    print(f"{called()}: {line}", file=sys.stderr)
    return code


def called():
    """Returns the name of this program, by how it was called."""
    name = os.path.basename(sys.argv[0])
    return SCRIPT if name == SCRIPT else "run_experiments.py"


def how_to_call():
    """Returns the start of a command line that calls this program."""
    return SCRIPT if called() == SCRIPT else f"python {called()}"


def script():
    """Runs with the arguments of the process, of which it is all; returns the code."""
    try:
        return main(sys.argv)
    except KeyboardInterrupt:  # Before the flags are read.
        return fail("interrupted", 130)
    except BrokenPipeError:  # `| head` has read enough.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141


if __name__ == "__main__":
    sys.exit(script())
