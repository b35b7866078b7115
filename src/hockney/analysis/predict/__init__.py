"""Predictions: times of patterns on a model of a machine, and what would change them."""
