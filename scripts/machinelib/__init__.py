"""Fits of models to the published figures of the machines of the archive (scripts/fit-machines)."""
