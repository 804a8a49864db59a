"""Decisions of a person about the categories: the file ``edits.csv``, and what follows from it."""
