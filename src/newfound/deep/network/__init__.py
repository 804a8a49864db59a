"""The network: backbone, weights, head."""
