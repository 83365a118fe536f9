//! Servers of others: configured, started in the background, their tools in the pool like any other.
