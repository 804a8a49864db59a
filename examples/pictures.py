"""Find the categories in a folder of pictures, and write a report.

python examples/pictures.py PICTURES labels.csv RUN
"""

import sys
from pathlib import Path

from newfound import discover
from newfound.report.page import write_report


def main() -> None:
    pictures, labels, run = map(Path, sys.argv[1:4])
    result = discover(pictures, labels, out=run, seed=0)
    print(result.answer)
    print(result.trust)
    novel = result.categories[result.categories["kind"] == "novel"]
    print(novel[["category", "size", "stability", "nearest"]].to_string(index=False))
    write_report(result, run / "report.html")


if __name__ == "__main__":  # the rehearsal starts processes, which import this file again
    main()
