"""Fits that write a checkpoint after every pass, and crash after some of them."""

from kplus.persist import checkpoint


class Crash(Exception):
    """The power was cut, so to speak."""


def crash_after(writes, patch):
    """Let the next fit crash when it has written so many checkpoints."""
    write, count = checkpoint.Checkpoint.write, 0

    def writing(self, *arguments):
        nonlocal count
        write(self, *arguments)
        count += 1
        if count == writes:
            raise Crash

    patch.setattr(checkpoint, "SECONDS", 0.0)
    patch.setattr(checkpoint, "SHARE", 0)
    patch.setattr(checkpoint.Checkpoint, "write", writing)
