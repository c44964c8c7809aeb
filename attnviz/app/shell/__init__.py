"""What all pages share: session, address, caches, and the controls around a page. It knows no page by name."""
