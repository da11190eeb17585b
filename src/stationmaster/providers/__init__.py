"""Where machines come from: one file or folder per cloud, one small promise."""
