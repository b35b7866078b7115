"""What scripts/bench is made of: contests between hockney and bare programs, and the table of their ratios."""
