"""Recipes: declared ways to train, from a file to a plan that trackside runs."""
