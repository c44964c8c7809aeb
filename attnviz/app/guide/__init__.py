"""What helps somebody who is new: the tour, and the words of the app."""
