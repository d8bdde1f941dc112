"""The exception that is raised for data."""

from __future__ import annotations


class DataError(ValueError):
    """Data, or a request for data, that cannot be used as it is.

    Raised for a data set, option or client that does not exist, for missing,
    truncated or corrupt files, and for arrays that do not fit together. The
    message is one line and names the file, the option or the array.
    """
