//! Commands inside of words: what is known of what they print.

use super::{Captured, Walker, loops};
use crate::{
    analysis::{Output, Part, Via},
    risk::RiskKind,
    span::Span,
    state::{Places, State},
    surroundings::within,
    syntax::tree::{
        Command, CommandKind, Descriptor, List, Pipeline, Redirect, RedirectOperator, RedirectTarget,
    },
    value::{Argument, Origin, Text},
};

impl Walker<'_> {
    /// A command substitution; gives what is known of its output.
    pub(crate) fn substitution(&mut self, state: &State, list: &List, span: Span) -> Captured {
        let before = self.parts.len();
        self.inner(state, list, span);
        let unknown = || Captured::Texts(vec![Text::unknown(Origin::Output)]);
        let Some(part) = self.only_part(list, before) else { return unknown() };
        if let Some(text) = self.foreseen(state, list, part) {
            return Captured::Texts(vec![text]);
        }
        // A command that fails prints nothing.
        match part.output {
            Output::Text => unknown(),
            Output::Word => Captured::Word,
            Output::Plain => Captured::Texts(vec![Text::plain(), Text::default()]),
            Output::PlainWords => Captured::PlainWords(Text::plain()),
            Output::Number => Captured::Texts(vec![Text::number(), Text::default()]),
            Output::Numbers => Captured::PlainWords(Text::number()),
        }
    }

    /// The command whose output is that of the whole list: the last of one pipeline of simple
    /// commands, each of which came out as exactly one part, with nothing but data redirected into it.
    fn only_part(&self, list: &List, before: usize) -> Option<&Part> {
        let [item] = list.items.as_slice() else { return None };
        let pipeline = &item.chain.first;
        if item.background || !item.chain.rest.is_empty() || pipeline.negated || pipeline.timed {
            return None;
        }
        let simple = |command: &Command| matches!(&command.kind, CommandKind::Simple(simple) if !simple.words.is_empty());
        if pipeline.stages.iter().any(|stage| stage.errors_too || !simple(&stage.command)) {
            return None;
        }
        let last = pipeline.stages.last()?;
        let quiet = |redirect: &Redirect| match redirect.operator {
            RedirectOperator::Read | RedirectOperator::HereDocument | RedirectOperator::HereString => true,
            _ => redirect.descriptor == Some(Descriptor::Number(2)) && is_null(redirect),
        };
        if !last.command.redirects.iter().all(quiet) {
            return None;
        }
        let mut parts = self.parts.get(before..)?.iter().filter(|part| part.depth == self.depth + 1);
        let count = parts.clone().count();
        let newest = self.parts.last().filter(|part| part.depth == self.depth + 1)?;
        (count == pipeline.stages.len() && parts.all(|part| !part.argv.is_empty())).then_some(newest)
    }

    /// The output of a few commands that agents use all the time to say where they are.
    fn foreseen(&self, state: &State, list: &List, part: &Part) -> Option<Text> {
        let alone = |pipeline: &Pipeline| matches!(pipeline.stages.as_slice(), [only] if only.command.redirects.is_empty());
        let sure = list.items.iter().all(|item| alone(&item.chain.first));
        if !sure || part.argv.iter().any(|word| word.literal().is_none()) {
            return None;
        }
        let Places::OneOf(places) = &state.cwd else { return None };
        let [cwd] = places.as_slice() else { return None };
        let words: Vec<&str> = part.argv.iter().filter_map(Argument::literal).collect();
        if words.first().is_none_or(|name| state.function(name).is_some()) {
            return None;
        }
        match words.as_slice() {
            ["pwd"] => Some(Text::known(cwd.clone())),
            ["git", "rev-parse", "--show-toplevel"] => {
                self.surroundings.roots.iter().find(|root| within(cwd, root)).map(Text::known)
            }
            ["echo", word] if is_plain_word(word) => Some(Text::known(*word)),
            _ => None,
        }
    }

    /// The commands of a command or process substitution.
    pub(crate) fn inner(&mut self, state: &State, list: &List, span: Span) {
        if is_reread(list) {
            self.unresolved("a here-document in a substitution with other commands", span);
        }
        let before = self.parts.len();
        let doubts = self.unresolved.len();
        self.deeper(Via::Substitution, span, |walker| walker.list(state.clone(), list));
        let inside = self.parts.get(before..).unwrap_or_default();
        if self.unresolved.len() > doubts || !inside.iter().all(Part::only_reads) {
            self.risk(RiskKind::DangerousSubstitution, "the substitution does more than read", span);
        }
        self.hint(before);
    }
}

/// Bash prints a substitution and reads it again; a here-document in it then swallows the separator
/// behind it, however deep it stands. Only one alone, as in `$(cat <<EOF …)`, comes out as written.
fn is_reread(list: &List) -> bool {
    let mut commands = list.commands();
    let alone = matches!(
        (commands.next(), commands.next()),
        (Some(Command { kind: CommandKind::Simple(_), .. }), None)
    );
    !alone && holds_document(list)
}

fn holds_document(list: &List) -> bool {
    list.commands().any(command_holds_document)
}

fn command_holds_document(command: &Command) -> bool {
    let here = |redirect: &Redirect| matches!(redirect.target, RedirectTarget::HereDocument(_));
    if command.redirects.iter().any(here) {
        return true;
    }
    match &command.kind {
        CommandKind::Simple(_) | CommandKind::Test(_) | CommandKind::Arithmetic(_) => false,
        CommandKind::Group(list) | CommandKind::Subshell(list) => holds_document(list),
        CommandKind::If { branches, otherwise } => {
            let mut lists = branches.iter().flat_map(|(condition, body)| [condition, body]).chain(otherwise);
            lists.any(holds_document)
        }
        CommandKind::While { condition, body, .. } => holds_document(condition) || holds_document(body),
        CommandKind::For { body, .. }
        | CommandKind::ForArithmetic { body, .. }
        | CommandKind::Select { body, .. } => holds_document(body),
        CommandKind::Case { arms, .. } => arms.iter().any(|arm| holds_document(&arm.body)),
        CommandKind::Function { body, .. } | CommandKind::Coprocess { body, .. } => {
            command_holds_document(body)
        }
    }
}

/// Whether a redirection leads to nowhere.
fn is_null(redirect: &Redirect) -> bool {
    match &redirect.target {
        RedirectTarget::Word(word) => loops::literal(word).as_deref() == Some("/dev/null"),
        RedirectTarget::HereDocument(_) => false,
    }
}

/// Whether `echo` gives a word back as it is, and splitting leaves it alone.
fn is_plain_word(word: &str) -> bool {
    !word.starts_with('-')
        && !word.is_empty()
        && word.chars().all(|c| c.is_ascii_alphanumeric() || "_./-".contains(c))
}
