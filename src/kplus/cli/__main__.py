"""``python -m kplus.cli`` is ``kplus``."""

from kplus.cli import main

main()
