"""Renderers of documents: as text, Markdown, HTML and pictures; and of values as JSON. They know no run."""
