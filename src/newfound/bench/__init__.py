"""The benchmark: all methods under one protocol, and the tables and figures of the paper."""
