"""Predictions: times of patterns on a model of a machine, and the changes that affect them most."""
