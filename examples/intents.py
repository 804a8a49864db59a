"""Find the intents that nobody has labelled, in a table of sentences.

python examples/intents.py sentences.csv      # columns text,label; no label: leave it empty
"""

import sys
from pathlib import Path

from newfound import discover


def main() -> None:
    result = discover(Path(sys.argv[1]), seed=0)
    print(result.answer)
    for code in range(result.n_known, len(result.names)):
        print(f"\n{result.names[code]}: {result.profiles.sizes[code]} sentences, for example")
        for row in result.profiles.exemplars[code][:3]:
            print("   ", result.collection.texts[row])


if __name__ == "__main__":
    main()
