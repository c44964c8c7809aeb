"""The large map of a head: what its cells show, which rows and columns, and the sentences that go with it."""
