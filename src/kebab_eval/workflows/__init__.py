"""One use case a file: each wires the edges (backends, tracking, reports) to the core."""
