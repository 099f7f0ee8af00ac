"""``python -m kebab_eval`` is ``kebab-eval``."""

from kebab_eval.cli.front import main

main()
