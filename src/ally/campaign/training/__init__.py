"""Training of a campaign: when it is due, in which process, on which data, and what is recorded."""
