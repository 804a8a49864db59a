"""Find the categories that the labels don't have yet, in a table of embeddings.

python examples/embeddings.py
"""

import numpy as np
from sklearn.datasets import load_digits

from newfound import SplitMergeMixture, count_categories

X, digits = load_digits(return_X_y=True)  # stands for your embeddings, one row per item
rng = np.random.default_rng(0)
labelled = (digits < 5) & (rng.random(len(digits)) < 0.5)
y = [f"digit {digit}" if known else None for digit, known in zip(digits, labelled, strict=True)]

count = count_categories(X, y, random_state=0)
low, high = count.interval
print(f"{count.n_known} known categories, about {count.n_novel:.1f} new ones")
print(f"90 % interval of the new ones: {low:.1f} to {high:.1f}")

mixture = SplitMergeMixture(random_state=0).fit(X, y)
categories = mixture.category_names_[mixture.labels_]
confidence = mixture.predict_proba(X).max(axis=1)
for i in np.flatnonzero(~labelled)[:10]:
    print(f"item {i}: {categories[i]} ({confidence[i]:.0%}), really a {digits[i]}")
