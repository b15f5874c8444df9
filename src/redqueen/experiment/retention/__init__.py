"""What children keep of their parents: every operator against its controls, under the same retraining."""
