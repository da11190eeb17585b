"""Datasets: judged before money is spent (validate, repair), packed the same way everywhere (pack)."""
