"""Where the work runs: this machine's memory and devices."""
