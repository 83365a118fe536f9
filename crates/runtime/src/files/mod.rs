//! The files that calls work on: opened as judged, replaced whole or not at all.

mod open;
mod similar;

pub use open::{OpenFailure, open_regular, open_without_links};
