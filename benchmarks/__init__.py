"""Speeds as ratios against peers: one JSON line a figure on standard output, a table for people on standard error."""
