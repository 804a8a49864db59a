"""Print the lower bounds of pyproject.toml as constraints for pip: ``numpy>=1.26`` → numpy==1.26.

What constraints/cpu.txt pins (torch) stays pinned, and tools of developers are not bounded.

    python constraints/lowest.py > lowest.txt
"""

import re
from pathlib import Path

import tomllib

HERE = Path(__file__).parent
#: Extras whose bounds are a promise to users.
PROMISED = ("train", "cli", "report", "scale", "review", "heic")


def main() -> None:
    """Print one line for each package that has a lower bound."""
    project = tomllib.loads((HERE.parent / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    asked = [*project["dependencies"], *(one for name in PROMISED for one in extras[name])]
    pinned = {line.split("==")[0] for line in (HERE / "cpu.txt").read_text().splitlines()}
    for requirement in sorted(set(asked)):
        name, bound = re.fullmatch(
            r"([\w.-]+)(?:\[[\w,]+\])?>=([\w.]+)(?:;.*)?", requirement
        ).groups()
        if name not in pinned:
            print(f"{name}=={bound}")


if __name__ == "__main__":
    main()
