"""The HTML report: one self-contained file, which opens from disk and asks no network for anything."""
