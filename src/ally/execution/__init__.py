"""Where the work runs: engines, memory and devices."""
