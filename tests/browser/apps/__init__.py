"""Pages with one component each, for the browser tests."""
