//! What does this command do?
//!
//! Pure analysis of command text: no files, no processes, no policy. The crate starts with the
//! first gate of that analysis, the characters a reader cannot see. A command that shows one
//! thing to a person and another to the shell must never get as far as being judged.
//!
//! ```
//! use gripper_shell::hidden;
//!
//! let found = hidden::find("ls \u{202e}fdp.txt");
//! assert_eq!(found[0].name(), "right-to-left override");
//! assert_eq!(hidden::visible("ls \u{202e}fdp.txt"), r"ls \u{202e}fdp.txt");
//! ```

pub mod hidden;
