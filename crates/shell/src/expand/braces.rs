//! Brace expansion: one word becomes several before anything else is looked at.

use crate::syntax::tree::{Piece, PieceKind, Word};

/// How many words one word may become.
const MOST_WORDS: usize = 256;

/// How many opening braces a word may hold.
const MOST_OPEN: usize = 64;

/// A brace expansion too large to follow.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct TooMany;

/// One position of a word: a character of unquoted text, or a piece that braces do not look into.
#[derive(Debug, Clone)]
enum Unit<'w> {
    Char(char, &'w Piece),
    Opaque(&'w Piece),
}

impl Unit<'_> {
    fn is(&self, wanted: char) -> bool {
        matches!(self, Unit::Char(found, _) if *found == wanted)
    }
}

/// The words `word` becomes; itself when there is nothing to expand.
pub(crate) fn expand(word: &Word) -> Result<Vec<Word>, TooMany> {
    let has_brace = |piece: &Piece| matches!(&piece.kind, PieceKind::Literal(text) if text.contains('{'));
    if !word.pieces.iter().any(has_brace) {
        return Ok(vec![word.clone()]);
    }
    let opens: usize = word.pieces.iter().map(|piece| literal(piece).matches('{').count()).sum();
    if opens > MOST_OPEN {
        return Err(TooMany);
    }
    let mut units = Vec::new();
    for piece in &word.pieces {
        match &piece.kind {
            PieceKind::Literal(text) => units.extend(text.chars().map(|c| Unit::Char(c, piece))),
            _ => units.push(Unit::Opaque(piece)),
        }
    }
    let mut budget = MOST_WORDS * 8;
    let words = expand_units(&units, 0, &mut budget)?;
    let expands = words.len() > 1;
    if expands && is_odd(word) {
        return Err(TooMany);
    }
    // `{}` is skipped by rules of its own when a comma follows somewhere.
    let joined: String = word.pieces.iter().map(literal).collect();
    if joined.contains("{}") && (joined.contains(',') || joined.contains("..")) {
        return Err(TooMany);
    }
    Ok(words.iter().map(|units| rebuild(word, units)).collect())
}

fn literal(piece: &Piece) -> &str {
    match &piece.kind {
        PieceKind::Literal(text) => text,
        _ => "",
    }
}

/// Bash expands braces in the bare text, before it knows what a `$` begins: a name can grow
/// by what follows it, and braces inside `${…}` count. Such words are not followed.
fn is_odd(word: &Word) -> bool {
    word.pieces.iter().enumerate().any(|(at, piece)| match &piece.kind {
        PieceKind::Literal(text) => text.contains('$'),
        PieceKind::Parameter(parameter) => {
            let touches =
                word.pieces.get(at + 1).is_some_and(|next| literal(next).starts_with(['{', '}', ',']));
            parameter.operation.is_some() || touches
        }
        PieceKind::Double(inner) => inner.iter().any(|piece| match &piece.kind {
            PieceKind::Parameter(parameter) => parameter.operation.is_some(),
            PieceKind::Command(substitution) => substitution.backticks,
            _ => false,
        }),
        PieceKind::Command(substitution) => substitution.backticks,
        _ => false,
    })
}

fn expand_units<'w>(
    units: &[Unit<'w>],
    depth: usize,
    budget: &mut usize,
) -> Result<Vec<Vec<Unit<'w>>>, TooMany> {
    if depth > 16 || *budget == 0 {
        return Err(TooMany);
    }
    *budget -= 1;
    let mut from = 0;
    while let Some(open) = (from..units.len()).find(|&at| units.get(at).is_some_and(|unit| unit.is('{'))) {
        let Some((close, commas)) = matching(units, open) else {
            from = open + 1;
            continue;
        };
        let inner = units.get(open + 1..close).unwrap_or_default();
        let choices = if commas.is_empty() {
            match sequence(inner)? {
                Some(words) => words,
                None => {
                    // Text between braces that is no list: bash goes on to a later brace, by rules of its own.
                    let after = units.get(close + 1..).unwrap_or_default();
                    if after.iter().any(|unit| unit.is('}')) && units.iter().any(|unit| unit.is(',')) {
                        return Err(TooMany);
                    }
                    from = open + 1;
                    continue;
                }
            }
        } else {
            let mut choices = Vec::new();
            let mut start = open + 1;
            for &end in commas.iter().chain([&close]) {
                choices.extend(expand_units(units.get(start..end).unwrap_or_default(), depth + 1, budget)?);
                start = end + 1;
            }
            choices
        };
        let before = units.get(..open).unwrap_or_default();
        let tails = expand_units(units.get(close + 1..).unwrap_or_default(), depth + 1, budget)?;
        let mut words = Vec::new();
        for choice in &choices {
            for tail in &tails {
                if words.len() >= MOST_WORDS {
                    return Err(TooMany);
                }
                words.push([before, choice.as_slice(), tail.as_slice()].concat());
            }
        }
        return Ok(words);
    }
    Ok(vec![units.to_vec()])
}

/// The closing brace of the one at `open`, with the commas between them at the same level.
fn matching(units: &[Unit<'_>], open: usize) -> Option<(usize, Vec<usize>)> {
    let mut depth = 0usize;
    let mut commas = Vec::new();
    for (at, unit) in units.iter().enumerate().skip(open) {
        if unit.is('{') {
            depth += 1;
        } else if unit.is('}') {
            depth -= 1;
            if depth == 0 {
                return Some((at, commas));
            }
        } else if unit.is(',') && depth == 1 {
            commas.push(at);
        }
    }
    None
}

/// `1..5`, `a..e`, `1..9..2`; none when it is no sequence.
fn sequence<'w>(inner: &[Unit<'w>]) -> Result<Option<Vec<Vec<Unit<'w>>>>, TooMany> {
    let Some(Unit::Char(_, piece)) = inner.first() else { return Ok(None) };
    let mut text = String::new();
    for unit in inner {
        match unit {
            Unit::Char(c, _) => text.push(*c),
            Unit::Opaque(_) => return Ok(None),
        }
    }
    // Bash skips blanks of every kind in front of a number, and forgets the braces around a list.
    let odd = |c: char| c.is_whitespace() || c.is_control() || c == '{';
    if text.contains("..") && text.contains(odd) {
        return Err(TooMany);
    }
    let bounds: Vec<&str> = text.split("..").collect();
    let (first, last, step) = match bounds.as_slice() {
        [first, last] => (*first, *last, 1),
        [first, last, step] => match step.parse::<i64>() {
            Ok(step) => (*first, *last, step.unsigned_abs().max(1)),
            Err(_) => return Ok(None),
        },
        _ => return Ok(None),
    };
    let words = if let (Ok(from), Ok(to)) = (first.parse::<i64>(), last.parse::<i64>()) {
        let padded = |text: &str| {
            text.trim_start_matches('-').len() > 1 && text.trim_start_matches('-').starts_with('0')
        };
        // With zeros in front all are as wide as the wider end; with a sign that rule is intricate.
        let padded = padded(first) || padded(last);
        let width = if padded { first.len().max(last.len()) } else { 0 };
        let signed = first.starts_with('-') || last.starts_with('-');
        if (padded && (signed || width > 18)) || first.starts_with('+') || last.starts_with('+') {
            return Err(TooMany);
        }
        steps(from, to, step)?.into_iter().map(|n| format!("{n:0width$}")).collect::<Vec<_>>()
    } else {
        let (mut a, mut b) = (first.chars(), last.chars());
        match (a.next(), a.next(), b.next(), b.next()) {
            (Some(from), None, Some(to), None) if from.is_ascii_alphabetic() && to.is_ascii_alphabetic() => {
                let numbers = steps(i64::from(u32::from(from)), i64::from(u32::from(to)), step)?;
                let letters: Vec<String> = numbers
                    .into_iter()
                    .filter_map(|n| u32::try_from(n).ok().and_then(char::from_u32))
                    .map(String::from)
                    .collect();
                // Between upper and lower case lie quotes and brackets, which the shell treats oddly.
                if letters.iter().any(|letter| !letter.chars().all(|c| c.is_ascii_alphabetic())) {
                    return Err(TooMany);
                }
                letters
            }
            _ => return Ok(None),
        }
    };
    Ok(Some(words.iter().map(|word| word.chars().map(|c| Unit::Char(c, piece)).collect()).collect()))
}

fn steps(from: i64, to: i64, step: u64) -> Result<Vec<i64>, TooMany> {
    let count = from.abs_diff(to) / step;
    if count >= MOST_WORDS as u64 {
        return Err(TooMany);
    }
    let sign = if from <= to { 1 } else { -1 };
    let step = i64::try_from(step).map_err(|_| TooMany)?;
    (0..=i64::try_from(count).map_err(|_| TooMany)?)
        .map(|n| n.checked_mul(step).and_then(|offset| from.checked_add(sign * offset)).ok_or(TooMany))
        .collect()
}

fn rebuild(word: &Word, units: &[Unit<'_>]) -> Word {
    let mut pieces: Vec<Piece> = Vec::new();
    for unit in units {
        match unit {
            Unit::Opaque(piece) => pieces.push((*piece).clone()),
            Unit::Char(c, piece) => {
                if let Some(Piece { kind: PieceKind::Literal(text), .. }) = pieces.last_mut() {
                    text.push(*c);
                } else {
                    pieces.push(Piece { kind: PieceKind::Literal((*c).to_string()), span: piece.span });
                }
            }
        }
    }
    Word { pieces, span: word.span }
}
