//! Arguments of prompts: what a prompt takes, what a person wrote, and where it goes in the text.

use serde_json::Value;

/// Longest name of an argument, and most arguments of a prompt.
const LONGEST_NAME: usize = 64;
const MOST: usize = 32;

/// An argument of a prompt.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Argument {
    /// What it is called.
    pub name: String,
    /// What it is.
    pub description: Option<String>,
    /// Nothing works without it.
    pub required: bool,
}

impl Argument {
    pub(super) fn new(name: &str) -> Self {
        Self { name: name.to_owned(), ..Self::default() }
    }

    /// As a field of a file says it: names in a text or a list, or objects with `name`, `description` and `required`.
    pub(super) fn read(value: &Value) -> Result<Vec<Self>, String> {
        let one = |value: &Value| -> Option<Self> {
            if let Some(name) = value.as_str() {
                return Some(Self::new(name.trim()));
            }
            Some(Self {
                name: value.get("name")?.as_str()?.trim().to_owned(),
                description: value.get("description").and_then(Value::as_str).map(str::to_owned),
                required: value.get("required").and_then(Value::as_bool).unwrap_or_default(),
            })
        };
        let read: Option<Vec<Self>> = match value {
            Value::String(text) => {
                let names = text.split(|c: char| c.is_whitespace() || c == ',');
                Some(names.filter(|name| !name.is_empty()).map(Self::new).collect())
            }
            Value::Array(items) => items.iter().map(one).collect(),
            _ => None,
        };
        let read = read.ok_or("arguments must be names, or a list of objects with a name")?;
        match distinct(&read) {
            true => Ok(read),
            false => {
                Err(format!("arguments must be up to {MOST} different names of letters, digits, _ and -"))
            }
        }
    }

    /// As a hint says it, if all of it is names in brackets: `<file> [branch]`.
    pub(super) fn of_hint(hint: &str) -> Option<Vec<Self>> {
        let mut read = Vec::new();
        let mut rest = hint.trim();
        while let Some(first) = rest.chars().next() {
            let closing = match first {
                '[' => ']',
                '<' => '>',
                _ => return None,
            };
            let (name, behind) = rest[1..].split_once(closing)?;
            read.push(Self { required: first == '<', ..Self::new(name.trim()) });
            rest = behind.trim_start();
        }
        (!read.is_empty() && distinct(&read)).then_some(read)
    }
}

fn distinct(arguments: &[Argument]) -> bool {
    let plain = |name: &str| {
        !name.is_empty()
            && name.len() <= LONGEST_NAME
            && name.chars().all(is_part_of_name)
            && name != "ARGUMENTS"
    };
    let once = |(at, argument): (usize, &Argument)| {
        plain(&argument.name) && arguments[..at].iter().all(|before| before.name != argument.name)
    };
    arguments.len() <= MOST && arguments.iter().enumerate().all(once)
}

fn is_part_of_name(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '_' | '-')
}

/// A word, and where it begins.
pub(super) type Word = (usize, String);

/// The words of a line. Quotes around a word, or around what follows a `=`, hold blanks together; any other quote,
/// such as an apostrophe, is a character like others.
pub(super) fn words(line: &str) -> Vec<Word> {
    let mut words: Vec<Word> = Vec::new();
    let mut open = false;
    let mut at = 0;
    while let Some(c) = line[at..].chars().next() {
        let begin = at;
        at += c.len_utf8();
        if c.is_whitespace() {
            open = false;
            continue;
        }
        if !open {
            words.push((begin, String::new()));
            open = true;
        }
        let Some((_, word)) = words.last_mut() else { continue };
        let opens = matches!(c, '"' | '\'') && (word.is_empty() || word.ends_with('='));
        let closes = |length: &usize| line[at + length + 1..].chars().next().is_none_or(char::is_whitespace);
        match line[at..].find(c).filter(|_| opens).filter(closes) {
            Some(length) => {
                word.push_str(&line[at..at + length]);
                at += length + 1;
            }
            None => word.push(c),
        }
    }
    words
}

fn by_name<'w>(declared: &[Argument], word: &'w str) -> Option<(&'w str, &'w str)> {
    word.split_once('=').filter(|(name, _)| declared.iter().any(|argument| argument.name == *name))
}

/// Whether a person gives arguments by name: the first word says so.
pub(super) fn is_by_name(declared: &[Argument], words: &[Word]) -> bool {
    words.first().is_some_and(|(_, word)| by_name(declared, word).is_some())
}

/// What a person wrote, as arguments: `name=value …`, or words in the order of the arguments, of which the last takes
/// what is left.
pub fn assign(declared: &[Argument], line: &str) -> Result<Vec<(String, String)>, String> {
    let line = line.trim();
    let words = words(line);
    let mut assigned: Vec<(String, String)> = Vec::new();
    if is_by_name(declared, &words) {
        for (_, word) in &words {
            let (name, value) = by_name(declared, word).ok_or_else(|| {
                let word: String = word.chars().take(64).collect();
                format!(
                    "has no argument for {word:?} (name=value, with quotes around values that hold blanks)"
                )
            })?;
            if assigned.iter().any(|(known, _)| known == name) {
                return Err(format!("has {name} twice"));
            }
            assigned.push((name.to_owned(), value.to_owned()));
        }
    } else if let Some(last) = declared.len().checked_sub(1) {
        for (at, (argument, (begin, word))) in declared.iter().zip(&words).enumerate() {
            let rest = at == last && words.len() > declared.len();
            let value = if rest { &line[*begin..] } else { word };
            assigned.push((argument.name.clone(), value.to_owned()));
        }
    } else if !words.is_empty() {
        return Err("takes no arguments".to_owned());
    }
    let given = |argument: &&Argument| assigned.iter().any(|(name, _)| *name == argument.name);
    let missing = declared.iter().filter(|argument| argument.required && !given(argument));
    let missing: Vec<&str> = missing.map(|argument| argument.name.as_str()).collect();
    if missing.is_empty() { Ok(assigned) } else { Err(format!("needs {}", missing.join(", "))) }
}

/// What goes into a text.
pub(super) struct Given {
    pub(super) whole: String,
    pub(super) words: Vec<String>,
    pub(super) named: Vec<(String, String)>,
}

impl Given {
    pub(super) fn line(line: &str) -> Self {
        let words = words(line).into_iter().map(|(_, word)| word).collect();
        Self { whole: line.to_owned(), words, named: Vec::new() }
    }

    pub(super) fn named(named: Vec<(String, String)>) -> Self {
        let words: Vec<String> = named.iter().map(|(_, value)| value.clone()).collect();
        let said: Vec<&str> = words.iter().map(String::as_str).filter(|word| !word.is_empty()).collect();
        Self { whole: said.join(" "), words, named }
    }

    /// The text with everything in its place, unless it gets longer than `most`. What was filled in is not looked at
    /// again. What nothing in the text asks for stands at its end.
    pub(super) fn fill(&self, text: &str, most: usize) -> Option<String> {
        let (mut filled, mut rest, mut asked) = (String::new(), text, false);
        while let Some(at) = rest.find('$') {
            let (before, behind) = (&rest[..at], &rest[at + 1..]);
            let Some((length, value)) = self.at(behind) else {
                filled.push_str(&rest[..=at]);
                rest = behind;
                continue;
            };
            match before.strip_suffix('\\') {
                Some(before) => filled.extend([before, "$", &behind[..length]]),
                None => {
                    filled.extend([before, value]);
                    asked = true;
                }
            }
            rest = &behind[length..];
            if filled.len() > most {
                return None;
            }
        }
        filled.push_str(rest);
        if !asked && !self.whole.trim().is_empty() {
            filled.extend(["\n\nArguments: ", &self.whole]);
        }
        (filled.len() <= most).then_some(filled)
    }

    /// What stands for the beginning of `text`, which follows a `$`, and how much of it that is.
    fn at(&self, text: &str) -> Option<(usize, &str)> {
        let ends = |length: usize| {
            text[length..].chars().next().is_none_or(|next| !next.is_alphanumeric() && next != '_')
        };
        let is = |name: &str| text.starts_with(name) && ends(name.len());
        if is("ARGUMENTS") {
            return Some(("ARGUMENTS".len(), &self.whole));
        }
        let named = self.named.iter().filter(|(name, _)| is(name)).max_by_key(|(name, _)| name.len());
        if let Some((name, value)) = named {
            return Some((name.len(), value));
        }
        let digits = text.chars().take_while(char::is_ascii_digit).count();
        // One digit: `$100` is a price.
        let number = text.chars().next()?.to_digit(10).filter(|number| digits == 1 && *number > 0)?;
        let word = usize::try_from(number).ok().and_then(|number| self.words.get(number - 1));
        Some((1, word.map(String::as_str).unwrap_or_default()))
    }
}
