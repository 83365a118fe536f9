//! From words to arguments: quotes, expansions, splitting, patterns. What is not known stays a hole.

mod arithmetic;
mod braces;
mod fields;
mod parameter;
mod spelling;

pub(crate) use arithmetic::is_number;
use fields::{Fields, closes_bracket, is_one_word, splits_bracket};
use spelling::is_ambiguous;

use crate::{
    effect::EffectKind,
    risk::RiskKind,
    state::State,
    syntax::tree::{Piece, PieceKind, Word},
    value::{Argument, Origin, Stretch, Text},
    walk::{Captured, Walker},
};

/// How many ways a word may come out before it counts as unknown.
const MOST_WAYS: usize = 32;

/// What a piece adds to a word.
#[derive(Debug, Clone)]
enum Chunk {
    /// Unquoted text as written: patterns in it count.
    Bare(String),
    /// Quoted text: one stretch of one argument.
    Quoted(Text),
    /// The result of an unquoted expansion: it is split, and patterns in it count.
    Split(Text),
    /// Several arguments, the first and last of which join their neighbours.
    Fields(Vec<Text>),
    /// Any number of arguments.
    Many(Origin),
    /// Any number of such words.
    PlainWords(Text),
}

/// What a parameter expands to.
pub(crate) enum Expansion {
    /// One of these.
    OneOf(Vec<Text>),
    /// These, as arguments of their own.
    Fields(Vec<Text>),
    /// Any number of unknown ones.
    Many(Origin),
}

impl Walker<'_> {
    /// The ways in which a word can come out, each a list of arguments.
    pub(crate) fn expand(&mut self, state: &mut State, word: &Word) -> Vec<Vec<Argument>> {
        let span = self.at(word.span);
        let Ok(words) = braces::expand(word) else {
            self.unresolved("a brace expansion is too large to follow", word.span);
            return vec![vec![Argument::any(Origin::Computed, span)]];
        };
        if is_ambiguous(&word.pieces, false) {
            self.unresolved("the shell reads this word in two ways", word.span);
        }
        self.note_pieces(&word.pieces);
        let several = words.len() > 1;
        let mut ways: Vec<Vec<Argument>> = vec![Vec::new()];
        for word in &words {
            let mut more = self.expand_one(state, word);
            if several {
                more.iter_mut().flatten().for_each(|argument| argument.disguised = true);
            }
            ways = cross(ways, &more, MOST_WAYS).unwrap_or_else(|| {
                self.unresolved("a word has too many values to follow", word.span);
                vec![vec![Argument::any(Origin::Computed, span)]]
            });
        }
        if state.patterns_go {
            // What an unquoted expansion brings may be a pattern, or become part of one.
            let splits = word
                .pieces
                .iter()
                .any(|piece| matches!(piece.kind, PieceKind::Parameter(_) | PieceKind::Command(_)));
            let pattern = |text: &Text| text.has_glob() || splits && text.literal().is_none();
            let patterns = ways.iter_mut().flatten().filter(|argument| pattern(&argument.text));
            patterns.for_each(|argument| argument.many = true);
        }
        for argument in ways.iter().flatten().filter(|argument| argument.text.has_glob()) {
            // The shell itself looks into the folder to expand the pattern.
            for target in self.targets(&state.cwd, &argument.text) {
                self.effect(EffectKind::List(target), word.span);
            }
        }
        ways
    }

    /// Remembers the known pieces of a word that is not known as a whole.
    fn note_pieces(&mut self, pieces: &[Piece]) {
        if pieces.len() < 2 {
            return;
        }
        for piece in pieces {
            match &piece.kind {
                PieceKind::Literal(text) | PieceKind::Single(text) | PieceKind::AnsiC(text) => {
                    self.note_words(&Text::known(text.clone()));
                }
                PieceKind::Double(inner) => self.note_pieces(inner),
                _ => {}
            }
        }
    }

    fn expand_one(&mut self, state: &mut State, word: &Word) -> Vec<Vec<Argument>> {
        let span = self.at(word.span);
        let mut ways = vec![Fields::default()];
        let brackets = closes_bracket(word);
        let literal = |piece: &Piece| match &piece.kind {
            PieceKind::Literal(text) => text.clone(),
            _ => String::new(),
        };
        let names = word.pieces.first().is_some_and(|first| literal(first).contains('='));
        if brackets && splits_bracket(word) {
            self.unresolved("a bracket pattern around an expansion", word.span);
        }
        for (at, piece) in word.pieces.iter().enumerate() {
            if matches!(&piece.kind, PieceKind::Parameter(parameter) if parameter.name == "IFS") {
                self.risk(RiskKind::IfsInjection, "IFS splits a word", piece.span);
            }
            let mut chunks = self.chunks(state, piece);
            if at == 0 {
                self.tilde(state, word, &mut chunks, false);
            } else if names && literal(piece).contains('~') {
                // What looks like an assignment is expanded like one.
                chunks = vec![Chunk::Quoted(Text::unknown(Origin::Computed))];
            }
            let mut next = Vec::new();
            for way in &ways {
                for chunk in &chunks {
                    let mut way = way.clone();
                    way.add(chunk, brackets);
                    next.push(way);
                }
            }
            if next.len() > MOST_WAYS {
                self.unresolved("a word has too many values to follow", word.span);
                return vec![vec![Argument::any(Origin::Computed, span)]];
            }
            ways = next;
        }
        ways.into_iter().map(|way| way.finish(span, word)).collect()
    }

    /// The values of a word where nothing is split: assignments, `case`, here-strings.
    pub(crate) fn text(&mut self, state: &mut State, word: &Word) -> Vec<Text> {
        if is_ambiguous(&word.pieces, false) {
            self.unresolved("the shell reads this word in two ways", word.span);
        }
        let mut ways = vec![Text::default()];
        for (at, piece) in word.pieces.iter().enumerate() {
            let mut chunks = self.chunks(state, piece);
            if at == 0 {
                self.tilde(state, word, &mut chunks, true);
            } else if matches!(&piece.kind, PieceKind::Literal(text) if text.contains('~')) {
                // Behind a colon it means a home, and the colon may stand in another piece.
                chunks = vec![Chunk::Quoted(Text::unknown(Origin::Computed))];
            }
            let mut next = Vec::new();
            for way in &ways {
                for chunk in &chunks {
                    let mut way = way.clone();
                    match chunk {
                        Chunk::Bare(text) => way.push_str(text),
                        Chunk::Quoted(text) | Chunk::Split(text) => way.append(text),
                        Chunk::Fields(fields) => {
                            for (at, field) in fields.iter().enumerate() {
                                way.push_str(if at > 0 { " " } else { "" });
                                way.append(field);
                            }
                        }
                        Chunk::Many(origin) => way.push(Stretch::Unknown(*origin)),
                        Chunk::PlainWords(_) => way.push(Stretch::Unknown(Origin::Output)),
                    }
                    next.push(way);
                }
            }
            if next.len() > MOST_WAYS {
                return vec![Text::unknown(Origin::Computed)];
            }
            ways = next;
        }
        ways
    }

    /// The one value of a word where nothing is split; a hole when there are several.
    pub(crate) fn one_text(&mut self, state: &mut State, word: &Word) -> Text {
        let mut ways = self.text(state, word);
        match (ways.pop(), ways.is_empty()) {
            (Some(only), true) => only,
            _ => Text::unknown(Origin::Computed),
        }
    }

    fn chunks(&mut self, state: &mut State, piece: &Piece) -> Vec<Chunk> {
        match &piece.kind {
            PieceKind::Literal(text) => vec![Chunk::Bare(text.clone())],
            PieceKind::Escaped(c) => vec![Chunk::Quoted(Text::known(c.to_string()))],
            PieceKind::Single(text) | PieceKind::AnsiC(text) => {
                vec![Chunk::Quoted(Text::known(text.clone()))]
            }
            PieceKind::Double(pieces) | PieceKind::Locale(pieces) => self.quoted(state, pieces),
            PieceKind::Parameter(parameter) => match self.parameter(state, parameter, piece.span, false) {
                Expansion::OneOf(_) if state.split_changed => vec![Chunk::Many(Origin::Computed)],
                Expansion::OneOf(texts) => texts.into_iter().map(Chunk::Split).collect(),
                Expansion::Fields(fields) if fields.iter().all(is_one_word) => {
                    vec![Chunk::Fields(fields)]
                }
                Expansion::Fields(_) => vec![Chunk::Many(Origin::Computed)],
                Expansion::Many(origin) => vec![Chunk::Many(origin)],
            },
            PieceKind::Command(substitution) => {
                let output = self.substitution(state, &substitution.list, piece.span);
                match output {
                    _ if state.split_changed => vec![Chunk::Many(Origin::Output)],
                    Captured::Texts(texts) => texts.into_iter().map(Chunk::Split).collect(),
                    Captured::Word => vec![Chunk::Quoted(Text::unknown(Origin::Output))],
                    Captured::PlainWords(text) => vec![Chunk::PlainWords(text)],
                }
            }
            PieceKind::Arithmetic(arithmetic) => {
                let value = self.arithmetic(state, arithmetic);
                if state.split_changed {
                    vec![Chunk::Many(Origin::Computed)]
                } else {
                    vec![Chunk::Split(value)]
                }
            }
            PieceKind::Process { list, .. } => {
                if list.items.is_empty() {
                    self.unresolved("an empty process substitution", piece.span);
                }
                self.inner(state, list, piece.span);
                let mut path = Text::known("/dev/fd/");
                path.push(Stretch::Plain);
                vec![Chunk::Quoted(path)]
            }
            PieceKind::Array(words) => {
                for word in words {
                    let subscript = |text: &str| text.starts_with('[');
                    if matches!(word.pieces.first(), Some(Piece { kind: PieceKind::Literal(text), .. }) if subscript(text))
                    {
                        self.unresolved("an array with subscripts", word.span);
                    }
                    self.expand(state, word);
                }
                vec![Chunk::Quoted(Text::unknown(Origin::Elements))]
            }
        }
    }

    /// What stands between double quotes.
    fn quoted(&mut self, state: &mut State, pieces: &[Piece]) -> Vec<Chunk> {
        if let [Piece { kind: PieceKind::Parameter(parameter), span }] = pieces {
            // Alone between quotes, `"$@"` and `"${a[@]}"` stay several arguments.
            return match self.parameter(state, parameter, *span, true) {
                Expansion::OneOf(texts) => texts.into_iter().map(Chunk::Quoted).collect(),
                Expansion::Fields(fields) if fields.is_empty() => vec![Chunk::Fields(fields)],
                Expansion::Fields(fields) => vec![Chunk::Fields(fields)],
                Expansion::Many(origin) => vec![Chunk::Many(origin)],
            };
        }
        let mut ways = vec![Text::default()];
        let mut several = false;
        for piece in pieces {
            let texts = match &piece.kind {
                PieceKind::Parameter(parameter) => match self.parameter(state, parameter, piece.span, true) {
                    Expansion::OneOf(texts) => texts,
                    Expansion::Fields(_) | Expansion::Many(_) => {
                        several = true;
                        vec![Text::unknown(Origin::Computed)]
                    }
                },
                PieceKind::Command(substitution) => {
                    match self.substitution(state, &substitution.list, piece.span) {
                        Captured::Texts(texts) => texts,
                        Captured::Word | Captured::PlainWords(_) => vec![Text::unknown(Origin::Output)],
                    }
                }
                PieceKind::Arithmetic(arithmetic) => vec![self.arithmetic(state, arithmetic)],
                PieceKind::Literal(text) => vec![Text::known(text.clone())],
                PieceKind::Escaped(c) => vec![Text::known(c.to_string())],
                _ => vec![Text::unknown(Origin::Computed)],
            };
            ways = ways
                .iter()
                .flat_map(|way| {
                    texts.iter().map(move |text| {
                        let mut way = way.clone();
                        way.append(text);
                        way
                    })
                })
                .collect();
            if ways.len() > MOST_WAYS {
                ways = vec![Text::unknown(Origin::Computed)];
            }
        }
        if several {
            vec![Chunk::Many(Origin::Computed)]
        } else {
            ways.into_iter().map(Chunk::Quoted).collect()
        }
    }

    /// Replaces a leading `~`; in assignments a `~` behind a colon counts too, which is not followed.
    fn tilde(&mut self, state: &State, word: &Word, chunks: &mut [Chunk], assignment: bool) {
        let [Chunk::Bare(text)] = chunks else { return };
        let named = text.split_once('=').is_some_and(|(name, rest)| {
            name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '+' | '[' | ']'))
                && (rest.starts_with('~') || rest.contains(":~"))
        });
        if named || (assignment && text.contains(":~")) {
            chunks[0] = Chunk::Quoted(Text::unknown(Origin::Computed));
            return;
        }
        let Some(rest) = text.strip_prefix('~') else { return };
        let end = rest.find('/').unwrap_or(rest.len());
        let (user, tail) = rest.split_at(end);
        // A quoted character before the first slash switches the tilde off.
        if tail.is_empty() && word.pieces.len() > 1 {
            if word
                .pieces
                .get(1)
                .is_some_and(|piece| matches!(piece.kind, PieceKind::Parameter(_) | PieceKind::Command(_)))
            {
                chunks[0] = Chunk::Many(Origin::Computed);
            }
            return;
        }
        let mut place = match user {
            "" => match state.variable("HOME") {
                None => Text::known(self.surroundings.home.clone()),
                Some(_) => Text::unknown(Origin::Computed),
            },
            _ => {
                self.unresolved("the home of another user, or a place of the stack", word.span);
                Text::unknown(Origin::Computed)
            }
        };
        if self.surroundings.home == "/" && user.is_empty() && tail.starts_with('/') {
            place = Text::default();
        }
        let tail_is_plain = !tail.contains(['*', '?', '[']);
        if tail_is_plain {
            place.push_str(tail);
            chunks[0] = Chunk::Quoted(place);
        } else {
            let mut whole = place;
            whole.push_str(tail);
            chunks[0] = Chunk::Split(whole);
        }
    }
}

/// Every one of the lists with every one of the others behind it.
pub(crate) fn cross(
    mut ways: Vec<Vec<Argument>>,
    more: &[Vec<Argument>],
    most: usize,
) -> Option<Vec<Vec<Argument>>> {
    if ways.len() * more.len() > most {
        return None;
    }
    if let [only] = more {
        // The usual case, and the one that must not copy: a command may have thousands of words.
        ways.iter_mut().for_each(|way| way.extend_from_slice(only));
        return Some(ways);
    }
    Some(ways.iter().flat_map(|way| more.iter().map(move |next| [way.as_slice(), next].concat())).collect())
}
