"""From two runs, or one, to findings and verdicts as data."""
