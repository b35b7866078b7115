"""Predictions: times of patterns on a model of a machine, and what would change them."""

from hockney.analysis.predict.change import PARAMETERS, Change, changed, parameters_of, parse_change
from hockney.analysis.predict.prediction import Prediction
from hockney.analysis.predict.sensitivity import Effect, improvements, sensitivity
from hockney.analysis.predict.tolerance import SLOWDOWNS, Tolerance, bandwidth_tolerance, latency_tolerance

__all__ = [
    "PARAMETERS",
    "SLOWDOWNS",
    "Change",
    "Effect",
    "Prediction",
    "Tolerance",
    "bandwidth_tolerance",
    "changed",
    "improvements",
    "latency_tolerance",
    "parameters_of",
    "parse_change",
    "sensitivity",
]
