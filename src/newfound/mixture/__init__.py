"""The E-step, in numpy: a Gaussian mixture that finds its number of components.

Read `estimator` first. It calls `counting`, `projection`, `kmeans`, `search` and `outcome`, in
that order.
"""
