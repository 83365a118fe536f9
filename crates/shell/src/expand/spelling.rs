//! How a word is spelt: readings that differ, and names that do not show.

use crate::syntax::tree::{CommandKind, List, Operation, Piece, PieceKind, Word};

/// Words that bash's own readers disagree on: `$$(`, `$${`, and quotes inside quotes around braces.
pub(super) fn is_ambiguous(pieces: &[Piece], quoted: bool) -> bool {
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
                || (quoted && word.iter().any(|piece| matches!(piece.kind, PieceKind::Double(_))))
        }
        PieceKind::Double(inner) | PieceKind::Locale(inner) => is_ambiguous(inner, true),
        PieceKind::Command(substitution) => {
            quoted && substitution.backticks && has_quotes(&substitution.list)
        }
        _ => false,
    })
}

/// Whether double quotes stand in a command of the list.
fn has_quotes(list: &List) -> bool {
    list.commands().any(|command| match &command.kind {
        CommandKind::Simple(simple) => {
            let quoted =
                |word: &Word| word.pieces.iter().any(|piece| matches!(piece.kind, PieceKind::Double(_)));
            simple.words.iter().any(quoted)
        }
        _ => true,
    })
}

/// Whether the spelling of a word's name part (up to `=` in a long option, the letter in a short
/// one) hides what it says.
pub(super) fn is_disguised(word: &Word) -> bool {
    // `$x` alone shows that it is a variable, and its value is judged like any other.
    if let [Piece { kind: PieceKind::Parameter(_), .. }] = word.pieces.as_slice() {
        return false;
    }
    let mut name = String::new();
    let mut kinds = 0;
    for (at, piece) in word.pieces.iter().enumerate() {
        let complete =
            name.contains('=') || (name.len() >= 2 && name.starts_with('-') && !name.starts_with("--"));
        if complete {
            // Further letters of a cluster can hide behind empty quotes.
            let empty = match &piece.kind {
                PieceKind::Single(text) => text.is_empty(),
                PieceKind::Double(pieces) => pieces.is_empty(),
                PieceKind::AnsiC(_) => true,
                _ => false,
            };
            if empty && !name.contains('=') {
                return true;
            }
            continue;
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
