"""What a race of settings says, and the files that it becomes."""
