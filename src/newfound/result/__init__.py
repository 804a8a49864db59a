"""Results: what a run found, its record, and its folder."""
