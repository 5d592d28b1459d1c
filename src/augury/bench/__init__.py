"""Benchmarks: how fast Augury detects, each count checked against brute force. `augury bench` runs them."""
