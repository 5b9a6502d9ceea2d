"""``python -m kplus`` is ``kplus``."""

from kplus.cli import main

main()
