//! The repository keeps its own house rules: see `gripper_testkit::tidy`.
#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a failed expectation is how tests fail"
)]

use std::path::Path;

use gripper_testkit::tidy;

#[test]
fn the_repository_is_tidy() -> anyhow::Result<()> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize()?;
    let violations = tidy::check(&root)?;
    assert!(violations.is_empty(), "{}", tidy::report(&violations));
    Ok(())
}
