"""What commands say: builders that make a document of values. All sentences are here and in the TOML files."""
