"""How many novel categories there are."""
