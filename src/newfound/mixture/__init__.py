"""The E-step, in numpy: a Gaussian mixture that finds its number of components.

Read `estimator` first. It calls `projection`, `counting`, `kmeans`, `search` and `outcome`, in
that order.
"""
