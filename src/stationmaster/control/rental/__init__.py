"""The machine behind an attempt: taking it over, logging in, finding it again, seeing it gone, paying for it."""
