"""The exceptions of records and reports."""

from __future__ import annotations


class RecordError(ValueError):
    """A run folder, or a request for a report of runs, that cannot be used as it is.

    Raised for records that are missing or broken, for folders that hold no run, and
    for runs that do not belong into one report. The message is one line and names the
    folder or the file.
    """


class RunTooShortError(RecordError):
    """A run that ended before the rounds that a claim is about."""


class FolderInUseError(RecordError):
    """A folder into which another process writes."""


class ClientsNotRecordedError(RecordError):
    """A record without the results of each client, which a table needs."""

    def __init__(self) -> None:
        super().__init__(
            "results of each client are needed but were not recorded "
            "(--record_clients=none)"
        )


class RecordMissingError(RecordError, FileNotFoundError):
    """A run folder without a file that it should have."""


class LostRunError(Exception):
    """A run that was lost, and leaves the other runs of its call as they are."""
