//! Builtins that change what later commands mean.

use std::rc::Rc;

use super::{Outcome, Walker, simple::Lookup};
use crate::{
    effect::{EffectKind, Target},
    expand::is_number,
    risk::RiskKind,
    span::Span,
    state::{Places, State},
    surroundings::join,
    value::{Argument, Stretch, Text},
};

/// Options of `set` that leave the meaning of the text alone.
const SET_LETTERS: &str = "euxvfhbCETm";
const SET_NAMES: &[&str] =
    &["errexit", "nounset", "xtrace", "verbose", "pipefail", "noglob", "errtrace", "functrace", "noclobber"];
/// Options of `shopt` that do.
const SHOPT_NAMES: &[&str] = &["globstar", "nocaseglob", "nullglob", "inherit_errexit"];

/// Whether `set -o NAME` leaves the meaning of the text alone.
pub(super) fn is_harmless_option(name: &str) -> bool {
    SET_NAMES.contains(&name)
}

impl Walker<'_> {
    /// Follows a builtin that changes the shell; gives the state back when the tables say all there is.
    pub(super) fn builtin(
        &mut self,
        mut state: State,
        name: &str,
        arguments: &[Argument],
        span: Span,
    ) -> Result<Outcome, State> {
        let rest = arguments.get(1..).unwrap_or_default();
        match name {
            "cd" => return Ok(self.cd(state, arguments, span)),
            "pushd" | "popd" => return Ok(self.stack(state, name, arguments, span)),
            "eval" => return Ok(self.eval(state, arguments, span)),
            "exec" | "command" | "builtin" => return self.prefixed(state, name, arguments, span),
            "source" | "." => {
                self.risk(RiskKind::CodeExecution, "a file is run as part of this script", span);
                self.unresolved("a sourced file is not looked into", span);
            }
            "export" | "declare" | "typeset" | "local" | "readonly" => {
                self.declare(&mut state, name, rest, span)
            }
            "unset" => self.unset(&mut state, rest),
            "read" | "mapfile" | "readarray" | "getopts" => self.read_names(&mut state, name, rest),
            "printf" if rest.first().is_some_and(|first| first.text.prefix().starts_with("-v")) => {
                if rest.len() < 3 && !rest.iter().any(|word| word.many) {
                    self.unresolved("printf without a format assigns nothing", span);
                }
                self.read_names(&mut state, name, rest.get(..2).unwrap_or(rest));
                let named = if rest.first().and_then(Argument::literal) == Some("-v") { 2 } else { 1 };
                self.counts(&mut state, rest.get(named..).unwrap_or_default());
            }
            "printf" => self.counts(&mut state, rest),
            "let" => {
                for argument in rest {
                    self.compute(&mut state, argument);
                }
            }
            "set" if !rest.is_empty() => {
                self.set(&mut state, rest);
                self.part(arguments, span);
                return Ok(Outcome::same(state));
            }
            "shift" => {
                let count = rest
                    .first()
                    .map_or(Some(1), |first| first.literal().and_then(|text| text.parse::<usize>().ok()));
                state.positional = match (&state.positional, count) {
                    (Some(list), Some(count)) if count <= list.len() => {
                        Some(Rc::new(list.get(count..).unwrap_or_default().to_vec()))
                    }
                    (Some(list), Some(_)) => Some(Rc::clone(list)),
                    _ => None,
                };
            }
            "shopt" => {
                let harmless = rest.iter().all(|argument| {
                    argument
                        .literal()
                        .is_some_and(|text| text.starts_with('-') || SHOPT_NAMES.contains(&text))
                });
                if !harmless {
                    self.unresolved("an option of the shell is changed", span);
                }
                state.patterns_go |= rest.iter().any(|argument| argument.literal() == Some("nullglob"));
            }
            "trap" => {
                let cleared = rest
                    .first()
                    .and_then(Argument::literal)
                    .is_some_and(|text| matches!(text, "" | "-" | "-l" | "-p"));
                // Which signals are as they were or go unheard changes nothing else.
                let first = rest.first().and_then(Argument::literal);
                if matches!(first, Some("" | "-")) && rest.iter().all(|word| word.literal().is_some()) {
                    self.part(arguments, span);
                    return Ok(Outcome::same(state));
                }
                if !rest.is_empty() && !cleared {
                    self.risk(RiskKind::CodeExecution, "code is kept for later", span);
                    self.unresolved("a trap runs its code later", span);
                    if let Some(code) = rest.first() {
                        self.shell_code(&state, code, Vec::new(), name);
                    }
                }
            }
            "wait"
                if rest.iter().any(|argument| argument.text.prefix().starts_with("-p") || argument.many) =>
            {
                self.unresolved("a name that is not known may be assigned", span);
            }
            "alias" | "hash" | "enable" | "unalias"
                if rest.iter().any(|argument| renames(name, argument)) =>
            {
                self.unresolved("names are given another meaning", span);
            }
            "[" | "test" => self.test_words(rest),
            "return" => self.returns.push(state.clone()),
            _ => {}
        }
        Err(state)
    }

    /// `[` evaluates subscripts behind `-v`: what is not known must not be able to be an operator.
    fn test_words(&mut self, arguments: &[Argument]) {
        let arguments = match arguments.split_last() {
            Some((last, rest)) if last.literal() == Some("]") => rest,
            _ => arguments,
        };
        let operator = |at: Option<usize>| {
            let word = at.and_then(|at| arguments.get(at)).and_then(Argument::literal);
            word.is_some_and(|word| word.starts_with('-') || matches!(word, "=" | "==" | "!=" | "<" | ">"))
        };
        for (at, argument) in arguments.iter().enumerate() {
            let known = argument.literal().is_some() || is_number(&argument.text);
            let placed = arguments.len() == 1 || operator(at.checked_sub(1)) || operator(Some(at + 1));
            let several = !argument.is_one() && argument.text.may_be_option() && !argument.has_file_end();
            if argument.many || several || (!known && !placed) {
                self.unresolved("a test whose operators are not known can run code", argument.span);
            }
        }
    }

    /// `%n` in the format of `printf` sets a variable. What is not known of a format may hold one.
    fn counts(&mut self, state: &mut State, arguments: &[Argument]) {
        let ended = arguments.first().and_then(Argument::literal) == Some("--");
        let arguments = arguments.get(usize::from(ended)..).unwrap_or_default();
        let Some((format, operands)) = arguments.split_first() else { return };
        if format.literal().is_none_or(counts) && !is_number(&format.text) {
            self.read_names(state, "printf", operands);
        }
    }

    fn cd(&mut self, state: State, arguments: &[Argument], span: Span) -> Outcome {
        let mut rest = arguments.get(1..).unwrap_or_default();
        while let Some(option) = rest.first().and_then(Argument::literal) {
            match option {
                "-L" | "-P" | "-e" | "-@" | "--" => rest = rest.get(1..).unwrap_or_default(),
                _ => break,
            }
        }
        let mut success = state.clone();
        success.previous = state.cwd.clone();
        success.cwd = match rest {
            [] => Places::OneOf(vec![self.surroundings.home.clone()]),
            [only] if only.literal() == Some("-") => state.previous.clone(),
            [only] if !only.many => self.place(&state, &only.text),
            _ => Places::Unknown,
        };
        self.moves(&success.cwd, span);
        self.part(arguments, span);
        Outcome { success, failure: Some(state) }
    }

    /// Where a path leads from here.
    fn place(&self, state: &State, text: &Text) -> Places {
        match (text.literal(), &state.cwd) {
            (Some(path), _) if path.starts_with('/') => Places::OneOf(vec![join("/", path)]),
            (Some(path), Places::OneOf(places)) if !path.is_empty() && !path.starts_with('-') => {
                Places::OneOf(places.iter().map(|place| join(place, path)).collect())
            }
            (Some(""), places) => places.clone(),
            (None, Places::OneOf(places)) if names_folder(text) => {
                // One of the folders that the pattern matches.
                let mut all = Places::OneOf(Vec::new());
                for target in self.targets(&Places::OneOf(places.clone()), text) {
                    match (&mut all, target) {
                        (Places::OneOf(all), Target::Pattern(path)) => all.push(path),
                        _ => all = Places::Unknown,
                    }
                }
                all
            }
            _ => Places::Unknown,
        }
    }

    /// The effect of standing somewhere: its folder is read.
    fn moves(&mut self, places: &Places, span: Span) {
        match places {
            Places::OneOf(places) => {
                // Outside stands, besides, whoever failed to go inside before: moving alone shows nothing,
                // and what is done there is judged by itself.
                let inside = |place: &&String| self.surroundings.holds(place);
                let within: Vec<&String> = places.iter().filter(inside).collect();
                for place in if within.is_empty() { places.iter().collect() } else { within } {
                    self.effect(EffectKind::List(shown(place)), span);
                }
            }
            Places::Unknown => {
                self.effect(
                    EffectKind::Unknown("the working directory is not known any more".to_owned()),
                    span,
                );
            }
        }
    }

    fn stack(&mut self, state: State, name: &str, arguments: &[Argument], span: Span) -> Outcome {
        let mut success = state.clone();
        success.previous = state.cwd.clone();
        let mut stack = state.stack.to_vec();
        let operand = arguments.get(1).filter(|_| arguments.len() == 2);
        match (name, operand) {
            ("pushd", Some(operand))
                if operand.literal().is_some_and(|text| !text.starts_with(['-', '+'])) =>
            {
                stack.push(state.cwd.clone());
                success.cwd = self.place(&state, &operand.text);
            }
            ("popd", None) if arguments.len() == 1 => success.cwd = stack.pop().unwrap_or(Places::Unknown),
            _ => {
                stack = vec![Places::Unknown];
                success.cwd = Places::Unknown;
            }
        }
        success.stack = Rc::new(stack);
        self.moves(&success.cwd, span);
        self.part(arguments, span);
        Outcome { success, failure: Some(state) }
    }

    fn eval(&mut self, state: State, arguments: &[Argument], span: Span) -> Outcome {
        let rest = arguments.get(1..).unwrap_or_default();
        let words: Option<Vec<&str>> = rest.iter().map(Argument::literal).collect();
        let Some(words) = words else {
            self.risk(RiskKind::CodeExecution, "text that is not known is run as code", span);
            self.unresolved("eval of text that is not known", span);
            self.effect(EffectKind::Execute("text that is not known".to_owned()), span);
            self.part(arguments, span);
            return Outcome::same(state);
        };
        self.part(arguments, span);
        self.code(state, &words.join(" "), span, "eval")
    }

    /// `exec`, `command` and `builtin`: another command behind them.
    fn prefixed(
        &mut self,
        state: State,
        name: &str,
        arguments: &[Argument],
        span: Span,
    ) -> Result<Outcome, State> {
        let rest = arguments.get(1..).unwrap_or_default();
        let Some(first) = rest.first() else {
            if name != "exec" {
                return Err(state);
            }
            // Only redirections, whose effects are noted already.
            self.part(arguments, span);
            return Ok(Outcome::same(state));
        };
        if first.many || first.text.may_be_option() {
            // Listing options are left to the table; `-p`, `-a` and the like are not followed.
            let listing =
                name == "command" && first.literal().is_some_and(|text| matches!(text, "-v" | "-V"));
            if first.literal() != Some("--") && !listing {
                self.unresolved(&format!("options of {name} are not followed"), first.span);
                self.effect(EffectKind::Unknown(format!("options of {name} are not followed")), first.span);
                self.part(arguments, span);
                return Ok(Outcome::same(state));
            }
            if listing {
                return Err(state);
            }
        }
        let rest = if first.literal() == Some("--") { rest.get(1..).unwrap_or_default() } else { rest };
        self.part(arguments, span);
        let lookup = if name == "exec" { Lookup::Program } else { Lookup::NoFunctions };
        let via = crate::analysis::Via::Program(name.to_owned());
        let after = state.clone();
        let outcome = self.deeper(via, span, |walker| walker.dispatch(state, rest, lookup, span));
        Ok(outcome.unwrap_or_else(|| Outcome::same(after)))
    }

    fn set(&mut self, state: &mut State, arguments: &[Argument]) {
        let mut rest = arguments;
        while let Some((first, after)) = rest.split_first() {
            match first.literal() {
                Some("+" | "-") => {
                    self.unresolved("an option of the shell is changed", first.span);
                    return;
                }
                Some("--") => {
                    rest = after;
                    state.set_positional(rest);
                    return;
                }
                Some(text) if text.starts_with(['-', '+']) && text.len() > 1 => {
                    let letters = text.get(1..).unwrap_or_default();
                    rest = after;
                    self.run.traced |=
                        letters.contains('x') || rest.first().and_then(Argument::literal) == Some("xtrace");
                    for letter in letters.chars() {
                        if letter == 'o' && rest.is_empty() {
                            // Alone it only lists.
                        } else if letter == 'o' {
                            let named = rest.first().and_then(Argument::literal);
                            if !named.is_some_and(|name| SET_NAMES.contains(&name)) {
                                self.unresolved("an option of the shell is changed", first.span);
                            }
                            rest = rest.get(1..).unwrap_or_default();
                        } else if !SET_LETTERS.contains(letter) {
                            self.unresolved("an option of the shell is changed", first.span);
                        }
                    }
                }
                Some(_) => break,
                None => {
                    // A number may be negative, and then it is an option too.
                    if first.many || first.text.may_be_option() || starts_with_number(&first.text) {
                        self.unresolved("an option of the shell may be changed", first.span);
                    }
                    break;
                }
            }
        }
        if !rest.is_empty() {
            state.set_positional(rest);
        }
    }
}

/// Whether an argument of `alias`, `hash` or `enable` gives a name another meaning.
fn renames(builtin: &str, argument: &Argument) -> bool {
    argument.literal().is_none_or(|text| match text {
        "-p" => builtin == "hash",
        "-f" | "-n" | "-d" => true,
        _ => text.contains('='),
    })
}

/// Whether a pattern can only stand for folders below: no option, and not the dash that leads back.
fn names_folder(text: &Text) -> bool {
    let slash = matches!(text.stretches().last(), Some(Stretch::Known(end)) if end.ends_with('/'));
    let start = text.prefix();
    text.origin().is_none() && !start.starts_with(['/', '-']) && (slash || !start.is_empty())
}

/// A place as a target: it may be any of those that a pattern matches.
fn shown(place: &str) -> Target {
    if place.contains('*') { Target::Pattern(place.to_owned()) } else { Target::Path(place.to_owned()) }
}

fn starts_with_number(text: &Text) -> bool {
    matches!(text.stretches().first(), Some(Stretch::Number))
}

/// Whether a format of `printf` asks for the number of characters so far.
fn counts(format: &str) -> bool {
    let plain = format.replace("%%", "");
    let mut directives = plain.split('%').skip(1);
    let modifiers = |c: char| c.is_ascii_digit() || "#-+ '.*hlLjzt$".contains(c);
    directives.any(|directive| directive.trim_start_matches(modifiers).starts_with('n'))
}
