//! The simple commands as our parser sees them, those inside of words not counted.

use gripper_shell::syntax::parse;
use gripper_shell::syntax::tree::{Command, CommandKind, List, Piece, PieceKind, Word};

use crate::{Words, sorted};

/// The commands of `script`, or nothing if it does not parse.
pub(crate) fn commands(script: &str) -> Option<Vec<Words>> {
    let parsed = parse(script);
    if parsed.error.is_some() {
        return None;
    }
    let mut found = Vec::new();
    list(&parsed.list, &mut found);
    Some(sorted(found))
}

fn list(list: &List, found: &mut Vec<Words>) {
    for item in &list.items {
        let rest = item.chain.rest.iter().map(|(_, pipeline)| pipeline);
        for pipeline in std::iter::once(&item.chain.first).chain(rest) {
            for stage in &pipeline.stages {
                command(&stage.command, found);
            }
        }
    }
}

fn command(whole: &Command, found: &mut Vec<Words>) {
    match &whole.kind {
        CommandKind::Simple(simple) => found.push(simple.words.iter().map(literal).collect()),
        CommandKind::Group(body)
        | CommandKind::Subshell(body)
        | CommandKind::For { body, .. }
        | CommandKind::ForArithmetic { body, .. }
        | CommandKind::Select { body, .. } => list(body, found),
        CommandKind::If { branches, otherwise } => {
            for (condition, body) in branches {
                list(condition, found);
                list(body, found);
            }
            if let Some(body) = otherwise {
                list(body, found);
            }
        }
        CommandKind::While { condition, body, .. } => {
            list(condition, found);
            list(body, found);
        }
        CommandKind::Case { arms, .. } => arms.iter().for_each(|arm| list(&arm.body, found)),
        CommandKind::Function { body, .. } | CommandKind::Coprocess { body, .. } => command(body, found),
        CommandKind::Test(_) | CommandKind::Arithmetic(_) => {}
    }
}

fn literal(word: &Word) -> Option<String> {
    let mut text = String::new();
    for piece in &word.pieces {
        add(piece, false, &mut text)?;
    }
    Some(text)
}

fn add(piece: &Piece, quoted: bool, text: &mut String) -> Option<()> {
    match &piece.kind {
        // Tildes are told apart in other places by the other parser.
        PieceKind::Literal(part) if !quoted && part.contains('~') => return None,
        PieceKind::Literal(part) | PieceKind::Single(part) => text.push_str(part),
        PieceKind::Escaped(letter) => text.push(*letter),
        PieceKind::Double(inner) | PieceKind::Locale(inner) => {
            for piece in inner {
                add(piece, true, text)?;
            }
        }
        _ => return None,
    }
    Some(())
}
