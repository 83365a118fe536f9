//! The simple commands as the other parser sees them, asked for in a child process.

use std::io::{self, BufRead, BufReader, Cursor, Read, Write};
use std::process::{Child as Process, ChildStdin, Command as Start, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::time::Duration;

use brush_parser::ast::{
    Command, CommandPrefixOrSuffixItem, CompoundCommand, CompoundList, FunctionBody, Word,
};
use brush_parser::word::{self, WordPiece};
use brush_parser::{Parser, ParserOptions};

use crate::{Words, sorted};

/// What the other parser said.
pub(crate) enum Answer {
    /// It does not parse.
    Refused,
    /// It took too long.
    Hung,
    /// The commands.
    Commands(Vec<Words>),
}

/// The child, started anew after each kill.
pub(crate) struct Child {
    process: Process,
    input: ChildStdin,
    answers: Receiver<String>,
    patience: Duration,
}

impl Child {
    pub(crate) fn start(patience: Duration) -> io::Result<Self> {
        let mut process = Start::new(std::env::current_exe()?)
            .arg("--child")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()?;
        let missing = || io::Error::other("the child has no pipes");
        let input = process.stdin.take().ok_or_else(missing)?;
        let output = process.stdout.take().ok_or_else(missing)?;
        let (sender, answers) = mpsc::channel();
        std::thread::spawn(move || {
            for line in BufReader::new(output).lines().map_while(Result::ok) {
                if sender.send(line).is_err() {
                    return;
                }
            }
        });
        Ok(Self { process, input, answers, patience })
    }

    pub(crate) fn ask(&mut self, script: &str) -> io::Result<Answer> {
        let size = u32::try_from(script.len()).map_err(io::Error::other)?;
        let sent =
            self.input.write_all(&size.to_le_bytes()).and_then(|()| self.input.write_all(script.as_bytes()));
        let answer = if sent.is_ok() { self.answers.recv_timeout(self.patience).ok() } else { None };
        let Some(line) = answer else {
            // Spinning, out of stack or panicked: all the same here.
            self.process.kill()?;
            self.process.wait()?;
            *self = Self::start(self.patience)?;
            return Ok(Answer::Hung);
        };
        Ok(decode(&line).map_or(Answer::Refused, Answer::Commands))
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// The life of the child: a script in, a line out.
pub(crate) fn answer() -> io::Result<()> {
    let mut input = io::stdin().lock();
    let mut size = [0; 4];
    while input.read_exact(&mut size).is_ok() {
        let mut script = vec![0; u32::from_le_bytes(size) as usize];
        input.read_exact(&mut script)?;
        let script = String::from_utf8_lossy(&script);
        let line = commands(&script).map_or_else(|| "refused".to_owned(), |found| encode(&found));
        writeln!(io::stdout(), "{line}")?;
    }
    Ok(())
}

/// Hexadecimal words, because any character can stand in one.
fn encode(commands: &[Words]) -> String {
    let word = |word: &Option<String>| match word {
        Some(text) => text.bytes().fold("=".to_owned(), |line, byte| line + &format!("{byte:02x}")),
        None => "?".to_owned(),
    };
    let lines: Vec<String> =
        commands.iter().map(|words| words.iter().map(word).collect::<Vec<_>>().join(" ")).collect();
    format!("ok;{}", lines.join(";"))
}

fn decode(line: &str) -> Option<Vec<Words>> {
    let word = |word: &str| {
        let hex = word.strip_prefix('=')?;
        let bytes: Vec<u8> = (0..hex.len() / 2)
            .filter_map(|at| u8::from_str_radix(hex.get(at * 2..at * 2 + 2)?, 16).ok())
            .collect();
        String::from_utf8(bytes).ok()
    };
    let commands = line.strip_prefix("ok;")?;
    let words = |command: &str| command.split(' ').map(word).collect();
    Some(commands.split(';').filter(|command| !command.is_empty()).map(words).collect())
}

fn commands(script: &str) -> Option<Vec<Words>> {
    let options = ParserOptions { enable_extended_globbing: false, ..ParserOptions::default() };
    let program = Parser::new(Cursor::new(script), &options).parse_program().ok()?;
    let mut found = Vec::new();
    for complete in &program.complete_commands {
        list(complete, &options, &mut found)?;
    }
    Some(sorted(found))
}

fn list(list: &CompoundList, options: &ParserOptions, found: &mut Vec<Words>) -> Option<()> {
    for item in &list.0 {
        for (_, pipeline) in &item.0 {
            for part in &pipeline.seq {
                command(part, options, found)?;
            }
        }
    }
    Some(())
}

fn command(whole: &Command, options: &ParserOptions, found: &mut Vec<Words>) -> Option<()> {
    match whole {
        Command::Simple(simple) => {
            let mut words: Words = Vec::new();
            if let Some(name) = &simple.word_or_name {
                words.push(literal(name, options));
            }
            for item in simple.suffix.iter().flat_map(|suffix| &suffix.0) {
                match item {
                    CommandPrefixOrSuffixItem::Word(word) => words.push(literal(word, options)),
                    CommandPrefixOrSuffixItem::AssignmentWord(_, word) => words.push(literal(word, options)),
                    CommandPrefixOrSuffixItem::ProcessSubstitution(..) => words.push(None),
                    CommandPrefixOrSuffixItem::IoRedirect(_) => {}
                }
            }
            found.push(words);
            Some(())
        }
        Command::Compound(compound, _) => inside(compound, options, found),
        Command::Function(function) => {
            let FunctionBody(body, _) = &function.body;
            inside(body, options, found)
        }
        Command::ExtendedTest(..) => Some(()),
    }
}

fn inside(compound: &CompoundCommand, options: &ParserOptions, found: &mut Vec<Words>) -> Option<()> {
    match compound {
        CompoundCommand::Arithmetic(_) => Some(()),
        CompoundCommand::ArithmeticForClause(clause) => list(&clause.body.list, options, found),
        CompoundCommand::BraceGroup(group) => list(&group.list, options, found),
        CompoundCommand::Subshell(shell) => list(&shell.list, options, found),
        CompoundCommand::ForClause(clause) => list(&clause.body.list, options, found),
        CompoundCommand::CaseClause(clause) => {
            for case in clause.cases.iter().filter_map(|case| case.cmd.as_ref()) {
                list(case, options, found)?;
            }
            Some(())
        }
        CompoundCommand::IfClause(clause) => {
            list(&clause.condition, options, found)?;
            list(&clause.then, options, found)?;
            for other in clause.elses.iter().flatten() {
                if let Some(condition) = &other.condition {
                    list(condition, options, found)?;
                }
                list(&other.body, options, found)?;
            }
            Some(())
        }
        CompoundCommand::WhileClause(clause) | CompoundCommand::UntilClause(clause) => {
            list(&clause.0, options, found)?;
            list(&clause.1.list, options, found)
        }
        CompoundCommand::Coprocess(process) => command(&process.body, options, found),
    }
}

fn literal(whole: &Word, options: &ParserOptions) -> Option<String> {
    let mut text = String::new();
    for piece in word::parse(&whole.value, options).ok()? {
        add(&piece.piece, false, &mut text)?;
    }
    Some(text)
}

fn add(piece: &WordPiece, quoted: bool, text: &mut String) -> Option<()> {
    match piece {
        WordPiece::Text(part) if !quoted && part.contains('~') => return None,
        WordPiece::Text(part) | WordPiece::SingleQuotedText(part) => text.push_str(part),
        WordPiece::EscapeSequence(escape) => {
            let escaped = escape.strip_prefix('\\').unwrap_or(escape);
            text.push_str(if escaped == "\n" { "" } else { escaped });
        }
        WordPiece::DoubleQuotedSequence(inner) | WordPiece::GettextDoubleQuotedSequence(inner) => {
            for piece in inner {
                add(&piece.piece, true, text)?;
            }
        }
        _ => return None,
    }
    Some(())
}
