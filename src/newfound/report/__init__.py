"""The page to look at: one HTML file with the answer, the categories and the doubts."""
