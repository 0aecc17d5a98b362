"""Training under any objective, and the trained model's view of the pool."""
