"""The exceptions of records and reports."""

from __future__ import annotations


class RecordError(ValueError):
    """A run folder that cannot be read, or runs that a report cannot be made from.

    Raised for records that are missing or broken, for folders that contain no run, and
    for runs that one report cannot combine. The message is one line and names the
    folder or the file.
    """


class RunTooShortError(RecordError):
    """A run ended before the rounds that a claim is about."""


class FolderInUseError(RecordError):
    """Another process writes into the folder."""


class NotRecordedError(RecordError):
    """What one report needs is not in the runs, by their flags; others are made."""


class ClientsNotRecordedError(NotRecordedError):
    """The results of each client are needed, but were not recorded."""

    def __init__(self) -> None:
        super().__init__(
            "results of each client are needed but were not recorded "
            "(--record_clients=none)"
        )


class RecordMissingError(RecordError, FileNotFoundError):
    """A file of a run folder is missing."""


class LostRunError(Exception):
    """A run whose model stopped changing; the other runs of the command continue."""
