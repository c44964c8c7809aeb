"""From a name to a model, every weight accounted for."""
