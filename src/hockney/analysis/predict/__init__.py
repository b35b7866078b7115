"""Predictions: times of patterns on a model of a machine, and what would change them."""

from hockney.analysis.predict.prediction import Prediction

__all__ = ["Prediction"]
