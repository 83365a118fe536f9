//! A word on its way to arguments: joining, splitting, patterns.

use super::{Chunk, spelling::is_disguised};
use crate::{
    span::Span,
    syntax::tree::{PieceKind, Word},
    value::{Argument, Origin, Stretch, Text},
};

/// The arguments a word has become so far.
#[derive(Debug, Clone, Default)]
pub(super) struct Fields {
    done: Vec<(Text, bool)>,
    current: Option<Text>,
    /// An unknown number of arguments stands in the word: what follows joins it.
    absorbed: bool,
}

impl Fields {
    pub(super) fn add(&mut self, chunk: &Chunk, brackets: bool) {
        if self.absorbed {
            return;
        }
        match chunk {
            Chunk::Bare(text) => push_pattern(self.current.get_or_insert_default(), text, brackets),
            Chunk::Quoted(text) => self.current.get_or_insert_default().append(text),
            Chunk::Split(text) => self.split(text),
            Chunk::Fields(fields) => {
                for (at, field) in fields.iter().enumerate() {
                    if at > 0 {
                        self.close();
                    }
                    self.current.get_or_insert_default().append(field);
                }
            }
            Chunk::Many(origin) => self.absorb(*origin),
            Chunk::PlainWords(text) => {
                if let Some(mut current) = self.current.take() {
                    current.push(Stretch::Unknown(Origin::Output));
                    self.done.push((current, false));
                }
                self.done.push((text.clone(), true));
                self.absorbed = true;
            }
        }
    }

    fn split(&mut self, text: &Text) {
        for stretch in text.stretches() {
            match stretch {
                // In a pattern that comes from a variable a backslash still takes meanings away.
                Stretch::Known(known) if known.contains('\\') && known.contains(['*', '?', '[']) => {
                    return self.absorb(Origin::Data);
                }
                Stretch::Known(known) => {
                    let blank = |c: char| matches!(c, ' ' | '\t' | '\n');
                    let mut words = known.split(blank);
                    if let Some(first) = words.next().filter(|first| !first.is_empty()) {
                        push_pattern(self.current.get_or_insert_default(), first, true);
                    }
                    for word in words {
                        self.close();
                        if !word.is_empty() {
                            push_pattern(self.current.get_or_insert_default(), word, true);
                        }
                    }
                }
                Stretch::Unknown(origin) => return self.absorb(*origin),
                // A file name that a pattern matched may hold blanks.
                Stretch::Glob(_) => return self.absorb(Origin::Data),
                other => self.current.get_or_insert_default().push(other.clone()),
            }
        }
    }

    fn absorb(&mut self, origin: Origin) {
        if let Some(mut current) = self.current.take() {
            current.push(Stretch::Unknown(origin));
            self.done.push((current, false));
        }
        self.done.push((Text::unknown(origin), true));
        self.absorbed = true;
    }

    fn close(&mut self) {
        if let Some(current) = self.current.take() {
            self.done.push((current, false));
        }
    }

    pub(super) fn finish(mut self, span: Span, word: &Word) -> Vec<Argument> {
        self.close();
        let (open, disguised) = (is_open(word), is_disguised(word));
        let argument = |(text, many)| {
            let (text, many) = doubled(text, many);
            let pattern = open && text.has_glob();
            Argument { text, many, pattern, disguised, span }
        };
        self.done.into_iter().map(argument).collect()
    }
}

/// Whether something in a word that is not quoted may be a pattern.
fn is_open(word: &Word) -> bool {
    word.pieces.iter().any(|piece| match &piece.kind {
        PieceKind::Literal(text) => text.contains(['*', '?', '[']),
        PieceKind::Parameter(_) | PieceKind::Command(_) => true,
        _ => false,
    })
}

/// Of several slashes behind a pattern one is left if the pattern matches, and all if it does not.
fn doubled(text: Text, many: bool) -> (Text, bool) {
    let glob = text.stretches().iter().position(|stretch| matches!(stretch, Stretch::Glob(_)));
    let slashes = |stretch: &Stretch| matches!(stretch, Stretch::Known(known) if known.contains("//"));
    match glob {
        Some(at) if text.stretches().iter().skip(at).any(slashes) => {
            let mut open = Text::default();
            text.stretches().iter().take(at).for_each(|stretch| open.push(stretch.clone()));
            open.push(Stretch::Unknown(Origin::Data));
            (open, true)
        }
        _ => (text, many),
    }
}

/// Adds unquoted text, patterns as such.
fn push_pattern(to: &mut Text, text: &str, brackets: bool) {
    let special = |c: char| matches!(c, '*' | '?') || (c == '[' && brackets);
    let mut rest = text;
    while let Some(at) = rest.find(special) {
        let (before, after) = rest.split_at(at);
        to.push_str(before);
        let end = if after.starts_with('[') { bracket_end(after) } else { 1 };
        let (pattern, tail) = after.split_at(end);
        // A slash between brackets makes them plain text.
        if pattern.contains('/') {
            to.push_str("[");
            rest = after.get(1..).unwrap_or_default();
            continue;
        }
        to.push(Stretch::Glob(pattern.to_owned()));
        rest = tail;
    }
    to.push_str(rest);
}

/// Where a bracket pattern ends: classes such as `[:alpha:]` and a first `]` belong to it.
fn bracket_end(text: &str) -> usize {
    let mut at = 1;
    if text.get(at..).is_some_and(|rest| rest.starts_with(['!', '^'])) {
        at += 1;
    }
    if text.get(at..).is_some_and(|rest| rest.starts_with(']')) {
        at += 1;
    }
    loop {
        let rest = text.get(at..).unwrap_or_default();
        let Some(next) = rest.find([']', '[']) else { return 1 };
        if rest.get(next..).is_some_and(|rest| rest.starts_with(']')) {
            return at + next + 1;
        }
        let class = rest
            .get(next + 1..)
            .and_then(|inner| inner.chars().next())
            .filter(|c| matches!(c, ':' | '.' | '='));
        let end =
            class.and_then(|c| rest.get(next + 2..)?.find(&format!("{c}]")).map(|end| next + 2 + end + 2));
        at += end.unwrap_or(next + 1);
    }
}

/// Whether a `[` in the word can be a pattern: a `]` stands behind it, written or perhaps expanded.
pub(super) fn closes_bracket(word: &Word) -> bool {
    let mut open = false;
    for piece in &word.pieces {
        match &piece.kind {
            PieceKind::Literal(text) => {
                let at = text.find('[');
                if open && text.contains(']') || at.is_some_and(|at| text[at..].contains(']')) {
                    return true;
                }
                open |= at.is_some();
            }
            PieceKind::Parameter(_) | PieceKind::Command(_) if open => return true,
            _ => {}
        }
    }
    false
}

/// Whether a bracket is opened in one piece of the word and perhaps closed in another.
pub(super) fn splits_bracket(word: &Word) -> bool {
    word.pieces.iter().enumerate().any(|(at, piece)| {
        let PieceKind::Literal(text) = &piece.kind else { return false };
        at + 1 < word.pieces.len() && leaves_open(text)
    })
}

fn leaves_open(text: &str) -> bool {
    let mut rest = text;
    while let Some(open) = rest.find('[') {
        match bracket_end(&rest[open..]) {
            1 => return true,
            end => rest = &rest[open + end..],
        }
    }
    false
}

/// Whether a text stays one argument and itself when it is split.
pub(super) fn is_one_word(text: &Text) -> bool {
    let sound = |stretch: &Stretch| match stretch {
        Stretch::Known(known) => !known.contains([' ', '\t', '\n', '*', '?', '[']),
        Stretch::Plain | Stretch::Number => true,
        Stretch::Glob(_) | Stretch::Unknown(_) => false,
    };
    !text.stretches().is_empty() && text.stretches().iter().all(sound)
}
