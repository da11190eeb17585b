"""Any rented machines side by side, ours or not."""
