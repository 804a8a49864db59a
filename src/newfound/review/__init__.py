"""`newfound review`: the page of a run, alive. A person decides, and every decision is a row."""
