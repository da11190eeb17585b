"""What every face may ask for and do: one interface, on the store or over HTTP."""
