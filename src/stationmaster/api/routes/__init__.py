"""One module per noun; each has its `routes`."""
