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

pub(crate) mod decode;
mod encode;
pub(crate) mod sniff;
mod view;

pub use encode::CannotEncode;
pub use view::{CannotSplice, NotText, View};
