"""Rewrites that make a plan cheaper and never change its answers: one a file."""
