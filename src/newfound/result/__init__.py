"""What a run is: its result, its record, its folder."""
