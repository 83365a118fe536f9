//! Builtins that change what later commands mean.

use std::rc::Rc;

use super::{
    Outcome, Walker,
    simple::{Lookup, is_name},
};
use crate::{
    effect::EffectKind,
    expand::is_number,
    risk::RiskKind,
    span::Span,
    state::{Function, Places, State, Value},
    surroundings::join,
    syntax::tree::{Arithmetic, Piece, PieceKind},
    value::{Argument, Origin, Stretch, Text},
};

/// Options of `set` that leave the meaning of the text alone.
const SET_LETTERS: &str = "euxvfhbCETm";
const SET_NAMES: &[&str] =
    &["errexit", "nounset", "xtrace", "verbose", "pipefail", "noglob", "errtrace", "functrace", "noclobber"];
/// Options of `shopt` that do.
const SHOPT_NAMES: &[&str] = &["globstar", "nocaseglob", "inherit_errexit"];

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
                self.read_names(&mut state, name, rest.get(..2).unwrap_or(rest));
            }
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
            }
            "trap" => {
                let cleared = rest
                    .first()
                    .and_then(Argument::literal)
                    .is_some_and(|text| matches!(text, "" | "-" | "-l" | "-p"));
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
            if argument.many || (!known && !placed) {
                self.unresolved("a test whose operators are not known can run code", argument.span);
            }
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
            _ => Places::Unknown,
        }
    }

    /// The effect of standing somewhere: its folder is read.
    fn moves(&mut self, places: &Places, span: Span) {
        match places {
            Places::OneOf(places) => {
                for place in places {
                    self.effect(EffectKind::List(crate::effect::Target::Path(place.clone())), span);
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

    fn declare(&mut self, state: &mut State, builtin: &str, arguments: &[Argument], span: Span) {
        if builtin == "local" && self.calls == 0 {
            self.unresolved("local outside a function assigns nothing", span);
        }
        if builtin == "readonly" {
            self.unresolved("a variable that cannot be assigned again", span);
        }
        let mut opaque = false;
        let letters = |wanted: char| {
            let options = arguments.iter().filter(|argument| argument.text.prefix().starts_with('-'));
            options.into_iter().any(|argument| argument.text.prefix().contains(wanted))
        };
        if letters('f') && letters('x') {
            self.unresolved("a function is given to other shells", span);
        }
        for argument in arguments {
            let prefix = argument.text.prefix();
            if argument.many {
                self.unresolved("a declaration of names that are not known", argument.span);
            } else if prefix.starts_with(['-', '+']) && argument.literal().is_some() {
                let letters = prefix.get(1..).unwrap_or_default();
                // Namerefs, integers and case attributes change what later assignments do.
                if letters.chars().any(|letter| !"xgaApfF".contains(letter)) || prefix.starts_with('+') {
                    self.unresolved("an attribute that changes what assignments do", argument.span);
                }
                opaque |= letters.contains('a');
                if letters.contains('A') {
                    self.unresolved("a table of named values is not followed", argument.span);
                }
            } else {
                let (name, value) = match prefix.find('=') {
                    Some(at) => {
                        let name = prefix.get(..at).unwrap_or_default();
                        (name.trim_end_matches('+').to_owned(), Some(argument.text.without_prefix(at + 1)))
                    }
                    None => (argument.literal().unwrap_or_default().to_owned(), None),
                };
                if !is_name(&name) {
                    self.unresolved("a declaration that is not understood", argument.span);
                    continue;
                }
                let appended = prefix.find('=').is_some_and(|at| at > name.len());
                let kind = if letters('x') && builtin != "local" { "export" } else { builtin };
                self.declare_one(state, kind, &name, value, opaque || appended, argument.span);
            }
        }
    }

    fn declare_one(
        &mut self,
        state: &mut State,
        builtin: &str,
        name: &str,
        value: Option<Text>,
        opaque: bool,
        span: Span,
    ) {
        self.check_assignment(state, name, span);
        if builtin == "export" {
            match &value {
                Some(value) => self.effect_of_setting(name, value, span),
                None => self.effect(EffectKind::Environment(format!("gives {name} to later programs")), span),
            }
        }
        if builtin != "export" {
            self.locals.push(name.to_owned());
        }
        match value {
            Some(_) if opaque => state.set(name, Value::Unknown(Origin::Computed)),
            Some(value) => state.set(name, Value::one(value)),
            None if builtin == "export" => {}
            None => state.set(name, Value::Unknown(Origin::Computed)),
        }
    }

    fn unset(&mut self, state: &mut State, arguments: &[Argument]) {
        let mut functions_only = false;
        for argument in arguments {
            match argument.literal() {
                Some("-f") => functions_only = true,
                Some("-v") => functions_only = false,
                Some(name) if functions_only => state.undefine(name),
                Some(name) if is_name(name) => {
                    self.check_assignment(state, name, argument.span);
                    // Without an option the variable goes first, and the function only if there is none.
                    if state.function(name).is_some() {
                        state.define(name, Function::Unsure);
                    }
                    state.set(name, Value::Unset);
                }
                _ => self.unresolved("unset of a name that is not known can run code", argument.span),
            }
        }
    }

    /// Builtins that put what they read into variables: every plain word may be a name.
    fn read_names(&mut self, state: &mut State, builtin: &str, arguments: &[Argument]) {
        for name in ["REPLY", "MAPFILE", "OPTARG"] {
            state.set(name, Value::Unknown(Origin::Data));
        }
        for argument in arguments {
            let prefix = argument.text.prefix();
            match argument.literal() {
                Some(text) if text.contains('[') && (builtin != "printf" || !text.starts_with("-v")) => {
                    let is_delimiter = builtin == "read" && text.len() == 1;
                    if !is_delimiter {
                        self.unresolved("a subscript can run code", argument.span);
                    }
                }
                Some(text) => {
                    let name = text.strip_prefix("-v").filter(|_| builtin == "printf").unwrap_or(text);
                    let name = name.strip_prefix("-a").filter(|_| builtin == "read").unwrap_or(name);
                    if name == "_" {
                        // The usual way to throw a field away; `$_` is never known anyway.
                    } else if is_name(name) {
                        self.check_assignment(state, name, argument.span);
                        state.set(name, Value::Unknown(Origin::Data));
                    } else if name.contains('[') {
                        self.unresolved("a subscript can run code", argument.span);
                    }
                }
                None if is_number(&argument.text) => {}
                None if prefix.starts_with("-p") || prefix.starts_with("-t") => {}
                None => self.unresolved("a name that is not known is assigned", argument.span),
            }
        }
    }

    /// An argument of `let`.
    fn compute(&mut self, state: &mut State, argument: &Argument) {
        match argument.literal() {
            Some(text) if !text.contains(['$', '`', '[', '\\', '"', '\'']) => {
                let piece = Piece { kind: PieceKind::Literal(text.to_owned()), span: argument.span };
                self.arithmetic(state, &Arithmetic::of(vec![piece], argument.span));
            }
            _ => self.unresolved("arithmetic on text that is not known can run code", argument.span),
        }
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
                    self.set_positional(state, rest);
                    return;
                }
                Some(text) if text.starts_with(['-', '+']) && text.len() > 1 => {
                    let letters = text.get(1..).unwrap_or_default();
                    rest = after;
                    self.run.traced |=
                        letters.contains('x') || rest.first().and_then(Argument::literal) == Some("xtrace");
                    for letter in letters.chars() {
                        if letter == 'o' {
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
            self.set_positional(state, rest);
        }
    }

    fn set_positional(&mut self, state: &mut State, arguments: &[Argument]) {
        let known: Option<Vec<Text>> =
            arguments.iter().map(|argument| argument.is_one().then(|| argument.text.clone())).collect();
        state.positional = known.filter(|known| known.len() <= 256).map(Rc::new);
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

fn starts_with_number(text: &Text) -> bool {
    matches!(text.stretches().first(), Some(Stretch::Number))
}
