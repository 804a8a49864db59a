"""The benchmark: every method under one protocol, every table of the paper."""
