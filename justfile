# Short names for what cargo and scripts/ do; `just` alone lists them.

_list:
    @just --list

# Run every gate, as CI does.
test:
    scripts/test

# Format all code.
fmt:
    cargo fmt --all

# Lint all code, warnings denied.
lint:
    cargo clippy --workspace --all-targets --locked -- -D warnings

# Run the benchmarks.
bench *ARGS:
    cargo bench --workspace --locked -- {{ ARGS }}

# Build the binary and run it, e.g. `just demo --help`.
demo *ARGS:
    cargo run --locked --quiet --bin gripper -- {{ ARGS }}

# Build the documentation of our own crates.
docs:
    cargo doc --workspace --no-deps --locked
