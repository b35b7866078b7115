"""Models of machines fitted to a run, and changes of models."""
