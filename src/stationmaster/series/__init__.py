"""A training's values in columns: checked, encoded for the store, reduced to what a chart can show. Pure."""
