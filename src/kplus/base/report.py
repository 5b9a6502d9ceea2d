"""What a fit took: `fit_report_`."""

from dataclasses import dataclass

from kplus.core.types import Blocks
from kplus.engine.meter import Meter

__all__ = ["FitReport", "report_of"]


@dataclass(frozen=True)
class FitReport:
    """What a fit took; in a stream, its latest batch.

    Attributes
    ----------
    n_rows, n_columns : int
    n_passes : int
        Passes over all rows.
    seconds : float
        From the first look at the data to the end.
    pass_seconds : float
        Of these, passes over all rows; the rest is the search on samples.
    rows_per_second : float
        Visits of rows in a second of these passes.
    read_share : float
        Share of the passes' time that went to reading and decoding rows. Mapped files
        are read where they are used, which counts as computing.
    peak_memory : int
        Bytes that the process had at most, after a part of a pass, without mapped
        files.
    n_workers : int
        Threads that worked at once, of this process or of a cluster.
    checkpoint_seconds : float
        Time to write checkpoints.
    """

    n_rows: int
    n_columns: int
    n_passes: int
    seconds: float
    pass_seconds: float
    rows_per_second: float
    read_share: float
    peak_memory: int
    n_workers: int
    checkpoint_seconds: float = 0.0

    def __str__(self) -> str:
        parts = [
            f"{self.n_rows:,} rows, {self.n_columns:,} columns: {self.n_passes} passes "
            f"in {self.seconds:.3g} s",
            f"{self.rows_per_second:,.0f} rows a second, {self.read_share:.0%} of it "
            f"reading",
            f"at most {self.peak_memory / 1e6:,.0f} MB",
        ]
        if self.checkpoint_seconds:
            parts.append(f"checkpoints {self.checkpoint_seconds:.2g} s")
        return "; ".join(parts)


def report_of(
    source: Blocks, n_passes: int, seconds: float, meter: Meter, written: float
) -> FitReport:
    """Put together what was noted on the way."""
    threads = meter.seconds * max(meter.workers, 1)
    return FitReport(
        n_rows=source.n_rows,
        n_columns=source.n_features,
        n_passes=n_passes,
        seconds=seconds,
        pass_seconds=meter.seconds,
        rows_per_second=meter.rows / meter.seconds if meter.seconds else 0.0,
        read_share=min(1.0, meter.read_seconds / threads) if threads else 0.0,
        peak_memory=meter.peak,
        n_workers=max(meter.workers, 1),
        checkpoint_seconds=written,
    )
