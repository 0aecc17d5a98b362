"""Training under any objective, and what a trained network says about the pool."""
