"""Stored runs: the store, runs as arrays, exports."""
