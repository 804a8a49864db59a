"""``python -m newfound`` and the console script ``newfound``."""

from __future__ import annotations

import sys

from newfound.errors import MissingExtraError, require


def main() -> None:
    """Run the command line, or say what to install for it."""
    try:
        require("typer", extra="cli")
        require("rich", extra="cli")
    except MissingExtraError as error:
        sys.exit(f"newfound: {error}")
    from newfound.bench.commands import app as bench
    from newfound.cli.main import app

    app.add_typer(bench, name="bench")
    app()


if __name__ == "__main__":
    main()
