#!/bin/sh
# A first walk with an installed newfound: sh wheel_test.sh BIN
set -eu
bin=$(cd "$1" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
"$bin/newfound" --version
"$bin/python" -c '
import numpy as np
from sklearn.datasets import load_digits
X, digits = load_digits(return_X_y=True)
X, digits = X[:600], digits[:600]
np.savez("digits.npz", X=X, y=np.where((digits < 5) & (np.arange(600) % 2 == 0), digits, -1))'
"$bin/newfound" count digits.npz
"$bin/newfound" discover digits.npz --no-rehearse --out RUN
"$bin/newfound" predict RUN digits.npz
"$bin/newfound" export RUN --to csv --out items.csv
"$bin/newfound" demo --epochs 2 --out demo
test -s RUN/report.html && test -s items.csv && test -s predictions.csv
echo "The wheel works."
