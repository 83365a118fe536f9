use proptest::prelude::{Just, Strategy, any, prop, prop_assert, prop_assert_eq, prop_oneof, proptest};
use rstest::rstest;
use serde_json::{Value, json};

use super::cells::{CellType, Edited, Mode, NotebookProblem, edit};

/// As Jupyter writes it: indented by one, sources as lines, ids.
const JUPYTER: &str = r##"{
 "cells": [
  {
   "cell_type": "markdown",
   "id": "intro",
   "metadata": {},
   "source": [
    "# Títle\n",
    "text"
   ]
  },
  {
   "cell_type": "code",
   "execution_count": 7,
   "id": "load-1",
   "metadata": {"tags": [ "a" ]},
   "outputs": [
    {"name": "stdout", "output_type": "stream", "text": ["1\n"]}
   ],
   "source": [
    "x = 1"
   ]
  }
 ],
 "metadata": {"language_info": {"name": "julia"}},
 "nbformat": 4,
 "nbformat_minor": 5
}
"##;

/// Everything on one line, sources as strings, escapes, no ids.
const COMPACT: &str = r#"{"nbformat":4,"nbformat_minor":2,"metadata":{},"cells":[{"cell_type":"code","source":"a = '\u00e9'\nb = '\/'\n","metadata":{},"execution_count":null,"outputs":[ ]}]}"#;

fn changed(notebook: &str, cell: Option<&str>, source: &str, kind: Option<CellType>, mode: Mode) -> Edited {
    edit(notebook.as_bytes(), cell, source, kind, mode).unwrap()
}

fn text(edited: &Edited) -> &str {
    std::str::from_utf8(&edited.bytes).unwrap()
}

#[rstest]
#[case::lines(JUPYTER, "intro", "# Títle\nmore\n", "    \"text\"\n", "    \"more\\n\"\n")]
#[case::shorter(JUPYTER, "0", "text", "    \"# Títle\\n\",\n", "")]
#[case::nothing_left(JUPYTER, "0", "", "[\n    \"# Títle\\n\",\n    \"text\"\n   ]", "[]")]
#[case::string_and_escapes(COMPACT, "cell-0", "a = '\u{e9}'\nb = '\u{1f600}'\n", r"\/", r"\ud83d\ude00")]
fn a_replaced_source_changes_nothing_else(
    #[case] notebook: &str,
    #[case] cell: &str,
    #[case] source: &str,
    #[case] old: &str,
    #[case] new: &str,
) {
    assert_eq!(
        text(&changed(notebook, Some(cell), source, None, Mode::Replace)),
        notebook.replacen(old, new, 1)
    );
}

#[test]
fn an_edited_code_cell_loses_its_results() {
    let edited = changed(JUPYTER, Some("load-1"), "y = \"2\"\nz", None, Mode::Replace);
    let expected = JUPYTER
        .replace("\"execution_count\": 7", "\"execution_count\": null")
        .replace(
            "[\n    {\"name\": \"stdout\", \"output_type\": \"stream\", \"text\": [\"1\\n\"]}\n   ]",
            "[]",
        )
        .replace("\"x = 1\"", "\"y = \\\"2\\\"\\n\",\n    \"z\"");
    assert_eq!(text(&edited), expected);
    let bytes = edited.bytes.clone();
    let report = Edited {
        bytes,
        cell_id: "load-1".into(),
        index: 1,
        cell_type: CellType::Code,
        language: "julia".into(),
        before_source: Some("x = 1".into()),
        cells: 2,
    };
    assert_eq!(edited, report);
}

#[test]
fn a_change_of_type_brings_the_members_it_demands() {
    let code = changed(JUPYTER, Some("intro"), "x", Some(CellType::Code), Mode::Replace);
    let head = "\"cell_type\": \"code\",\n   \"execution_count\": null,\n   \"id\": \"intro\",\n   \"metadata\": {},\n   \"outputs\": [],\n";
    assert!(text(&code).contains(head), "{}", text(&code));
    let raw = changed(COMPACT, Some("0"), "x", Some(CellType::Raw), Mode::Replace);
    let expected = r#"{"nbformat":4,"nbformat_minor":2,"metadata":{},"cells":[{"cell_type":"raw","source":"x","metadata":{}}]}"#;
    assert_eq!(text(&raw), expected);
}

#[rstest]
#[case::after_its_like(
    JUPYTER,
    Some("load-1"),
    None,
    "x\ny",
    ",\n  {\n   \"cell_type\": \"code\",\n   \"execution_count\": null,\n   \"id\": \"[id]\",\n   \"metadata\": {},\n   \"outputs\": [],\n   \"source\": [\n    \"x\\n\",\n    \"y\"\n   ]\n  }"
)]
#[case::first(
    JUPYTER,
    None,
    Some(CellType::Raw),
    "x",
    "{\n   \"cell_type\": \"raw\",\n   \"id\": \"[id]\",\n   \"metadata\": {},\n   \"source\": [\n    \"x\"\n   ]\n  },\n  "
)]
#[case::compact(
    COMPACT,
    Some("0"),
    Some(CellType::Markdown),
    "ü",
    r#",{"cell_type":"markdown","source":"\u00fc","metadata":{}}"#
)]
#[case::into_nothing(
    "{\r\n  \"cells\": [],\r\n  \"nbformat\": 4\r\n}",
    None,
    Some(CellType::Markdown),
    "x",
    "\r\n    {\r\n      \"cell_type\": \"markdown\",\r\n      \"metadata\": {},\r\n      \"source\": [\r\n        \"x\"\r\n      ]\r\n    }\r\n  "
)]
#[case::into_nothing_compact(
    "{\"nbformat\":4,\"cells\":[]}",
    None,
    None,
    "",
    r#"{"cell_type":"code","execution_count":null,"metadata":{},"outputs":[],"source":[]}"#
)]
fn a_new_cell_looks_like_its_neighbours_and_goes_without_a_trace(
    #[case] notebook: &str,
    #[case] after: Option<&str>,
    #[case] kind: Option<CellType>,
    #[case] source: &str,
    #[case] added: &str,
) {
    let edited = changed(notebook, after, source, kind, Mode::Insert);
    let added = added.replace("[id]", &edited.cell_id);
    assert!(text(&edited).contains(&added), "{}", text(&edited));
    assert_eq!(text(&edited).replacen(&added, "", 1), notebook);
    let gone = changed(text(&edited), Some(&edited.index.to_string()), "", None, Mode::Delete);
    assert_eq!(text(&gone), notebook);
}

#[rstest]
#[case::not_utf8(b"{\xff}", None, "not UTF-8 from byte 1 on")]
#[case::not_json(b"{\"cells\": [}", None, "not a JSON object (expected value at line 1 column 12)")]
#[case::not_an_object(b"[]", None, "not a JSON object")]
#[case::old(b"{\"nbformat\": 3, \"worksheets\": []}", None, "has nbformat 3, and only 4")]
#[case::no_version(b"{\"cells\": []}", None, "has nbformat missing")]
#[case::no_cells(b"{\"nbformat\": 4}", None, "there is no key `cells`")]
#[case::cells_are_none(b"{\"nbformat\": 4, \"cells\": {}}", None, "`cells` is not an array")]
#[case::no_cell(b"{\"nbformat\": 4, \"cells\": [1]}", None, "cell 0 is not an object")]
#[case::twice(
    b"{\"nbformat\": 4, \"cells\": [], \"cells\": []}",
    None,
    "the notebook has the key \"cells\" twice"
)]
#[case::twice_in_a_cell(
    b"{\"nbformat\":4,\"cells\":[{\"source\":[],\"source\":[]}]}",
    None,
    "cell 0 has the key"
)]
#[case::no_type(b"{\"nbformat\":4,\"cells\":[{\"source\":[]}]}", Some("0"), "the cell_type of cell 0")]
#[case::unnamed(JUPYTER.as_bytes(), None, "cell_id is missing")]
#[case::unknown(JUPYTER.as_bytes(), Some("laod"), "no cell \"laod\" among the 2 of the notebook: ids there are load-1, intro; an index from 0 to 1")]
#[case::past_the_end(COMPACT.as_bytes(), Some("1"), "use an index from cell-0 to cell-0")]
#[case::the_same(JUPYTER.as_bytes(), Some("load-1"), "nothing to change: cell load-1")]
#[case::ambiguous(
    br#"{"nbformat":4,"cells":[{"id":"a"},{"id":"a"}]}"#,
    Some("a"),
    "several cells have the id \"a\""
)]
fn what_cannot_be_edited_is_told(#[case] notebook: &[u8], #[case] cell: Option<&str>, #[case] message: &str) {
    let problem: NotebookProblem = edit(notebook, cell, "x = 1", None, Mode::Replace).unwrap_err();
    assert!(problem.to_string().contains(message), "{problem}");
}

#[test]
fn an_id_wins_over_an_index_and_depth_does_no_harm() {
    let deep = format!("{}{}", "[".repeat(200_000), "]".repeat(200_000));
    let notebook = format!(
        "\u{feff}{{\"nbformat\":4,\"metadata\":{deep},\"cells\":[{{\"cell_type\":\"raw\",\"source\":\"\"}},\
         {{\"cell_type\":\"raw\",\"id\":\"0\",\"source\":\"\"}}]}}"
    );
    let edited = changed(&notebook, Some("0"), "x", None, Mode::Replace);
    assert_eq!(edited.index, 1);
    assert_eq!(
        text(&edited),
        notebook.replace("\"id\":\"0\",\"source\":\"\"", "\"id\":\"0\",\"source\":\"x\"")
    );
}

/// A cell as a program other than ours would write it, with everything that could be lost.
fn any_cell() -> impl Strategy<Value = Value> {
    let source = prop_oneof![
        "[a-c\u{e9}\\\\\"\n]{0,12}".prop_map(Value::from),
        prop::collection::vec("[a-c\u{e9}]{0,4}\n", 0..4).prop_map(Value::from),
    ];
    (source, 0..3, "[a-z\"\u{e9}\n]{0,6}").prop_map(|(source, kind, noise)| match kind {
        0 => json!({"source": source, "cell_type": "code", "metadata": {"z": noise, "a": [{}]},
            "outputs": [{"text": noise}], "execution_count": 3}),
        1 => json!({"cell_type": "markdown", "attachments": {"x": noise}, "metadata": {}, "source": source}),
        _ => json!({"cell_type": "raw", "metadata": {noise: [[]]}, "source": source}),
    })
}

fn any_notebook() -> impl Strategy<Value = String> {
    (prop::collection::vec(any_cell(), 0..5), any::<bool>(), any::<[bool; 3]>()).prop_map(
        |(mut cells, ids, [pretty, escaped, crlf])| {
            for (at, cell) in cells.iter_mut().enumerate().filter(|_| ids) {
                cell["id"] = format!("id_{at}").into();
            }
            let minor = if ids { 5 } else { 4 };
            let value = json!({"metadata": {}, "cells": cells, "nbformat": 4, "nbformat_minor": minor});
            let mut text =
                if pretty { serde_json::to_string_pretty(&value).unwrap() + "\n" } else { value.to_string() };
            if escaped {
                text = text.replace('\u{e9}', "\\u00e9");
            }
            if crlf { text.replace('\n', "\r\n") } else { text }
        },
    )
}

/// The cells as they are written, and the value of everything else with its order of keys.
fn apart(notebook: &str) -> (Vec<String>, String) {
    let mut value: Value = serde_json::from_str(notebook).unwrap();
    #[derive(serde::Deserialize)]
    struct Cells<'a> {
        #[serde(borrow)]
        cells: Vec<&'a serde_json::value::RawValue>,
    }
    let cells: Cells<'_> = serde_json::from_str(notebook).unwrap();
    value["cells"] = Value::Null;
    (cells.cells.iter().map(|cell| cell.get().to_owned()).collect(), value.to_string())
}

proptest! {
    #[test]
    fn an_edit_touches_its_cell_alone(
        notebook in any_notebook(),
        at in 0..6_usize,
        source in "[a-d\u{e9}\u{1f600}\\\\\"\n\r\t]{0,16}",
        kind in prop_oneof![Just(None), Just(Some(CellType::Code)), Just(Some(CellType::Markdown))],
    ) {
        let (before, rest) = apart(&notebook);
        let cell = (at > 0 && !before.is_empty()).then(|| (at - 1) % before.len().max(1));
        let name = cell.map(|cell| format!("cell-{cell}"));
        let inserted = changed(&notebook, name.as_deref(), &source, kind, Mode::Insert);
        let (mut after, rest_after) = apart(text(&inserted));
        let new: Value = serde_json::from_str(&after.remove(inserted.index)).unwrap();
        prop_assert_eq!(&after, &before);
        prop_assert_eq!(&rest_after, &rest);
        prop_assert_eq!(new.get("id").is_some(), rest.contains("minor\":5"), "{}", new);
        let gone = changed(text(&inserted), Some(&inserted.index.to_string()), "", None, Mode::Delete);
        prop_assert_eq!(text(&gone), &notebook);

        let replaced = changed(text(&inserted), Some(&inserted.cell_id), &format!("{source}+"), None, Mode::Replace);
        let back = changed(text(&replaced), Some(&inserted.cell_id), &source, None, Mode::Replace);
        prop_assert_eq!(text(&back), text(&inserted));
        prop_assert_eq!(replaced.before_source.as_deref(), Some(source.as_str()));

        let Some(cell) = cell else { return Ok(()) };
        let edited = edit(notebook.as_bytes(), name.as_deref(), &source, kind, Mode::Replace);
        let Ok(edited) = edited else { return Ok(()) };
        let (after, rest_after) = apart(text(&edited));
        prop_assert_eq!(&rest_after, &rest);
        for other in (0..before.len()).filter(|other| *other != cell) {
            prop_assert_eq!(&after[other], &before[other]);
        }
        let new: Value = serde_json::from_str(&after[cell]).unwrap();
        let old: Value = serde_json::from_str(&before[cell]).unwrap();
        prop_assert_eq!(new["source"].is_array(), old["source"].is_array());
        prop_assert_eq!(&new["metadata"], &old["metadata"]);
        let again = edit(&edited.bytes, name.as_deref(), &source, kind, Mode::Replace);
        prop_assert!(again.as_ref().is_err_and(|problem| problem.to_string().starts_with("nothing")), "{:?}", again);
    }
}
