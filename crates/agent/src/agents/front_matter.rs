//! Markdown that begins with a few fields in YAML.

use serde_json::{Map, Value};

/// The fields, and what follows them.
pub(super) fn split(text: &str) -> Result<(Map<String, Value>, String), String> {
    let text = text.trim_start_matches('\u{feff}').replace("\r\n", "\n");
    let mut lines = text.split_inclusive('\n');
    if lines.next().is_none_or(|line| line.trim_end() != "---") {
        return Err("it does not begin with a line --- and fields such as name and description".to_owned());
    }
    let begun = text.find('\n').map_or(text.len(), |end| end + 1);
    let mut ended = begun;
    for line in lines {
        let from = ended;
        ended += line.len();
        if line.trim_end() == "---" {
            return Ok((fields(&text[begun..from])?, text[ended..].trim().to_owned()));
        }
    }
    Err("the fields at its beginning have no end: a line --- is missing".to_owned())
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
        // Brackets and bars begin what goes on in the next lines.
        Some((name, value)) if !value.trim_start().starts_with(['[', '{', '|', '>']) && !is_yaml(line) => {
            format!("{name}: {}", Value::from(value.trim()))
        }
        _ => line.to_owned(),
    }
}
