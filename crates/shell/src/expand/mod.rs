//! From words to arguments: quotes, expansions, splitting, patterns. What is not known stays a hole.

mod arithmetic;
mod braces;
mod parameter;

pub(crate) use arithmetic::is_number;

use crate::{
    risk::RiskKind,
    span::Span,
    state::State,
    syntax::tree::{CommandKind, List, Operation, Piece, PieceKind, Word},
    value::{Argument, Origin, Stretch, Text},
    walk::Walker,
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
        let several = words.len() > 1;
        let mut ways: Vec<Vec<Argument>> = vec![Vec::new()];
        for word in &words {
            let mut more = self.expand_one(state, word);
            if several {
                more.iter_mut().flatten().for_each(|argument| argument.disguised = true);
            }
            ways = cross(&ways, &more).unwrap_or_else(|| {
                self.unresolved("a word has too many values to follow", word.span);
                vec![vec![Argument::any(Origin::Computed, span)]]
            });
        }
        ways
    }

    fn expand_one(&mut self, state: &mut State, word: &Word) -> Vec<Vec<Argument>> {
        let span = self.at(word.span);
        let mut ways = vec![Fields::default()];
        let brackets = closes_bracket(word);
        for (at, piece) in word.pieces.iter().enumerate() {
            if matches!(&piece.kind, PieceKind::Parameter(parameter) if parameter.name == "IFS") {
                self.risk(RiskKind::IfsInjection, "IFS splits a word", piece.span);
            }
            let mut chunks = self.chunks(state, piece);
            if at == 0 {
                self.tilde(state, word, &mut chunks, false);
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
        let disguised = is_disguised(word);
        ways.into_iter().map(|way| way.finish(span, disguised)).collect()
    }

    /// The values of a word where nothing is split: assignments, `case`, here-strings.
    pub(crate) fn text(&mut self, state: &mut State, word: &Word) -> Vec<Text> {
        let mut ways = vec![Text::default()];
        for (at, piece) in word.pieces.iter().enumerate() {
            let mut chunks = self.chunks(state, piece);
            if at == 0 {
                self.tilde(state, word, &mut chunks, true);
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
                if state.split_changed {
                    vec![Chunk::Many(Origin::Output)]
                } else {
                    vec![Chunk::Split(output)]
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
            PieceKind::Process { output, list } => {
                if list.items.is_empty() {
                    self.unresolved("an empty process substitution", piece.span);
                }
                self.process_substitution(state, list, *output, piece.span);
                let mut path = Text::known("/dev/fd/");
                path.push(Stretch::Plain);
                vec![Chunk::Quoted(path)]
            }
            PieceKind::Array(words) => {
                for word in words {
                    self.expand(state, word);
                }
                vec![Chunk::Quoted(Text::unknown(Origin::Computed))]
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
                    vec![self.substitution(state, &substitution.list, piece.span)]
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
            _ => Text::unknown(Origin::Computed),
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

/// The arguments a word has become so far.
#[derive(Debug, Clone, Default)]
struct Fields {
    done: Vec<(Text, bool)>,
    current: Option<Text>,
    /// An unknown number of arguments stands in the word: what follows joins it.
    absorbed: bool,
}

impl Fields {
    fn add(&mut self, chunk: &Chunk, brackets: bool) {
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
        }
    }

    fn split(&mut self, text: &Text) {
        for stretch in text.stretches() {
            match stretch {
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

    fn finish(mut self, span: Span, disguised: bool) -> Vec<Argument> {
        self.close();
        self.done.into_iter().map(|(text, many)| Argument { text, many, disguised, span }).collect()
    }
}

/// Words that bash's own readers disagree on: `$$(`, `$${`, and quotes inside quotes around braces.
fn is_ambiguous(pieces: &[Piece], quoted: bool) -> bool {
    pieces.iter().enumerate().any(|(at, piece)| match &piece.kind {
        PieceKind::Parameter(parameter) => {
            let next = pieces.get(at + 1).map(|next| &next.kind);
            let glued = matches!(next, Some(PieceKind::Literal(text)) if text.starts_with(['(', '{']));
            let word = match &parameter.operation {
                Some(
                    Operation::Default(word)
                    | Operation::Assign(word)
                    | Operation::Error(word)
                    | Operation::Alternative(word),
                ) => word.pieces.as_slice(),
                _ => &[],
            };
            (parameter.name == "$" && glued)
                || is_ambiguous(word, quoted)
                || (quoted
                    && word
                        .iter()
                        .any(|piece| matches!(&piece.kind, PieceKind::Double(inner) if has_brace(inner))))
        }
        PieceKind::Double(inner) | PieceKind::Locale(inner) => is_ambiguous(inner, true),
        PieceKind::Command(substitution) => {
            quoted && substitution.backticks && has_quotes(&substitution.list)
        }
        _ => false,
    })
}

fn has_brace(pieces: &[Piece]) -> bool {
    pieces.iter().any(|piece| match &piece.kind {
        PieceKind::Literal(text) => text.contains('{'),
        _ => true,
    })
}

/// Whether double quotes stand in a command of the list.
fn has_quotes(list: &List) -> bool {
    let pipelines = list.items.iter().flat_map(|item| {
        std::iter::once(&item.chain.first).chain(item.chain.rest.iter().map(|(_, next)| next))
    });
    pipelines.flat_map(|pipeline| &pipeline.stages).any(|stage| match &stage.command.kind {
        CommandKind::Simple(simple) => {
            let quoted =
                |word: &Word| word.pieces.iter().any(|piece| matches!(piece.kind, PieceKind::Double(_)));
            simple.words.iter().any(quoted)
        }
        _ => true,
    })
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
fn closes_bracket(word: &Word) -> bool {
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

/// Whether a text stays one argument and itself when it is split.
fn is_one_word(text: &Text) -> bool {
    let sound = |stretch: &Stretch| match stretch {
        Stretch::Known(known) => !known.contains([' ', '\t', '\n', '*', '?', '[']),
        Stretch::Plain => true,
        Stretch::Glob(_) | Stretch::Unknown(_) => false,
    };
    !text.stretches().is_empty() && text.stretches().iter().all(sound)
}

fn cross(ways: &[Vec<Argument>], more: &[Vec<Argument>]) -> Option<Vec<Vec<Argument>>> {
    if ways.len() * more.len() > MOST_WAYS {
        return None;
    }
    Some(ways.iter().flat_map(|way| more.iter().map(move |next| [way.as_slice(), next].concat())).collect())
}

/// Whether the spelling of a word's name part (up to `=` in a long option, the letter in a short
/// one) hides what it says.
fn is_disguised(word: &Word) -> bool {
    let mut name = String::new();
    let mut kinds = 0;
    for (at, piece) in word.pieces.iter().enumerate() {
        let complete =
            name.contains('=') || (name.len() >= 2 && name.starts_with('-') && !name.starts_with("--"));
        if complete {
            break;
        }
        match &piece.kind {
            PieceKind::Literal(text) | PieceKind::Single(text) if !text.is_empty() => name.push_str(text),
            PieceKind::Double(pieces) => match pieces.as_slice() {
                [Piece { kind: PieceKind::Literal(text), .. }] => name.push_str(text),
                _ => return true,
            },
            // A leading backslash only keeps an alias from being used.
            PieceKind::Escaped(_) if at == 0 => continue,
            PieceKind::Escaped(c) if !c.is_ascii_alphanumeric() && *c != '-' => continue,
            _ => return true,
        }
        kinds += 1;
        if kinds > 1 {
            return true;
        }
    }
    false
}
