"""Every number on the screen is made here, with NumPy alone."""
