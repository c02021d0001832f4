"""Comparisons of rows, their tests and the verdicts on claims: tables for notebooks and pages alike, no HTML."""
