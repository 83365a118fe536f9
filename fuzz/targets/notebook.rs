//! Any bytes as a notebook: no panic, an edit leaves JSON, and a cell inserted and deleted leaves no trace.
#![no_main]

use gripper_tools::notebook_edit::cells::{CellType, Mode, edit};
use libfuzzer_sys::fuzz_target;
use serde_json::Value;

// The first line is the source; the rest is the notebook.
fuzz_target!(|data: &[u8]| {
    let cut = data.iter().position(|byte| *byte == b'\n').unwrap_or(0);
    let (source, notebook) = data.split_at(cut);
    let source = String::from_utf8_lossy(source).replace("\\n", "\n");
    let value = |bytes: &[u8]| {
        let text = std::str::from_utf8(bytes).expect("an edited notebook is text");
        serde_json::from_str::<Value>(text.trim_start_matches('\u{feff}'))
    };
    let _ = edit(notebook, Some("0"), &source, None, Mode::Delete);
    for kind in [CellType::Code, CellType::Markdown] {
        if let Ok(edited) = edit(notebook, Some("0"), &source, Some(kind), Mode::Replace) {
            // Numbers too large and nesting too deep for a value are no fault of the edit.
            assert!(value(notebook).is_err() || value(&edited.bytes).is_ok());
        }
        for after in [None, Some("0")] {
            let Ok(edited) = edit(notebook, after, &source, Some(kind), Mode::Insert) else { continue };
            match edit(&edited.bytes, Some(&edited.cell_id), "", None, Mode::Delete) {
                Ok(gone) if gone.index == edited.index => {
                    assert!(edited.cells == 1 || gone.bytes == notebook, "a trace is left");
                    assert_eq!(gone.before_source.as_deref(), Some(source.as_str()));
                }
                // Another cell may have for its id what this one is called for want of one.
                other => assert!(edited.cell_id.starts_with("cell-"), "{other:?}"),
            }
        }
    }
});
