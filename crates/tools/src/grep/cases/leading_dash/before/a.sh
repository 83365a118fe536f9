run --verbose
