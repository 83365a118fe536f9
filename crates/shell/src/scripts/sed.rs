//! sed: the whole command grammar of GNU sed, split exactly where GNU sed splits it.

use super::{Cursor, FindingKind, ScriptEffects, Step};

pub(super) fn check(script: &str) -> ScriptEffects {
    let mut parser = Parser {
        cursor: Cursor::new(script),
        effects: ScriptEffects::default(),
        depth: 0,
        after_label: false,
    };
    if let Err(why) = parser.run() {
        parser.effects.give_up(script, parser.cursor.at, why);
    }
    parser.effects
}

struct Parser<'a> {
    cursor: Cursor<'a>,
    effects: ScriptEffects,
    /// Open blocks.
    depth: usize,
    /// A label stood earlier in this line. Other seds than GNU's let a label run to the end of
    /// the line, so nothing after it may reach into the next line.
    after_label: bool,
}

impl Parser<'_> {
    fn run(&mut self) -> Step {
        loop {
            while let Some(byte) = self.cursor.peek() {
                match byte {
                    b'\n' => self.after_label = false,
                    b';' | b' ' | b'\t' => {}
                    _ => break,
                }
                self.cursor.at += 1;
            }
            if self.cursor.peek().is_none() {
                return if self.depth == 0 { Ok(()) } else { Err("a block is not closed") };
            }
            self.command()?;
        }
    }

    fn command(&mut self) -> Step {
        let addressed = self.addresses()?;
        let start = self.cursor.at;
        let Some(name) = self.cursor.bump() else { return Err("a command is missing") };
        match name {
            b'#' if !addressed => self.cursor.skip_while(|byte| byte != b'\n'),
            b'{' => self.depth += 1,
            b'}' if !addressed => {
                self.depth = self.depth.checked_sub(1).ok_or("a block is closed that was not opened")?;
                self.end()?;
            }
            b':' if !addressed => {
                if self.label()? == 0 {
                    return Err("a label without a name");
                }
            }
            b'b' | b't' | b'T' | b'v' => {
                self.label()?;
            }
            b'a' | b'i' | b'c' => self.text()?,
            b'e' => {
                self.effects.add(FindingKind::Exec, start..self.cursor.at, "runs a command");
                self.blanks();
                if !matches!(self.cursor.peek(), None | Some(b'\n')) {
                    self.text()?;
                }
            }
            b'l' | b'q' | b'Q' => {
                self.blanks();
                self.cursor.skip_while(|byte| byte.is_ascii_digit());
                self.end()?;
            }
            b'=' | b'd' | b'D' | b'F' | b'g' | b'G' | b'h' | b'H' | b'n' | b'N' | b'p' | b'P' | b'x'
            | b'z' => self.end()?,
            b'r' | b'R' => {
                let name = self.file_name()?;
                if name != "/dev/stdin" {
                    self.effects.add(FindingKind::Read(name), start..self.cursor.at, "reads a file");
                }
            }
            b'w' | b'W' => self.write(start)?,
            b's' => {
                let delimiter = self.delimiter()?;
                self.delimited(delimiter, true)?;
                self.delimited(delimiter, false)?;
                self.substitute_flags()?;
            }
            b'y' => {
                let delimiter = self.delimiter()?;
                self.delimited(delimiter, false)?;
                self.delimited(delimiter, false)?;
                self.end()?;
            }
            _ => {
                self.cursor.at = start;
                return Err("an unknown command");
            }
        }
        Ok(())
    }

    /// Up to two addresses and the `!` after them; tells whether there was an address.
    fn addresses(&mut self) -> Step<bool> {
        let addressed = self.address()?;
        if addressed {
            self.blanks();
            if self.cursor.eat(",") {
                self.blanks();
                if !self.address()? {
                    return Err("an address is missing");
                }
                self.blanks();
            }
        }
        if self.cursor.eat("!") {
            self.blanks();
        }
        Ok(addressed)
    }

    fn address(&mut self) -> Step<bool> {
        match self.cursor.peek() {
            Some(b'$') => self.cursor.at += 1,
            Some(b'+' | b'~') => {
                self.cursor.at += 1;
                self.number();
            }
            Some(b'0'..=b'9') => {
                self.number();
                self.blanks();
                if self.cursor.eat("~") {
                    self.number();
                }
            }
            Some(b'/' | b'\\') => {
                self.cursor.eat("\\");
                let delimiter = self.delimiter()?;
                self.delimited(delimiter, true)?;
                self.cursor.skip_while(|byte| matches!(byte, b'I' | b'M' | b' ' | b'\t'));
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn number(&mut self) {
        self.blanks();
        self.cursor.skip_while(|byte| byte.is_ascii_digit());
    }

    fn blanks(&mut self) {
        self.cursor.skip_while(|byte| matches!(byte, b' ' | b'\t'));
    }

    /// After most commands only the next command, a closing brace or a comment may follow.
    fn end(&mut self) -> Step {
        self.blanks();
        match self.cursor.peek() {
            None | Some(b'\n' | b';' | b'}' | b'#') => Ok(()),
            Some(_) => Err("something follows a command that takes no arguments"),
        }
    }

    /// A label ends at the earliest place where any sed ends it; the rest is read as commands.
    /// Tells its length.
    fn label(&mut self) -> Step<usize> {
        self.blanks();
        let start = self.cursor.at;
        self.cursor.skip_while(|byte| byte > b' ' && !matches!(byte, b';' | b'}' | b'#' | 0x7f));
        match self.cursor.peek() {
            None | Some(b'\n') => {}
            Some(b' ' | b'\t' | b';' | b'}' | b'#') => self.after_label = true,
            Some(_) => return Err("a control character in a label"),
        }
        Ok(self.cursor.at - start)
    }

    /// The text of `a`, `i` and `c`: to the first newline that no backslash precedes.
    fn text(&mut self) -> Step {
        self.blanks();
        match self.cursor.peek() {
            None => return Err("a text is missing"),
            Some(b'\\') => self.text_lead()?,
            Some(_) => {}
        }
        while let Some(byte) = self.cursor.peek() {
            match byte {
                b'\n' => break,
                b'\\' => {
                    self.cursor.at += 1;
                    self.escaped()?;
                }
                _ => self.cursor.at += 1,
            }
        }
        Ok(())
    }

    /// The backslash after `a`, `i` or `c`. Versions disagree whether blanks may stand between
    /// it and the newline, and whether a second backslash still belongs to it.
    fn text_lead(&mut self) -> Step {
        self.cursor.at += 1;
        if self.cursor.peek() == Some(b'\n') {
            return self.escaped();
        }
        self.blanks();
        match self.cursor.peek() {
            Some(b'\n' | b'\\') => Err("a text that versions of sed read differently"),
            _ => Ok(()),
        }
    }

    /// The character after a backslash, which may be the newline that continues a text.
    fn escaped(&mut self) -> Step {
        if self.cursor.bump() == Some(b'\n') && self.after_label {
            return Err("a label in the first of several joined lines");
        }
        Ok(())
    }

    fn delimiter(&mut self) -> Step<u8> {
        match self.cursor.bump() {
            Some(byte) if byte.is_ascii() && !matches!(byte, b'\n' | b'\\') => Ok(byte),
            _ => Err("an unusual delimiter"),
        }
    }

    /// To the next delimiter. In regular expressions it may stand inside brackets.
    fn delimited(&mut self, delimiter: u8, regex: bool) -> Step {
        loop {
            match self.cursor.bump() {
                None | Some(b'\n') => return Err("a delimiter is missing"),
                Some(byte) if byte == delimiter => return Ok(()),
                Some(b'\\') => {
                    let control = regex && self.cursor.peek() == Some(b'c');
                    self.escaped()?;
                    if control
                        && self
                            .cursor
                            .peek()
                            .is_none_or(|byte| !byte.is_ascii_alphanumeric() || byte == delimiter)
                    {
                        return Err("a control escape that versions of sed read differently");
                    }
                }
                Some(b'[') if regex => self.bracket()?,
                Some(_) => {}
            }
        }
    }

    /// The rest of a bracket expression. Its classes (`[:alpha:]`, `[.x.]`, `[=x=]`) may hold
    /// a closing bracket of their own.
    fn bracket(&mut self) -> Step {
        self.cursor.eat("^");
        self.cursor.eat("]");
        loop {
            match self.cursor.bump() {
                None | Some(b'\n') => return Err("a bracket is not closed"),
                Some(b']') => return Ok(()),
                Some(b'[') => {
                    if let Some(mark @ (b'.' | b':' | b'=')) = self.cursor.peek() {
                        self.cursor.at += 1;
                        self.class(mark)?;
                    }
                }
                // GNU sed takes the backslash for itself, others for an escape. Both are past
                // the bracket after a second one.
                Some(b'\\') if self.cursor.peek() == Some(b']') && self.cursor.peek_at(1) != Some(b']') => {
                    return Err("a bracket that versions of sed read differently");
                }
                Some(_) => {}
            }
        }
    }

    fn class(&mut self, mark: u8) -> Step {
        loop {
            match self.cursor.bump() {
                None | Some(b'\n') => return Err("a bracket is not closed"),
                Some(byte) if byte == mark && self.cursor.eat("]") => return Ok(()),
                Some(byte) if byte == mark && self.cursor.peek() == Some(mark) => {
                    return Err("a bracket that versions of sed read differently");
                }
                Some(_) => {}
            }
        }
    }

    fn substitute_flags(&mut self) -> Step {
        loop {
            self.blanks();
            let start = self.cursor.at;
            match self.cursor.peek() {
                None | Some(b'\n' | b';' | b'}' | b'#') => return Ok(()),
                Some(b'g' | b'p' | b'i' | b'I' | b'm' | b'M' | b'0'..=b'9') => self.cursor.at += 1,
                Some(b'e') => {
                    self.cursor.at += 1;
                    self.effects.add(
                        FindingKind::Exec,
                        start..self.cursor.at,
                        "runs the result as a command",
                    );
                }
                Some(b'w') => {
                    self.cursor.at += 1;
                    return self.write(start);
                }
                Some(_) => return Err("an unknown flag of a substitution"),
            }
        }
    }

    fn write(&mut self, start: usize) -> Step {
        let name = self.file_name()?;
        if name != "/dev/stdout" && name != "/dev/stderr" {
            self.effects.add(FindingKind::Write(Some(name)), start..self.cursor.at, "writes a file");
        }
        Ok(())
    }

    /// A file name is all the rest of the line.
    fn file_name(&mut self) -> Step<String> {
        self.blanks();
        let start = self.cursor.at;
        self.cursor.skip_while(|byte| byte != b'\n');
        match self.cursor.since(start) {
            "" => Err("a file name is missing"),
            name => Ok(name.to_owned()),
        }
    }
}
