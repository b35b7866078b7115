"""From a plan to stored measurements."""
