//! The text of files as bytes: telling text from binary, decoding it, changing it without touching the rest.
//!
//! Everything here works on bytes in memory; opening, checking and writing files is the business of others.
//!
//! ```
//! use gripper_tools::text::View;
//!
//! let view = View::of(b"one\r\ntwo\r\n").unwrap();
//! assert_eq!(view.text(), "one\ntwo\n");
//! assert_eq!(view.splice(&[(3..3, "\nand a half")]).unwrap(), b"one\r\nand a half\r\ntwo\r\n");
//! ```
//!
//! Tools that edit say what they look for instead of where it is:
//!
//! ```
//! use gripper_tools::text::{Reason, Replacement, replace, rewrite};
//!
//! let edit = Replacement { old: "one\ntwo", new: "one\n2", all: false };
//! let replaced = replace(b"one\r\ntwo\r\n", &[edit]).unwrap();
//! assert_eq!(replaced.bytes, b"one\r\n2\r\n");
//! assert_eq!(replaced.lines, 2..3);
//! assert_eq!(replaced.hunks[0].lines, [" one", "-two", "+2"]);
//!
//! let missing = replace(b"two one\n", &[edit]).unwrap_err();
//! assert!(matches!(missing.reason, Reason::NotFound(_)));
//! assert_eq!(rewrite(b"a\r\nb\r\n", "a\nc\n").unwrap(), b"a\r\nc\r\n");
//! ```

mod change;
pub(crate) mod decode;
mod diff;
mod encode;
mod fold;
mod hint;
pub(crate) mod sniff;
mod view;

pub use change::{NoMatch, Reason, Replaced, Replacement, replace, rewrite};
pub use diff::{Hunk, hunks, hunks_of_bytes, shown_difference, unified, unified_bytes};
pub use encode::CannotEncode;
pub use view::{CannotSplice, NotText, View};
