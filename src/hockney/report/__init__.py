"""Results put together for reading: values first, so that every form of output shows the same."""
