"""The report: one HTML page with the answer, the categories and what to check."""
