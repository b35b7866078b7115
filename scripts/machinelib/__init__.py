"""What scripts/fit-machines writes: the models of the machines of the archive, from their published figures."""
