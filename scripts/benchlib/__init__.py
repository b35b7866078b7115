"""The parts of scripts/bench: contests between hockney and bare programs, and the table of their ratios."""
