//! What is known of a word before it runs: text with holes.

use serde::Serialize;

use crate::span::Span;

/// Why a piece of text is not known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Origin {
    /// A variable nothing in the text assigns.
    Environment,
    /// A variable that the text assigns on some ways only, or in part: what the environment says may be left.
    Inherited,
    /// The elements of an array, in brackets behind a declaration.
    Elements,
    /// The output of a command.
    Output,
    /// Read from input or from a list of files.
    Data,
    /// Computed in a way that is not followed.
    Computed,
}

/// A stretch of text.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Stretch {
    /// Exactly this.
    Known(String),
    /// A number or an id: one word without blanks, slashes or a letter behind a leading dash.
    Plain,
    /// Digits, with a minus sign at most.
    Number,
    /// What a glob pattern matches; never empty, never with a slash.
    Glob(String),
    /// Anything at all.
    Unknown(Origin),
}

/// Longer values are not followed.
const LONGEST_TEXT: usize = 16 * 1024;
/// Nor are values in more pieces.
const MOST_STRETCHES: usize = 256;

/// Text with holes.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct Text {
    stretches: Vec<Stretch>,
}

impl Text {
    /// Exactly `text`.
    pub fn known(text: impl Into<String>) -> Self {
        let mut known = Self::default();
        known.push_str(&text.into());
        known
    }

    /// Nothing is known of it.
    pub fn unknown(origin: Origin) -> Self {
        Self { stretches: vec![Stretch::Unknown(origin)] }
    }

    /// Some number or id.
    pub fn plain() -> Self {
        Self { stretches: vec![Stretch::Plain] }
    }

    /// Some whole number.
    pub fn number() -> Self {
        Self { stretches: vec![Stretch::Number] }
    }

    /// The stretches in order; neighbouring known ones are joined.
    pub fn stretches(&self) -> &[Stretch] {
        &self.stretches
    }

    /// Adds known text.
    pub fn push_str(&mut self, text: &str) {
        if text.is_empty() || self.is_full(text.len()) {
            return;
        }
        if let Some(Stretch::Known(last)) = self.stretches.last_mut() {
            last.push_str(text);
        } else {
            self.stretches.push(Stretch::Known(text.to_owned()));
        }
    }

    /// Adds a stretch.
    pub fn push(&mut self, stretch: Stretch) {
        match stretch {
            Stretch::Known(text) => self.push_str(&text),
            other if !self.is_full(0) => self.stretches.push(other),
            _ => {}
        }
    }

    /// How much of it there is: the bytes that are known, and one for every hole.
    pub(crate) fn len(&self) -> usize {
        let length = |stretch: &Stretch| match stretch {
            Stretch::Known(text) => text.len(),
            _ => 1,
        };
        self.stretches.iter().map(length).sum()
    }

    /// Whether there is no room for more: values that double must not fill the memory. A full
    /// text is not known any more.
    fn is_full(&mut self, more: usize) -> bool {
        if self.len() + more <= LONGEST_TEXT && self.stretches.len() < MOST_STRETCHES {
            return false;
        }
        self.stretches = vec![Stretch::Unknown(Origin::Computed)];
        true
    }

    /// Adds all of `other`.
    pub fn append(&mut self, other: &Self) {
        for stretch in &other.stretches {
            self.push(stretch.clone());
        }
    }

    /// The whole text, if it is known.
    pub fn literal(&self) -> Option<&str> {
        match self.stretches.as_slice() {
            [] => Some(""),
            [Stretch::Known(text)] => Some(text),
            _ => None,
        }
    }

    /// The known beginning.
    pub fn prefix(&self) -> &str {
        match self.stretches.first() {
            Some(Stretch::Known(text)) => text,
            _ => "",
        }
    }

    /// The text without its first `bytes`, which must be known.
    pub fn without_prefix(&self, bytes: usize) -> Self {
        let mut rest = Self::default();
        for (at, stretch) in self.stretches.iter().enumerate() {
            match stretch {
                Stretch::Known(text) if at == 0 => rest.push_str(text.get(bytes..).unwrap_or_default()),
                other => rest.push(other.clone()),
            }
        }
        rest
    }

    /// Whether a program could take it for an option.
    pub fn may_be_option(&self) -> bool {
        match self.stretches.first() {
            None => false,
            Some(Stretch::Known(text)) => {
                text.starts_with('-') && (text.len() > 1 || self.stretches.len() > 1)
            }
            Some(Stretch::Plain | Stretch::Number) => false,
            Some(Stretch::Glob(pattern)) => pattern.starts_with(['*', '?', '[']),
            Some(Stretch::Unknown(_)) => true,
        }
    }

    /// Whether it could turn out to be this text.
    pub(crate) fn may_be(&self, text: &str) -> bool {
        let ends = match self.stretches.last() {
            Some(Stretch::Known(end)) if self.stretches.len() > 1 => text.ends_with(end.as_str()),
            _ => true,
        };
        let plain = |stretch: &Stretch| matches!(stretch, Stretch::Plain | Stretch::Number);
        match self.literal() {
            Some(literal) => literal == text,
            None => text.starts_with(self.prefix()) && ends && !self.stretches.iter().all(plain),
        }
    }

    /// The first origin of something unknown in it, patterns and numbers not counted.
    pub fn origin(&self) -> Option<Origin> {
        self.stretches.iter().find_map(|stretch| match stretch {
            Stretch::Unknown(origin) => Some(*origin),
            _ => None,
        })
    }

    /// Whether a pattern stands in it.
    pub fn has_glob(&self) -> bool {
        self.stretches.iter().any(|stretch| matches!(stretch, Stretch::Glob(_)))
    }

    /// As shown to people: `…` for what is not known.
    pub fn shown(&self) -> String {
        let mut shown = String::new();
        for stretch in &self.stretches {
            match stretch {
                Stretch::Known(text) | Stretch::Glob(text) => shown.push_str(text),
                Stretch::Plain | Stretch::Number => shown.push('N'),
                Stretch::Unknown(_) => shown.push('…'),
            }
        }
        shown
    }
}

/// One argument of a command, or a run of arguments of unknown length.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Argument {
    /// What is known of it.
    pub text: Text,
    /// Stands for any number of arguments, none included.
    pub many: bool,
    /// Stands for the names that a pattern matches, not for one of them: the pattern was not quoted.
    pub pattern: bool,
    /// Its spelling hides what it says: split quotes, needless escapes, an expansion.
    pub disguised: bool,
    /// Where it was written.
    pub span: Span,
}

impl Argument {
    /// Exactly `text`.
    pub fn known(text: &str, span: Span) -> Self {
        Self { text: Text::known(text), many: false, pattern: false, disguised: false, span }
    }

    /// Any number of unknown arguments.
    pub fn any(origin: Origin, span: Span) -> Self {
        Self { text: Text::unknown(origin), many: true, pattern: false, disguised: false, span }
    }

    /// The whole argument, if it is known and exactly one.
    pub fn literal(&self) -> Option<&str> {
        if self.many { None } else { self.text.literal() }
    }

    /// Whether it is exactly one argument: a pattern may match several files.
    pub(crate) fn is_one(&self) -> bool {
        !self.many && !self.pattern
    }

    /// Whether it is a word that ends like the name of a file, as no operator does, and no option but for its value.
    pub(crate) fn has_file_end(&self) -> bool {
        !self.many && matches!(self.text.stretches().last(), Some(Stretch::Known(text)) if text.contains('.'))
    }

    /// As shown to people.
    pub fn shown(&self) -> String {
        let mut shown = self.text.shown();
        if self.many {
            shown.push('…');
        }
        shown
    }

    /// Whether a run of `arguments` could be `logged`, literal by literal.
    pub fn matches(arguments: &[Self], logged: &[String]) -> bool {
        let Some((first, rest)) = arguments.split_first() else { return logged.is_empty() };
        if first.many {
            return (0..=logged.len())
                .any(|taken| Self::matches(rest, logged.get(taken..).unwrap_or_default()));
        }
        let Some((word, others)) = logged.split_first() else { return false };
        let fits = match first.text.literal() {
            Some(text) => text == word,
            None => word.starts_with(first.text.prefix()),
        };
        fits && Self::matches(rest, others)
    }
}
