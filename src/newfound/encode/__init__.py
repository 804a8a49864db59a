"""Features of pictures and texts."""
