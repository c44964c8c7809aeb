"""Talk: scenes worked out beforehand, and the player that steps through them."""
