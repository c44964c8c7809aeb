"""Pronouns: question, picture, pairs of sentences, scoreboard, and whether a head matters."""
