"""Sampling: selection of the exchanges to score, and their inclusion probabilities."""
