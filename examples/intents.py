"""Find the intents that have no label yet, in a table of sentences.

python examples/intents.py sentences.csv

The table has the columns text and label. Leave the label empty where it is not known.
"""

import sys
from pathlib import Path

from newfound import discover


def main() -> None:
    result = discover(Path(sys.argv[1]), seed=0)
    print(result.run["sentence"])
    for _, category in result.categories[result.categories["kind"] == "novel"].iterrows():
        print(f"\n{category['category']}: {category['size']} sentences, for instance")
        for row in result.rows_of(category["exemplars"])[:3]:
            print("   ", result.collection.texts[row])


if __name__ == "__main__":
    main()
