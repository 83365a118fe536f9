//! Markdown that begins with a few fields in YAML, as people write it.

use std::{fs, io::Read, path::Path};

use serde_json::{Map, Value};

/// Larger files are neither descriptions of agents nor prompts.
const MOST_BYTES: u64 = 256 * 1024;

/// The text of a file, unless it is too large.
pub fn text(file: &Path) -> Result<String, String> {
    let failed = |error: std::io::Error| format!("it cannot be read: {error}");
    let mut text = String::new();
    let opened = fs::File::open(file).map_err(failed)?;
    opened.take(MOST_BYTES + 1).read_to_string(&mut text).map_err(failed)?;
    if text.len() as u64 > MOST_BYTES {
        return Err(format!("it is larger than {} KiB", MOST_BYTES / 1024));
    }
    Ok(text)
}

/// The fields, and what follows them.
pub fn split(text: &str) -> Result<(Map<String, Value>, String), String> {
    let text = plain(text);
    if !begins(&text) {
        return Err("it does not begin with a line --- and fields such as name and description".to_owned());
    }
    let (yaml, body) = cut(&text).ok_or("the fields at its beginning have no end: a line --- is missing")?;
    Ok((fields(yaml)?, body.trim().to_owned()))
}

/// The fields if there are any, and what follows them. Without fields everything is text; fields that cannot be read
/// count for nothing, and why is told.
pub fn split_if_any(text: &str) -> (Map<String, Value>, String, Option<String>) {
    let text = plain(text);
    let Some((yaml, body)) = cut(&text).filter(|_| begins(&text)) else {
        return (Map::new(), text.trim().to_owned(), None);
    };
    let (fields, wrong) = match fields(yaml) {
        Ok(fields) => (fields, None),
        Err(why) => (Map::new(), Some(why)),
    };
    (fields, body.trim().to_owned(), wrong)
}

fn plain(text: &str) -> String {
    text.trim_start_matches('\u{feff}').replace("\r\n", "\n")
}

fn begins(text: &str) -> bool {
    text.lines().next().is_some_and(|line| line.trim_end() == "---")
}

/// What stands between the first line and the next `---`, and what follows that.
fn cut(text: &str) -> Option<(&str, &str)> {
    let begun = text.find('\n')? + 1;
    let mut ended = begun;
    for line in text[begun..].split_inclusive('\n') {
        let from = ended;
        ended += line.len();
        if line.trim_end() == "---" {
            return Some((&text[begun..from], &text[ended..]));
        }
    }
    None
}

fn fields(yaml: &str) -> Result<Map<String, Value>, String> {
    let parse = |yaml: &str| serde_saphyr::from_str::<Option<Map<String, Value>>>(yaml);
    if let Ok(fields) = parse(yaml) {
        return Ok(fields.unwrap_or_default());
    }
    // People write `description: Use this: always`, which is no YAML. A line that is none is taken as plain text.
    let mended: Vec<String> = yaml.lines().map(|line| mend(line, |line| parse(line).is_ok())).collect();
    let failed = |error: serde_saphyr::Error| {
        let words = error.to_string();
        format!("its fields are not YAML: {}", words.lines().next().unwrap_or_default())
    };
    Ok(parse(&mended.join("\n")).map_err(failed)?.unwrap_or_default())
}

/// The line, its value in quotes if it is a field that means nothing without them.
fn mend(line: &str, is_yaml: impl Fn(&str) -> bool) -> String {
    let field = line.split_once(':').filter(|(name, _)| {
        !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-'))
    });
    match field {
        Some((name, value)) if !goes_on(value.trim_start()) && !is_yaml(line) => {
            format!("{name}: {}", Value::from(value.trim()))
        }
        _ => line.to_owned(),
    }
}

/// Whether a value is the beginning of something that goes on in the next lines. Brackets that are closed again in
/// the same line, such as `[one] [two]`, do not.
fn goes_on(value: &str) -> bool {
    let count = |of: [char; 2]| value.matches(of).count();
    match value.chars().next() {
        Some('|' | '>') => true,
        Some('[' | '{') => count(['[', '{']) != count([']', '}']),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::{Value, json};

    use super::{split, split_if_any};

    #[rstest]
    #[case::plain("---\nname: a\ndescription: b\n---\nbody\n", json!({ "name": "a", "description": "b" }))]
    #[case::bom_and_crlf(
        "\u{feff}---\r\nname: a\r\ndescription: b\r\n---\r\nbody\r\n",
        json!({ "name": "a", "description": "b" })
    )]
    #[case::colons(
        "---\nname: a\ndescription: Use this: always. user: \"hi\"\ntools: [A, B]\n---\nbody",
        json!({ "name": "a", "description": "Use this: always. user: \"hi\"", "tools": ["A", "B"] })
    )]
    #[case::text_over_lines(
        "---\ndescription: |\n  one: two\n  three\ntools:\n  - A\n  - B\n---\nbody",
        json!({ "description": "one: two\nthree\n", "tools": ["A", "B"] })
    )]
    #[case::at_sign("---\ndescription: @you, %here\n---\nbody", json!({ "description": "@you, %here" }))]
    #[case::brackets("---\nhint: [one] [two]\nmore: {a} b\n---\nbody", json!({ "hint": "[one] [two]", "more": "{a} b" }))]
    #[case::list_over_lines("---\na: x: y\ntools: [A,\n  B]\n---\nbody", json!({ "a": "x: y", "tools": ["A", "B"] }))]
    #[case::nothing("---\n---\nbody", json!({}))]
    fn fields_are_read_as_people_write_them(#[case] text: &str, #[case] expected: Value) {
        let (fields, body) = split(text).unwrap();
        assert_eq!((Value::Object(fields), body.as_str()), (expected, "body"));
        assert_eq!(split_if_any(text).1, "body");
    }

    #[rstest]
    #[case::none("You do things.", "does not begin with", "You do things.")]
    #[case::no_end("---\nname: a\n", "have no end", "---\nname: a")]
    #[case::no_yaml("---\n- a\n  b: [\n---\nbody", "not YAML", "body")]
    fn what_has_no_fields_says_so(#[case] text: &str, #[case] words: &str, #[case] body: &str) {
        let why = split(text).unwrap_err();
        assert!(why.contains(words), "{why}");
        let (fields, rest, wrong) = split_if_any(text);
        assert_eq!((fields.len(), rest.as_str(), wrong.is_some()), (0, body, why.contains("YAML")));
    }
}
