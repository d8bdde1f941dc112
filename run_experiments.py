"""Runs prioritized multi-criteria federated training and writes its tables.

`python run_experiments.py --help` has examples and all flags.
"""

import dataclasses
import gc
import os
import shlex
import shutil
import signal
import sys
import tempfile
import time

if sys.version_info[:2] not in ((3, 9), (3, 10), (3, 11)):
    sys.exit(
        "run_experiments.py: TensorFlow Federated needs Python 3.9, 3.10 or 3.11, and "
        f"this is {sys.version.split()[0]}; run `make quickstart PYTHON=python3.11`"
    )

from absl import flags

import leaf_data
from tff_pmc.escape import error_text, printable
from tff_pmc.experiments.flags import command_line, flag_definitions, flag_help, plugins
from tff_pmc.record import files
from tff_pmc.reports import output
from tff_pmc.runtime import EngineError, check_installed
from tff_pmc.settings import SettingError

EXIT_BAD_INPUT = 2
TEMPORARY_BYTES = 1 << 20


def main(argv):
    """Parses the command line and runs; returns the exit code."""
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
    os.environ.setdefault("GRPC_VERBOSITY", "ERROR")
    try:
        plugins.import_plugins(argv[1:])
        if shown := flag_help.requested_help(argv[1:], program_name()):
            print(shown)
            return 0
        values_by_flag = flag_definitions.parse(argv[1:])
        command = command_line.parse_command(values_by_flag)
        words = flag_definitions.without_user_files(argv[1:])
        text = shlex.join([program_name(), *words])
        command = dataclasses.replace(command, invocation=text)
        forms = output.Output(command.format, command.figures)
        offline = command.compare, command.export, command.tables
        if any(offline) or command.export_model:
            from tff_pmc.experiments import offline_commands

            with output.using(forms):
                print(printable(offline_commands.run_offline(command, values_by_flag)))
            return 0
        path = command.client_table
        table = leaf_data.read_client_table(path) if path else leaf_data.ClientTable()
        runs = command_line.build_run_settings(
            command, values_by_flag, tuple(table.values)
        )
        callbacks = command_line.build_callbacks(command, values_by_flag)
        cluster = command_line.cluster_options(command, values_by_flag)
        check_temporary_room()
        check_installed()
        new = "" if command.output_dir or command.inspect else new_folder(command)
    except BrokenPipeError:  # An OSError, but no error: `script` ends quietly.
        raise
    except (flags.Error, OSError, ValueError, EngineError) as error:
        return report_error(error, EXIT_BAD_INPUT)
    command = dataclasses.replace(command, output_dir=command.output_dir or new)
    try:
        with output.using(forms):
            return execute(command, runs, table, cluster, callbacks, new)
    finally:
        files.remove_if_empty(new)  # A refused command leaves no folder.


def new_folder(command):
    """Makes the folder of a command without `--output_dir`; returns its path."""
    name = f"{command.experiment}-{time.strftime('%Y%m%d-%H%M%S')}"
    return files.make_new_folder(os.path.join("runs", name))


def check_temporary_room():
    """Raises an `OSError` without room for temporary files.

    The import of TensorFlow needs a folder for them, and its tracing writes code there.
    """
    place = tempfile.gettempdir()
    if shutil.disk_usage(place).free < TEMPORARY_BYTES:
        raise OSError(f"{place}: less than 1 MB is left for temporary files")


def execute(command, runs, table, cluster=None, callbacks=(), new=""):
    """Runs the command; imports TensorFlow and TFF only here.

    `new` is the folder that was made for the command, or "" if it names one.
    """
    recorded = command.output_dir
    # Until TensorFlow is imported, a signal exits at once: its C code would swallow an
    # exception.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda n, _: _exit_at_once(n, recorded, new))
    # Tracing makes millions of objects that stay, and each collection walks over them.
    gc.set_threshold(50_000)
    from tff_pmc.criteria import CriterionError
    from tff_pmc.experiments.running import execution
    from tff_pmc.record.record_error import LostRunError, RecordError
    from tff_pmc.runtime import WorkerDiedError

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, _interrupt)
    try:
        text = execution.execute(command, runs, table, cluster, callbacks, recorded)
        print(printable(text), flush=True)
        return 0
    except (CriterionError, SettingError, RecordError, leaf_data.DataError) as error:
        return report_error(error, EXIT_BAD_INPUT)
    except LostRunError as error:
        return report_error(f"{error}; what was recorded is in {recorded}", 1)
    except BrokenPipeError:  # An OSError, but no error: `script` ends quietly.
        raise
    except (EngineError, MemoryError, OSError) as error:
        report_error(f"{str(error) or 'out of memory'}{_how_to_resume(recorded)}", 1)
        if isinstance(error, WorkerDiedError):
            # An ordinary end would bury this under the tracebacks of TFF's finalizers.
            os._exit(1)
        return 1
    except Interrupted as error:
        return report_error(
            f"interrupted{_how_to_resume(recorded)}", 128 + error.args[0]
        )


class Interrupted(BaseException):
    """Raised with the number of a signal to stop, so that files are closed first."""


def _interrupt(number, unused_frame):
    raise Interrupted(number)


def _exit_at_once(number, output_dir, new):
    files.remove_if_empty(new)
    report_error(f"interrupted{_how_to_resume(output_dir)}", 0)
    os._exit(128 + number)  # No run has started yet.


def _how_to_resume(output_dir):
    """Returns where the record is and how to resume it, or "" without a record."""
    if not output_dir or not os.path.exists(os.path.join(output_dir, "run.json")):
        return ""
    return (
        f"; what was recorded is in {output_dir}; the same command with "
        f"--output_dir={output_dir} --resume continues it"
    )


def report_error(error, code):
    """Reports an error in one line on stderr; returns the exit code."""
    print(f"{program_name()}: {error_text(error)}", file=sys.stderr)
    return code


def program_name():
    """Returns the program's name, which an installation changes to `tff-pmc`."""
    return "tff-pmc" if sys.argv[0].endswith("tff-pmc") else "run_experiments.py"


def script():
    """Runs the command with the arguments of the process; returns the exit code."""
    sys.stderr = sys.stderr or open(os.devnull, "w")  # Or logs go into a record.
    try:
        return main(sys.argv)
    except KeyboardInterrupt:  # Before the flags are read.
        return report_error("interrupted", 130)
    except BrokenPipeError:  # `| head` has read enough.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141


if __name__ == "__main__":
    sys.exit(script())
