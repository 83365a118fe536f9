//! Redirections: effects of their own, whatever the program.

use super::Walker;
use crate::{
    effect::{Cause, EffectKind, Target},
    risk::RiskKind,
    span::Span,
    state::{State, Value},
    syntax::tree::{Descriptor, Redirect, RedirectOperator, RedirectTarget, Word},
    value::{Origin, Text},
};

impl Walker<'_> {
    pub(super) fn redirects(&mut self, state: &mut State, redirects: &[Redirect]) {
        let cause = std::mem::replace(&mut self.run.cause, Cause::Redirection);
        for redirect in redirects {
            if let Some(Descriptor::Variable(name)) = &redirect.descriptor {
                self.check_assignment(state, name, redirect.span);
                state.set(name, Value::Unknown(Origin::Computed));
            }
            match &redirect.target {
                RedirectTarget::HereDocument(document) => {
                    let texts = self.text(state, &document.body);
                    texts.iter().for_each(|text| self.note_words(text));
                }
                RedirectTarget::Word(word) => self.redirect(state, redirect.operator, word),
            }
        }
        self.run.cause = cause;
    }

    fn redirect(&mut self, state: &mut State, operator: RedirectOperator, word: &Word) {
        if operator == RedirectOperator::HereString {
            let texts = self.text(state, word);
            texts.iter().for_each(|text| self.note_words(text));
            return;
        }
        for way in self.expand(state, word) {
            let [argument] = way.as_slice() else {
                self.dangerous_target(&Text::unknown(Origin::Computed), word.span);
                self.effect(EffectKind::Write(Target::Unknown), word.span);
                continue;
            };
            let text = &argument.text;
            let duplicates =
                matches!(operator, RedirectOperator::DuplicateIn | RedirectOperator::DuplicateOut);
            // Behind `>&` bash expands the word a second time, whatever its quotes.
            let plain = |text: &str| {
                text.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '/' | '-'))
            };
            if duplicates && !is_descriptor(text) && !text.literal().is_some_and(plain) {
                self.unresolved("a redirection is expanded twice", word.span);
            }
            match operator {
                RedirectOperator::DuplicateIn | RedirectOperator::DuplicateOut if is_descriptor(text) => {}
                RedirectOperator::Read | RedirectOperator::DuplicateIn => {
                    // `/dev/tcp/host/port` is what the shell itself connects to. A name of which nothing is
                    // known is one of a file that is read only in a place without a network.
                    let prefix = text.prefix();
                    let reaches = prefix.starts_with("/dev") || "/dev/tcp/".starts_with(prefix);
                    let data = prefix.is_empty() && text.origin() != Some(Origin::Environment);
                    if text.origin().is_some() && reaches && !data {
                        self.effect(EffectKind::Network { host: None, sends: false }, word.span);
                    }
                    self.read_file(state, text, word.span);
                }
                _ => self.write_file(state, text, word.span),
            }
        }
    }

    /// Effects of reading the file a text names.
    pub(super) fn read_file(&mut self, state: &State, text: &Text, span: Span) {
        for target in self.targets(&state.cwd, text) {
            if !self.device(&target, false, span) {
                self.environ(&target, span);
                self.effect(EffectKind::Read(target), span);
            }
        }
    }

    fn write_file(&mut self, state: &State, text: &Text, span: Span) {
        self.dangerous_target(text, span);
        for target in self.targets(&state.cwd, text) {
            if self.device(&target, true, span) {
                continue;
            }
            let inside = match &target {
                Target::Path(path) => self.surroundings.holds(path) && !(self.surroundings.sensitive)(path),
                _ => false,
            };
            if !inside {
                let detail = format!("a redirection writes {target}");
                self.risk(RiskKind::SensitiveRedirect, &detail, span);
            }
            self.effect(EffectKind::Write(target), span);
        }
    }

    fn dangerous_target(&mut self, text: &Text, span: Span) {
        if text.origin().is_some_and(|origin| origin == Origin::Environment) {
            self.risk(
                RiskKind::DangerousVariables,
                "the target of a redirection is an unknown variable",
                span,
            );
        }
    }

    /// Whether the target is a device without lasting effect; a connection is noted here.
    pub(super) fn device(&mut self, target: &Target, write: bool, span: Span) -> bool {
        let (Target::Path(path) | Target::Pattern(path)) = target else { return false };
        if let Some(place) = path.strip_prefix("/dev/tcp/").or_else(|| path.strip_prefix("/dev/udp/")) {
            let host = place.split('/').next().unwrap_or_default().to_owned();
            self.risk(RiskKind::NetworkExfiltration, "a redirection opens a connection", span);
            self.effect(EffectKind::Network { host: Some(host), sends: write }, span);
            return true;
        }
        let streams = ["/dev/null", "/dev/stdin", "/dev/stdout", "/dev/stderr"];
        streams.contains(&path.as_str())
            || path.strip_prefix("/dev/fd/").is_some_and(|rest| !rest.contains('/'))
    }

    /// Notes reading a process's environment.
    pub(super) fn environ(&mut self, target: &Target, span: Span) {
        let (Target::Path(path) | Target::Pattern(path)) = target else { return };
        let Some(rest) = path.strip_prefix("/proc/") else { return };
        let file = rest.rsplit('/').next().unwrap_or_default();
        let secret = ["environ", "mem", "auxv"];
        let matches = secret.iter().any(|name| {
            file == *name
                || (file.contains(['*', '?', '['])
                    && name.starts_with(file.split(['*', '?', '[']).next().unwrap_or("")))
        });
        if matches {
            self.risk(RiskKind::ProcEnvironAccess, "the environment of a process is read", span);
            self.effect(EffectKind::Environment("reads the environment of a process".to_owned()), span);
        }
    }
}

/// `2`, `-`, `2-`: a descriptor instead of a file.
fn is_descriptor(text: &Text) -> bool {
    let Some(text) = text.literal() else {
        return matches!(text.stretches(), [crate::value::Stretch::Number]);
    };
    text == "-" || {
        let digits = text.strip_suffix('-').unwrap_or(text);
        !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())
    }
}
