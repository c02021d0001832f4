"""The laws of each objective, one file an objective."""
