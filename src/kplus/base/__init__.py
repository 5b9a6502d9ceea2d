"""What all estimators share: the frame of a fit, validation, progress, reports."""
