"""Training of a campaign: when it is due, in which process, on what, and what is recorded of it."""
