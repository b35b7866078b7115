"""The JSON Schemas of hockney's documents, from docs/json.md."""
