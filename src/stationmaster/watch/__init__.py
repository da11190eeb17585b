"""Readings in, verdicts out: is the training moving, and is what it prints healthy?"""
