"""Find the intents that nobody has labelled, in a table of sentences.

python examples/intents.py sentences.csv      # columns text,label; no label: leave it empty
"""

import sys
from pathlib import Path

from newfound import discover


def main() -> None:
    result = discover(Path(sys.argv[1]), seed=0)
    print(result.answer)
    text_of = dict(zip(result.collection.ids, result.collection.texts, strict=True))
    for _, category in result.categories[result.categories["kind"] == "novel"].iterrows():
        print(f"\n{category['category']}: {category['size']} sentences, for instance")
        for row in result.rows_of(category["exemplars"])[:3]:
            print("   ", text_of[result.collection.ids[row]])


if __name__ == "__main__":
    main()
