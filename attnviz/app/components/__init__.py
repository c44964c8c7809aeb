"""Parts that live in the browser, a folder each: its .py, .js and .css together."""
