"""The errors that kplus itself raises."""

__all__ = [
    "CheckpointError",
    "ColumnChoiceError",
    "DataError",
    "MissingPackageError",
    "ModelFormatError",
    "NotFiniteError",
    "NotNumbersError",
    "WorkersError",
]


class CheckpointError(ValueError):
    """A fit cannot resume from a checkpoint; the message says why and what to do."""


class DataError(ValueError):
    """The data cannot be used as they are; the message names column and remedy."""


class ColumnChoiceError(DataError):
    """Columns were chosen that are not there, come twice, or leave none to use."""


class MissingPackageError(ImportError):
    """An optional package is not installed; the message says what to install."""


class ModelFormatError(ValueError):
    """A model file is damaged, foreign, too new or not what it claims to be."""


class NotFiniteError(DataError):
    """A row holds NaN or infinity."""


class NotNumbersError(DataError):
    """A column holds something else than numbers."""


class WorkersError(RuntimeError):
    """The workers of a cluster are gone, or fail at a task again and again."""
