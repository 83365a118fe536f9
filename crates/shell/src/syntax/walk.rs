//! Goes through a whole tree to change what may have to be changed afterwards.

use super::tree::{
    Arithmetic, AssignedValue, Assignment, Chain, Command, CommandKind, List, Operation, Parameter, Piece,
    PieceKind, Pipeline, RedirectTarget, Test, Word,
};
use crate::span::Span;

/// What is done on the way.
trait Visit {
    /// With every place.
    fn span(&mut self, span: &mut Span);
    /// With the body of every here-document, before going through it.
    fn body(&mut self, body: &mut Word);
}

/// Takes all places out of a tree.
pub(super) fn erase_spans(list: &mut List) {
    visit_list(list, &mut Erase);
}

/// Puts the bodies of here-documents where their marks are.
pub(super) fn fill_documents(list: &mut List, bodies: &mut [Option<Word>]) {
    visit_list(list, &mut Fill { bodies });
}

/// The same for pieces.
pub(super) fn fill_pieces(pieces: &mut [Piece], bodies: &mut [Option<Word>]) {
    visit_pieces(pieces, &mut Fill { bodies });
}

/// Takes places out.
struct Erase;

impl Visit for Erase {
    fn span(&mut self, span: &mut Span) {
        *span = Span::default();
    }

    fn body(&mut self, _: &mut Word) {}
}

/// Puts bodies in.
struct Fill<'a> {
    /// The bodies in the order of their operators.
    bodies: &'a mut [Option<Word>],
}

impl Visit for Fill<'_> {
    fn span(&mut self, _: &mut Span) {}

    fn body(&mut self, body: &mut Word) {
        let [Piece { kind: PieceKind::Array(_), span }] = body.pieces.as_slice() else { return };
        let slot = self.bodies.get_mut(span.start as usize);
        *body = slot.and_then(Option::take).unwrap_or_default();
    }
}

fn visit_list(list: &mut List, visit: &mut impl Visit) {
    for item in &mut list.items {
        visit_chain(&mut item.chain, visit);
    }
}

fn visit_chain(chain: &mut Chain, visit: &mut impl Visit) {
    visit_pipeline(&mut chain.first, visit);
    for (_, pipeline) in &mut chain.rest {
        visit_pipeline(pipeline, visit);
    }
}

fn visit_pipeline(pipeline: &mut Pipeline, visit: &mut impl Visit) {
    visit.span(&mut pipeline.span);
    for stage in &mut pipeline.stages {
        visit_command(&mut stage.command, visit);
    }
}

fn visit_command(command: &mut Command, visit: &mut impl Visit) {
    visit.span(&mut command.span);
    for redirect in &mut command.redirects {
        visit.span(&mut redirect.span);
        match &mut redirect.target {
            RedirectTarget::Word(word) => visit_word(word, visit),
            RedirectTarget::HereDocument(document) => {
                visit.body(&mut document.body);
                visit_word(&mut document.body, visit);
            }
        }
    }
    visit_kind(&mut command.kind, visit);
}

fn visit_kind(kind: &mut CommandKind, visit: &mut impl Visit) {
    match kind {
        CommandKind::Simple(simple) => {
            for assignment in &mut simple.assignments {
                visit_assignment(assignment, visit);
            }
            visit_words(&mut simple.words, visit);
        }
        CommandKind::Group(list) | CommandKind::Subshell(list) => visit_list(list, visit),
        CommandKind::If { branches, otherwise } => {
            for (condition, body) in branches {
                visit_list(condition, visit);
                visit_list(body, visit);
            }
            if let Some(list) = otherwise {
                visit_list(list, visit);
            }
        }
        CommandKind::While { condition, body, .. } => {
            visit_list(condition, visit);
            visit_list(body, visit);
        }
        CommandKind::For { words, body, .. } | CommandKind::Select { words, body, .. } => {
            if let Some(words) = words {
                visit_words(words, visit);
            }
            visit_list(body, visit);
        }
        CommandKind::ForArithmetic { header, body } => {
            for expression in header {
                visit_arithmetic(expression, visit);
            }
            visit_list(body, visit);
        }
        CommandKind::Case { subject, arms } => {
            visit_word(subject, visit);
            for arm in arms {
                visit_words(&mut arm.patterns, visit);
                visit_list(&mut arm.body, visit);
            }
        }
        CommandKind::Function { body, .. } | CommandKind::Coprocess { body, .. } => {
            visit_command(body, visit)
        }
        CommandKind::Test(test) => visit_test(test, visit),
        CommandKind::Arithmetic(expression) => visit_arithmetic(expression, visit),
    }
}

fn visit_assignment(assignment: &mut Assignment, visit: &mut impl Visit) {
    visit.span(&mut assignment.span);
    if let Some(subscript) = &mut assignment.subscript {
        visit_arithmetic(subscript, visit);
    }
    match &mut assignment.value {
        AssignedValue::Scalar(word) => visit_word(word, visit),
        AssignedValue::Array(words) => visit_words(words, visit),
    }
}

fn visit_test(test: &mut Test, visit: &mut impl Visit) {
    match test {
        Test::Word(word) | Test::Unary { operand: word, .. } => visit_word(word, visit),
        Test::Binary { left, right, .. } => {
            visit_word(left, visit);
            visit_word(right, visit);
        }
        Test::Not(inside) | Test::Group(inside) => visit_test(inside, visit),
        Test::And(left, right) | Test::Or(left, right) => {
            visit_test(left, visit);
            visit_test(right, visit);
        }
    }
}

fn visit_words(words: &mut [Word], visit: &mut impl Visit) {
    for word in words {
        visit_word(word, visit);
    }
}

fn visit_word(word: &mut Word, visit: &mut impl Visit) {
    visit.span(&mut word.span);
    visit_pieces(&mut word.pieces, visit);
}

fn visit_arithmetic(expression: &mut Arithmetic, visit: &mut impl Visit) {
    visit.span(&mut expression.span);
    visit_pieces(&mut expression.pieces, visit);
}

fn visit_pieces(pieces: &mut [Piece], visit: &mut impl Visit) {
    for piece in pieces {
        visit.span(&mut piece.span);
        match &mut piece.kind {
            PieceKind::Literal(_) | PieceKind::Escaped(_) | PieceKind::Single(_) | PieceKind::AnsiC(_) => {}
            PieceKind::Double(inside) | PieceKind::Locale(inside) => visit_pieces(inside, visit),
            PieceKind::Parameter(parameter) => visit_parameter(parameter, visit),
            PieceKind::Command(substitution) => visit_list(&mut substitution.list, visit),
            PieceKind::Arithmetic(expression) => visit_arithmetic(expression, visit),
            PieceKind::Process { list, .. } => visit_list(list, visit),
            PieceKind::Array(words) => visit_words(words, visit),
        }
    }
}

fn visit_parameter(parameter: &mut Parameter, visit: &mut impl Visit) {
    if let Some(subscript) = &mut parameter.subscript {
        visit_arithmetic(subscript, visit);
    }
    match &mut parameter.operation {
        None | Some(Operation::Transform(_) | Operation::Names) => {}
        Some(
            Operation::Default(word)
            | Operation::Assign(word)
            | Operation::Error(word)
            | Operation::Alternative(word)
            | Operation::Trim { pattern: word, .. }
            | Operation::Case { pattern: word, .. },
        ) => visit_word(word, visit),
        Some(Operation::Replace { pattern, replacement, .. }) => {
            visit_word(pattern, visit);
            if let Some(word) = replacement {
                visit_word(word, visit);
            }
        }
        Some(Operation::Substring { offset, length }) => {
            visit_arithmetic(offset, visit);
            if let Some(length) = length {
                visit_arithmetic(length, visit);
            }
        }
    }
}
