"""The E-step: semi-supervised Gaussian mixture with split and merge moves (Sec. 3.2)."""
