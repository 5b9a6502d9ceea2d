"""Reports: one HTML page that explains a fitted model, to keep and to send."""

from kplus.report.write import report

__all__ = ["report"]
