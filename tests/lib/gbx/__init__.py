"""What the end-to-end tests and the benchmarks share: a client, a platform to test, leak checks."""
