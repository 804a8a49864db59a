"""How far to believe a result, measured: hidden classes, other seeds, other rows."""
