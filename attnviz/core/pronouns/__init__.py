"""What a pronoun looks at: the sentences, the candidates, the scores. NumPy only."""
