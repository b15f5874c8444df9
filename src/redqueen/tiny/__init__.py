"""The embedded base model: its corpus generator, its training recipe, its weights and its model card."""
