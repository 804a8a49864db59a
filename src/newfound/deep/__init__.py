"""The M-step, in torch: backbone, views, batches, losses and the loop around them."""
