//! `${ … }`

use super::cursor::{Outcome, Parser, is_name, is_name_start};
use super::dollar::Context;
use super::tree::{Arithmetic, Operation, Parameter, Piece, PieceKind, Word};

/// What quotes and backslashes mean in the word of an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Inside {
    /// As outside of quotes.
    Bare,
    /// A pattern between double quotes: quotes work again.
    Pattern,
    /// As between double quotes, for the other operations.
    Double,
    /// No quotes are understood.
    Strict,
}

impl Parser<'_> {
    /// A parameter expansion, from behind the brace to behind the closing one.
    pub(super) fn braces(&mut self, context: Context) -> Outcome<Parameter> {
        let mut parameter = Parameter {
            name: String::new(),
            length: false,
            indirect: false,
            subscript: None,
            operation: None,
        };
        let closes = self.peek_second() == Some(b'}');
        match self.peek() {
            Some(byte @ (b'#' | b'!')) => {
                self.advance();
                if closes {
                    parameter.name = char::from(byte).to_string();
                } else {
                    parameter.length = byte == b'#';
                    parameter.indirect = byte == b'!';
                    parameter.name = self.parameter_name(if byte == b'#' { b"@*#?-$!" } else { b"#" })?;
                }
            }
            _ => parameter.name = self.parameter_name(b"@*?-$")?,
        }
        let named = parameter.name.bytes().next().is_some_and(is_name_start);
        if named && self.peek() == Some(b'[') {
            self.advance();
            let strict = !matches!(context, Context::Bare | Context::Double | Context::BraceDouble);
            parameter.subscript = Some(self.nested(|parser| parser.subscript(strict, true))?);
        }
        let special = !named && !parameter.name.bytes().all(|byte| byte.is_ascii_digit());
        let plain_only = parameter.length || matches!(parameter.name.as_str(), "#" | "!");
        match self.peek() {
            Some(b'}') => {}
            Some(_) if plain_only => return self.bad_substitution(),
            // `${-x}` and its like read in more than one way.
            Some(byte) if special && byte != b':' && !matches!(parameter.name.as_str(), "@" | "*") => {
                return self.bad_substitution();
            }
            Some(_) => parameter.operation = Some(self.operation(&parameter, context)?),
            None => return self.fail("`${` is never closed"),
        }
        if self.eat(b'}') { Ok(parameter) } else { self.bad_substitution() }
    }

    /// An error in the middle of an expansion.
    fn bad_substitution<T>(&mut self) -> Outcome<T> {
        self.peek();
        self.fail("bad substitution")
    }

    /// A name, a number or one of these characters.
    fn parameter_name(&mut self, special: &[u8]) -> Outcome<String> {
        let belongs: fn(u8) -> bool = match self.peek() {
            Some(byte) if is_name_start(byte) => is_name,
            Some(byte) if byte.is_ascii_digit() => |byte| byte.is_ascii_digit(),
            Some(byte) if special.contains(&byte) => {
                self.advance();
                return Ok(char::from(byte).to_string());
            }
            _ => return self.bad_substitution(),
        };
        let mut name = String::new();
        while let Some(byte) = self.peek().filter(|byte| belongs(*byte)) {
            name.push(char::from(byte));
            self.advance();
        }
        Ok(name)
    }

    /// What is done with the value.
    fn operation(&mut self, parameter: &Parameter, context: Context) -> Outcome<Operation> {
        let inside = match context {
            Context::Bare => Inside::Bare,
            Context::Double | Context::BraceDouble => Inside::Double,
            _ => Inside::Strict,
        };
        let pattern = if inside == Inside::Double { Inside::Pattern } else { inside };
        let second = self.peek_second();
        let Some(first) = self.peek() else { return self.bad_substitution() };
        match first {
            b':' if !matches!(second, Some(b'-' | b'=' | b'?' | b'+')) => self.substring(),
            b':' | b'-' | b'=' | b'?' | b'+' => self.default_operation(inside),
            b'#' | b'%' => {
                let operator = self.operator(first);
                Ok(Operation::Trim { operator, pattern: self.brace_word(pattern, false)? })
            }
            b'^' | b',' | b'~' => {
                let operator = self.operator(first);
                Ok(Operation::Case { operator, pattern: self.brace_word(pattern, false)? })
            }
            b'/' => self.replacement(pattern),
            b'@' | b'*' if parameter.indirect && parameter.subscript.is_none() && second == Some(b'}') => {
                self.advance();
                Ok(Operation::Names)
            }
            b'@' => self.transformation(),
            _ => self.bad_substitution(),
        }
    }

    /// An operator that may stand once or twice.
    fn operator(&mut self, byte: u8) -> String {
        self.advance();
        let mut operator = char::from(byte).to_string();
        if self.eat(byte) {
            operator.push(char::from(byte));
        }
        operator
    }

    /// `:-word` and its like.
    fn default_operation(&mut self, inside: Inside) -> Outcome<Operation> {
        self.eat(b':');
        let operator = self.peek();
        self.advance();
        let word = self.brace_word(inside, false)?;
        Ok(match operator {
            Some(b'-') => Operation::Default(word),
            Some(b'=') => Operation::Assign(word),
            Some(b'?') => Operation::Error(word),
            _ => Operation::Alternative(word),
        })
    }

    /// `/pattern/replacement` and its forms.
    fn replacement(&mut self, inside: Inside) -> Outcome<Operation> {
        self.advance();
        let mut operator = String::from("/");
        if let Some(byte @ (b'/' | b'#' | b'%')) = self.peek() {
            self.advance();
            operator.push(char::from(byte));
        }
        let pattern = self.brace_word(inside, true)?;
        let replacement = if self.eat(b'/') { Some(self.brace_word(inside, false)?) } else { None };
        Ok(Operation::Replace { operator, pattern, replacement })
    }

    /// `@Q` and its like.
    fn transformation(&mut self) -> Outcome<Operation> {
        self.advance();
        match self.peek() {
            Some(byte) if b"QEPAKakuUL".contains(&byte) => {
                self.advance();
                Ok(Operation::Transform(char::from(byte)))
            }
            _ => self.bad_substitution(),
        }
    }

    /// `:offset` and `:offset:length`
    fn substring(&mut self) -> Outcome<Operation> {
        self.advance();
        if self.peek() == Some(b'}') {
            return self.bad_substitution();
        }
        let offset = self.substring_part()?;
        let length = if self.eat(b':') { Some(self.substring_part()?) } else { None };
        Ok(Operation::Substring { offset, length })
    }

    /// An expression that ends at a colon or the closing brace. Bash looks for the colon of a
    /// conditional expression; that is refused.
    fn substring_part(&mut self) -> Outcome<Arithmetic> {
        let start = self.pos;
        let mut pieces = Vec::new();
        let mut depth = 0_usize;
        loop {
            match self.peek() {
                Some(b'}' | b':') if depth == 0 => break,
                Some(b'(' | b'[') => depth += 1,
                Some(b')' | b']') if depth > 0 => depth -= 1,
                None | Some(b'?' | b'{' | b'}' | b':' | b')' | b']' | b'\'' | b'"' | b'\\') => {
                    return self.bad_substitution();
                }
                Some(b'<' | b'>') if self.peek_second() == Some(b'(') => return self.bad_substitution(),
                _ => {}
            }
            self.arithmetic_piece(&mut pieces)?;
        }
        Ok(Arithmetic::of(pieces, self.span(start, self.pos)))
    }

    /// The word of an operation, up to the closing brace or, for a pattern that is replaced, a
    /// slash.
    fn brace_word(&mut self, inside: Inside, slash: bool) -> Outcome<Word> {
        self.count_part()?;
        self.peek();
        let start = self.pos;
        let mut pieces = Vec::new();
        loop {
            match self.peek() {
                None => return self.fail("`${` is never closed"),
                Some(b'}') => break,
                Some(b'/') if slash => break,
                Some(b'<' | b'>') if self.peek_second() == Some(b'(') => return self.unexpected(),
                _ => self.brace_piece(inside, &mut pieces)?,
            }
        }
        Ok(Word { pieces, span: self.span(start, self.pos) })
    }

    /// One piece of the word of an operation.
    fn brace_piece(&mut self, inside: Inside, pieces: &mut Vec<Piece>) -> Outcome<()> {
        match (inside, self.peek()) {
            (Inside::Bare, _) => self.unquoted(pieces),
            (Inside::Strict, Some(b'\'' | b'"')) => self.unexpected(),
            (Inside::Strict, Some(b'\\')) if !matches!(self.byte(self.pos + 1), Some(b'$' | b'`' | b'}')) => {
                self.unexpected()
            }
            (Inside::Strict, _) => self.quoted_piece(Context::BraceStrict, pieces),
            (Inside::Pattern | Inside::Double, Some(b'"')) => {
                let start = self.pos;
                let kind = PieceKind::Double(self.double_pieces()?);
                pieces.push(Piece { kind, span: self.span_from(start) });
                Ok(())
            }
            (Inside::Pattern, Some(b'\'' | b'\\')) => self.unquoted(pieces),
            (Inside::Pattern, Some(b'$')) if self.peek_second() == Some(b'\'') => {
                // In a pattern quotes of every kind are quotes, also between double ones; but versions
                // of bash disagree whether what comes out of these is read once more.
                let start = self.pos;
                self.unquoted(pieces)?;
                match pieces.last().map(|piece| &piece.kind) {
                    Some(PieceKind::AnsiC(text)) if !text.contains(['$', '`', '"', '\'', '\\', '}']) => {
                        Ok(())
                    }
                    _ => self.fail_at("unclear quotes", start, self.pos),
                }
            }
            (Inside::Double, Some(b'\'')) => self.apostrophes(pieces),
            (Inside::Pattern | Inside::Double, _) => self.quoted_piece(Context::BraceDouble, pieces),
        }
    }

    /// `'…'` in the word of an operation between double quotes: the quotes are plain text and what
    /// is between them is expanded, yet a brace between them does not end the expansion.
    fn apostrophes(&mut self, pieces: &mut Vec<Piece>) -> Outcome<()> {
        let start = self.pos;
        let rest = self.text.get(start + 1..).unwrap_or_default();
        let Some(length) = rest.find('\'') else { return self.fail("`'` is never closed") };
        let end = start + 1 + length;
        if rest.get(..length).unwrap_or_default().contains(['"', '\\', '`']) {
            return self.fail_at("quotes inside of quotes", start, end);
        }
        self.literal_char(pieces);
        while self.peek().is_some() && self.pos < end {
            self.quoted_piece(Context::BraceDouble, pieces)?;
        }
        if self.pos != end {
            return self.fail_at("unclear quotes", start, end);
        }
        self.literal_char(pieces);
        Ok(())
    }
}
