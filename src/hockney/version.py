"""The version of hockney."""

__version__ = "0.1.0"
