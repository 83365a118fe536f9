//! Writes a tree as text again, in one form for everything that means the same.

use super::tree::{
    Arithmetic, ArmEnd, AssignedValue, Assignment, Chain, Command, CommandKind, Connector, Descriptor,
    HereDocument, List, Operation, Parameter, Piece, PieceKind, Pipeline, Redirect, RedirectOperator,
    RedirectTarget, Simple, Substitution, Test, Word,
};

/// The canonical text of commands. Parsing it gives the same tree, places aside.
pub fn print(list: &List) -> String {
    let mut printer = Printer::default();
    for item in &list.items {
        printer.chain(&item.chain);
        if item.background {
            printer.text.push_str(" &");
        }
        printer.newline();
    }
    printer.text
}

/// The text so far.
#[derive(Default)]
struct Printer<'a> {
    /// What was written.
    text: String,
    /// Here-documents whose bodies follow after the line.
    pending: Vec<&'a HereDocument>,
    /// Directly between double quotes.
    quoted: bool,
}

impl<'a> Printer<'a> {
    /// Writes plain text.
    fn put(&mut self, text: &str) {
        self.text.push_str(text);
    }

    /// Ends the line and writes the bodies that belong after it.
    fn newline(&mut self) {
        self.put("\n");
        for document in std::mem::take(&mut self.pending) {
            self.pieces(&document.body.pieces);
            // Where the line stands in the body of another with the same tag, the bare tag would end that one.
            self.put(if document.strip_tabs { "\t" } else { "" });
            self.put(&document.tag);
            self.put("\n");
        }
    }

    /// Commands, each with its end, so that anything may follow.
    fn list(&mut self, list: &'a List) {
        for item in &list.items {
            self.chain(&item.chain);
            if item.background {
                self.put(" &");
            }
            if !self.pending.is_empty() {
                self.newline();
            } else if item.background {
                self.put(" ");
            } else {
                self.put("; ");
            }
        }
    }

    /// Commands between brackets of a substitution, which has lines of its own.
    fn substituted(&mut self, open: &str, list: &'a List) {
        self.put(open);
        // `time` is refused right behind the parenthesis.
        if list.items.first().is_some_and(|item| item.chain.first.timed) {
            self.put("\n");
        }
        let pending = std::mem::take(&mut self.pending);
        self.list(list);
        self.pending = pending;
        self.put(")");
    }

    fn chain(&mut self, chain: &'a Chain) {
        self.pipeline(&chain.first);
        for (connector, pipeline) in &chain.rest {
            self.put(match connector {
                Connector::And => " && ",
                Connector::Or => " || ",
            });
            self.pipeline(pipeline);
        }
    }

    fn pipeline(&mut self, pipeline: &'a Pipeline) {
        let bare = pipeline.stages.is_empty();
        let mut prefix = Vec::new();
        if pipeline.timed {
            prefix.push("time");
        }
        if pipeline.negated {
            prefix.push("!");
        }
        if bare && prefix.is_empty() {
            prefix.push("! !");
        }
        self.put(&prefix.join(" "));
        self.put(if bare || prefix.is_empty() { "" } else { " " });
        let last = pipeline.stages.len().saturating_sub(1);
        for (index, stage) in pipeline.stages.iter().enumerate() {
            self.command(&stage.command);
            if index < last {
                self.put(if stage.errors_too { " |& " } else { " | " });
            }
        }
    }

    fn command(&mut self, command: &'a Command) {
        if let CommandKind::Simple(simple) = &command.kind {
            // Redirections first: a word that is reserved stays a word behind one.
            for (index, redirect) in command.redirects.iter().enumerate() {
                self.put(if index == 0 { "" } else { " " });
                self.redirect(redirect);
            }
            self.simple(simple, command.redirects.is_empty());
            return;
        }
        self.kind(&command.kind);
        for redirect in &command.redirects {
            self.put(" ");
            self.redirect(redirect);
        }
    }

    fn simple(&mut self, simple: &'a Simple, mut first: bool) {
        for assignment in &simple.assignments {
            self.put(if first { "" } else { " " });
            self.assignment(assignment);
            first = false;
        }
        for word in &simple.words {
            self.put(if first { "" } else { " " });
            self.word(word);
            first = false;
        }
    }

    fn assignment(&mut self, assignment: &'a Assignment) {
        self.put(&assignment.name);
        if let Some(subscript) = &assignment.subscript {
            self.put("[");
            self.arithmetic(subscript);
            self.put("]");
        }
        self.put(if assignment.append { "+=" } else { "=" });
        match &assignment.value {
            AssignedValue::Scalar(word) => self.word(word),
            AssignedValue::Array(words) => self.array(words),
        }
    }

    fn array(&mut self, words: &'a [Word]) {
        self.put("(");
        self.words(words, " ");
        self.put(")");
    }

    fn kind(&mut self, kind: &'a CommandKind) {
        match kind {
            CommandKind::Simple(simple) => self.simple(simple, true),
            CommandKind::Group(list) => self.enclosed("{ ", list, "}"),
            CommandKind::Subshell(list) => self.enclosed("( ", list, ")"),
            CommandKind::If { branches, otherwise } => self.if_command(branches, otherwise.as_ref()),
            CommandKind::While { until, condition, body } => {
                self.put(if *until { "until " } else { "while " });
                self.list(condition);
                self.enclosed("do ", body, "done");
            }
            CommandKind::For { name, words, body } => self.for_command("for", name, words.as_deref(), body),
            CommandKind::Select { name, words, body } => {
                self.for_command("select", name, words.as_deref(), body)
            }
            CommandKind::ForArithmetic { header, body } => {
                self.put("for ((");
                for (index, expression) in header.iter().enumerate() {
                    self.put(if index == 0 { "" } else { ";" });
                    self.arithmetic(expression);
                }
                self.put(")); ");
                self.enclosed("do ", body, "done");
            }
            CommandKind::Case { .. } => self.case_command(kind),
            CommandKind::Function { name, body } => {
                self.put("function ");
                self.put(name);
                self.put(" () ");
                self.command(body);
            }
            CommandKind::Test(test) => {
                self.put("[[ ");
                self.test(test);
                self.put(" ]]");
            }
            CommandKind::Arithmetic(expression) => {
                self.put("((");
                self.arithmetic(expression);
                self.put("))");
            }
            CommandKind::Coprocess { name, body } => {
                self.put("coproc ");
                if let Some(name) = name {
                    self.put(name);
                    self.put(" ");
                }
                self.command(body);
            }
        }
    }

    fn enclosed(&mut self, open: &str, list: &'a List, close: &str) {
        self.put(open);
        self.list(list);
        self.put(close);
    }

    fn if_command(&mut self, branches: &'a [(List, List)], otherwise: Option<&'a List>) {
        for (index, (condition, body)) in branches.iter().enumerate() {
            self.put(if index == 0 { "if " } else { "elif " });
            self.list(condition);
            self.enclosed("then ", body, "");
        }
        if let Some(list) = otherwise {
            self.enclosed("else ", list, "");
        }
        self.put("fi");
    }

    fn for_command(&mut self, keyword: &str, name: &str, words: Option<&'a [Word]>, body: &'a List) {
        self.put(keyword);
        self.put(" ");
        self.put(name);
        if let Some(words) = words {
            self.put(" in ");
            self.words(words, " ");
        }
        self.enclosed("; do ", body, "done");
    }

    fn case_command(&mut self, kind: &'a CommandKind) {
        let CommandKind::Case { subject, arms } = kind else { return };
        self.put("case ");
        self.word(subject);
        self.put(" in ");
        for arm in arms {
            self.put("(");
            self.words(&arm.patterns, " | ");
            self.put(") ");
            self.list(&arm.body);
            self.put(match arm.end {
                ArmEnd::Break => ";; ",
                ArmEnd::FallThrough => ";& ",
                ArmEnd::TestNext => ";;& ",
            });
        }
        self.put("esac");
    }

    fn test(&mut self, test: &'a Test) {
        match test {
            Test::Word(word) => self.word(word),
            Test::Unary { operator, operand } => {
                self.put(operator);
                self.put(" ");
                self.word(operand);
            }
            Test::Binary { left, operator, right } => {
                self.word(left);
                self.put(" ");
                self.put(operator);
                self.put(" ");
                self.word(right);
            }
            Test::Not(inside) => {
                self.put("! ");
                self.test(inside);
            }
            Test::And(left, right) => {
                self.test(left);
                self.put(" && ");
                self.test(right);
            }
            Test::Or(left, right) => {
                self.test(left);
                self.put(" || ");
                self.test(right);
            }
            Test::Group(inside) => {
                self.put("( ");
                self.test(inside);
                self.put(" )");
            }
        }
    }

    fn redirect(&mut self, redirect: &'a Redirect) {
        match &redirect.descriptor {
            None => {}
            Some(Descriptor::Number(number)) => self.put(&number.to_string()),
            Some(Descriptor::Variable(name)) => self.put(&format!("{{{name}}}")),
        }
        self.put(operator_text(redirect.operator));
        match &redirect.target {
            RedirectTarget::Word(word) => {
                self.put(" ");
                self.word(word);
            }
            RedirectTarget::HereDocument(document) => {
                self.put(if document.strip_tabs { "- " } else { " " });
                if document.quoted {
                    self.put(&format!("'{}'", document.tag.replace('\'', "'\\''")));
                } else {
                    self.put(&document.tag);
                }
                self.pending.push(document);
            }
        }
    }

    fn words(&mut self, words: &'a [Word], between: &str) {
        for (index, word) in words.iter().enumerate() {
            self.put(if index == 0 { "" } else { between });
            self.word(word);
        }
    }

    fn word(&mut self, word: &'a Word) {
        self.pieces(&word.pieces);
    }

    fn arithmetic(&mut self, expression: &'a Arithmetic) {
        self.pieces(&expression.pieces);
    }

    fn pieces(&mut self, pieces: &'a [Piece]) {
        for piece in pieces {
            self.piece(piece);
        }
    }

    fn piece(&mut self, piece: &'a Piece) {
        let quoted = std::mem::take(&mut self.quoted);
        match &piece.kind {
            PieceKind::Literal(text) => self.put(text),
            PieceKind::Escaped(character) => {
                self.put("\\");
                self.text.push(*character);
            }
            PieceKind::Single(text) => self.put(&format!("'{text}'")),
            PieceKind::Double(inside) => self.quoted("\"", inside),
            PieceKind::AnsiC(text) => self.ansi_c(text),
            PieceKind::Locale(inside) => self.quoted("$\"", inside),
            PieceKind::Parameter(parameter) => self.parameter(parameter),
            PieceKind::Command(substitution) => self.substitution(substitution, quoted),
            PieceKind::Arithmetic(expression) if expression.brackets => {
                self.put("$[");
                self.arithmetic(expression);
                self.put("]");
            }
            PieceKind::Arithmetic(expression) => {
                self.put("$((");
                self.arithmetic(expression);
                self.put("))");
            }
            PieceKind::Process { output, list } => {
                self.substituted(if *output { ">( " } else { "<( " }, list)
            }
            PieceKind::Array(words) => self.array(words),
        }
        self.quoted = quoted;
    }

    fn quoted(&mut self, open: &str, inside: &'a [Piece]) {
        self.put(open);
        self.quoted = true;
        self.pieces(inside);
        self.put("\"");
    }

    fn ansi_c(&mut self, text: &str) {
        self.put("$'");
        for character in text.chars() {
            match character {
                '\'' | '\\' => {
                    self.put("\\");
                    self.text.push(character);
                }
                _ if character.is_ascii_control() => self.put(&format!("\\x{:02x}", u32::from(character))),
                _ => self.text.push(character),
            }
        }
        self.put("'");
    }

    fn substitution(&mut self, substitution: &'a Substitution, quoted: bool) {
        if !substitution.backticks {
            self.substituted("$( ", &substitution.list);
            return;
        }
        let mut inner = Printer::default();
        inner.list(&substitution.list);
        // A here-document may end with the text, and around it may be one with the same tag.
        let text = inner.text.strip_suffix('\n').unwrap_or(&inner.text);
        let mut text = text.replace('\\', "\\\\").replace('`', "\\`");
        if quoted {
            text = text.replace('"', "\\\"");
        }
        self.put("`");
        self.put(&text);
        self.put("`");
    }

    fn parameter(&mut self, parameter: &'a Parameter) {
        let special = matches!(parameter.name.as_str(), "$" | "?" | "!" | "#" | "@" | "*" | "-");
        let bare = parameter.subscript.is_none() && parameter.operation.is_none();
        if special && bare && !parameter.length && !parameter.indirect {
            // Braces that were not there could be taken for others.
            self.put("$");
            self.put(&parameter.name);
            return;
        }
        self.put("${");
        self.put(if parameter.length { "#" } else { "" });
        self.put(if parameter.indirect { "!" } else { "" });
        self.put(&parameter.name);
        if let Some(subscript) = &parameter.subscript {
            self.put("[");
            self.arithmetic(subscript);
            self.put("]");
        }
        if let Some(operation) = &parameter.operation {
            self.operation(operation);
        }
        self.put("}");
    }

    fn operation(&mut self, operation: &'a Operation) {
        let (operator, word) = match operation {
            Operation::Default(word) => (":-", word),
            Operation::Assign(word) => (":=", word),
            Operation::Error(word) => (":?", word),
            Operation::Alternative(word) => (":+", word),
            Operation::Trim { operator, pattern } | Operation::Case { operator, pattern } => {
                (operator.as_str(), pattern)
            }
            Operation::Replace { operator, pattern, replacement } => {
                self.put(operator);
                self.word(pattern);
                if let Some(replacement) = replacement {
                    self.put("/");
                    self.word(replacement);
                }
                return;
            }
            Operation::Substring { offset, length } => {
                self.put(":");
                self.arithmetic(offset);
                if let Some(length) = length {
                    self.put(":");
                    self.arithmetic(length);
                }
                return;
            }
            Operation::Transform(letter) => return self.put(&format!("@{letter}")),
            Operation::Names => return self.put("*"),
        };
        self.put(operator);
        self.word(word);
    }
}

fn operator_text(operator: RedirectOperator) -> &'static str {
    match operator {
        RedirectOperator::Read => "<",
        RedirectOperator::Write => ">",
        RedirectOperator::Append => ">>",
        RedirectOperator::Clobber => ">|",
        RedirectOperator::ReadWrite => "<>",
        RedirectOperator::DuplicateIn => "<&",
        RedirectOperator::DuplicateOut => ">&",
        RedirectOperator::Both => "&>",
        RedirectOperator::BothAppend => "&>>",
        RedirectOperator::HereDocument => "<<",
        RedirectOperator::HereString => "<<<",
    }
}
