"""From pictures to batches of views."""
