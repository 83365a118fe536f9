//! Here-documents.

use super::cursor::{Outcome, Parser};
use super::dollar::Context;
use super::tree::{HereDocument, List, Piece, PieceKind, Word};
use super::walk;
use super::word::Style;
use crate::span::Span;

/// A here-document whose body has not been read.
#[derive(Debug)]
pub(super) struct Pending {
    /// The tag after quote removal.
    tag: String,
    /// The tag was quoted.
    quoted: bool,
    /// `<<-`
    strip_tabs: bool,
    /// Which of the bodies it is.
    index: usize,
    /// Where the operator stands.
    place: (usize, usize),
}

impl Parser<'_> {
    /// The tag after `<<`. The body is filled in at the end.
    pub(super) fn document(&mut self, start: usize, strip_tabs: bool) -> Outcome<HereDocument> {
        self.skip_blanks();
        if !self.at_word() {
            return self.unexpected();
        }
        let word = self.word(Style::Plain)?;
        let Some((tag, quoted)) = tag_of(&word.pieces) else {
            return self.fail_at("unclear tag of a here-document", start, self.last);
        };
        let touches = matches!(self.peek(), Some(b'<' | b'>'));
        if touches && super::redirect::is_descriptor(&tag, false) {
            return self.unexpected();
        }
        let index = self.bodies.len();
        self.bodies.push(None);
        let place = (start, self.last);
        self.pending.push(Pending { tag: tag.clone(), quoted, strip_tabs, index, place });
        let mark = Piece { kind: PieceKind::Array(Vec::new()), span: Span::new(index, index) };
        let body = Word { pieces: vec![mark], span: Span::default() };
        Ok(HereDocument { tag, quoted, strip_tabs, body })
    }

    /// Reads the bodies that follow a line.
    pub(super) fn read_documents(&mut self) -> Outcome<()> {
        for document in std::mem::take(&mut self.pending) {
            let body = self.body(&document)?;
            if let Some(slot) = self.bodies.get_mut(document.index) {
                *slot = Some(body);
            }
        }
        Ok(())
    }

    /// An error if a here-document has no body. Bash warns and takes an empty one or what is left.
    pub(super) fn no_pending(&self) -> Outcome<()> {
        match self.pending.first() {
            None => Ok(()),
            Some(document) => {
                self.fail_at("the here-document has no body", document.place.0, document.place.1)
            }
        }
    }

    /// Puts the bodies into the tree.
    pub(super) fn fill_documents(&mut self, list: &mut List) {
        if !self.bodies.is_empty() {
            walk::fill_documents(list, &mut self.bodies);
        }
    }

    /// The body of a here-document, up to behind its tag.
    fn body(&mut self, document: &Pending) -> Outcome<Word> {
        let start = self.pos;
        let (mut text, mut verbatim) = (String::new(), true);
        loop {
            let line_start = self.pos;
            let Some((line, ended, whole)) = self.document_line(document) else {
                return self.fail_at("the here-document has no end", document.place.0, document.place.1);
            };
            if line == document.tag {
                self.last = self.pos;
                return self.parsed_body(document, start, line_start, &text, verbatim);
            }
            let rest = line.strip_prefix(document.tag.as_str());
            if self.in_substitution && rest.is_some_and(|rest| rest.contains(')')) {
                return self.fail_at("text behind the tag of a here-document", line_start, self.pos);
            }
            if !ended {
                self.pos = self.text.len();
                continue;
            }
            verbatim &= whole;
            text.push_str(&line);
            text.push('\n');
        }
    }

    /// One line of a body, continuations joined unless the tag was quoted; whether it has an end,
    /// and whether it is the text as it stands.
    fn document_line(&mut self, document: &Pending) -> Option<(String, bool, bool)> {
        let mut line = String::new();
        let mut whole = true;
        let ended = loop {
            let rest = self.text.get(self.pos..).filter(|rest| !rest.is_empty());
            let Some(rest) = rest else {
                if line.is_empty() && whole {
                    return None;
                }
                break false;
            };
            let length = rest.find('\n');
            let part = rest.get(..length.unwrap_or(rest.len())).unwrap_or_default();
            self.pos += part.len() + usize::from(length.is_some());
            let slashes = part.bytes().rev().take_while(|byte| *byte == b'\\').count();
            let continued = !document.quoted && slashes % 2 == 1 && length.is_some();
            if !continued {
                line.push_str(part);
                break length.is_some();
            }
            line.push_str(part.get(..part.len() - 1).unwrap_or_default());
            whole = false;
        };
        if document.strip_tabs && line.starts_with('\t') {
            whole = false;
            line = line.trim_start_matches('\t').to_owned();
        }
        Some((line, ended, whole))
    }

    /// The body with its expansions.
    fn parsed_body(
        &mut self,
        document: &Pending,
        start: usize,
        end: usize,
        text: &str,
        verbatim: bool,
    ) -> Outcome<Word> {
        let span = self.span(start, end);
        if document.quoted {
            let mut pieces = Vec::new();
            if !text.is_empty() {
                pieces.push(Piece { kind: PieceKind::Literal(text.to_owned()), span });
            }
            return Ok(Word { pieces, span });
        }
        let origin = self.origin_of(start, end, verbatim);
        let pieces = self.nested(|parser| {
            let mut inner = parser.inner(text, origin);
            let mut pieces = Vec::new();
            while inner.peek().is_some() {
                inner.quoted_piece(Context::Here, &mut pieces)?;
            }
            if !inner.bodies.is_empty() {
                walk::fill_pieces(&mut pieces, &mut inner.bodies);
            }
            parser.parts = inner.parts;
            Ok(pieces)
        })?;
        Ok(Word { pieces, span })
    }
}

/// The tag after quote removal, and whether there was a quote. Tags with expansions in them, which
/// bash takes as they are written, and tags of several lines are not understood.
fn tag_of(pieces: &[Piece]) -> Option<(String, bool)> {
    let (mut tag, mut quoted) = (String::new(), false);
    for piece in pieces {
        match &piece.kind {
            PieceKind::Literal(text) if !text.contains('$') => tag.push_str(text),
            PieceKind::Escaped(character) => {
                quoted = true;
                tag.push(*character);
            }
            PieceKind::Single(text) => {
                quoted = true;
                tag.push_str(text);
            }
            PieceKind::Double(inside) => {
                quoted = true;
                let (text, _) = tag_of(inside)?;
                tag.push_str(&text);
            }
            _ => return None,
        }
    }
    if tag.contains('\n') { None } else { Some((tag, quoted)) }
}
