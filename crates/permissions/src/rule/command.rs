//! Rules about commands: words and wildcards, compared with argument lists.

use gripper_shell::{Argument, Normal, Part, Stretch};

use super::DomainPattern;
use crate::{glob, programs};

/// The specifier of a rule such as `Bash(git push *)`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CommandPattern {
    /// The words, `*` as a wildcard, `\*` as itself.
    words: Vec<String>,
    end: End,
    /// The same in the one spelling that commands are brought to.
    normal: Normal,
    /// The whole text, where it holds operators of the shell.
    line: Option<String>,
    /// Patterns for texts whose words are separated by gaps.
    patterns: Vec<String>,
}

/// A part spelt in the ways that rules are compared with, made once for all rules.
pub(crate) struct Spelling {
    /// With what is not known as a letter that only wildcards fit.
    sure: Vec<String>,
    /// As patterns, with what is not known as wildcards; none if all is known.
    perhaps: Vec<String>,
    /// The program and its subcommands by their usual names.
    head: Vec<String>,
}

impl Spelling {
    pub(crate) fn of(part: &Part) -> Self {
        let head = part.normal.head.iter().map(|name| programs::usual_name(name).to_owned()).collect();
        let mut spelling = Self { sure: Vec::new(), perhaps: Vec::new(), head };
        let Some((first, rest)) = part.argv.split_first() else { return spelling };
        let Some(program) = first.literal() else { return spelling };
        let (mut sure, mut perhaps) = (String::new(), String::new());
        for argument in rest {
            spell(argument, &mut sure, &mut perhaps);
        }
        let open = rest.iter().any(|argument| argument.literal().is_none());
        let bare = program.rsplit('/').next().unwrap_or(program);
        let names = [bare, program];
        for name in names.iter().take(1 + usize::from(bare != program)) {
            spelling.sure.push(format!("{name}{sure}"));
            if !part.settings.is_empty() {
                spelling.sure.push(format!("{}{GAP}{name}{sure}", part.settings.join("\u{1f}")));
            }
            if open {
                spelling.perhaps.push(format!("{}{perhaps}", glob::escape(name)));
            }
        }
        spelling
    }
}

/// What may follow the last word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    /// Nothing.
    Exact,
    /// Further words: `git push *`, `git push:*`.
    Words,
    /// Further letters and words: `npm run lint*`.
    Anything,
}

/// How a rule fits something.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Fit {
    /// Not at all.
    No,
    /// Perhaps: a part of the command is decided while it runs.
    Maybe,
    /// It does.
    Yes,
}

/// Stands between words where a blank could be part of one.
const GAP: char = '\u{1f}';
/// Stands for what is not known.
const UNKNOWN: char = '\u{1}';

impl CommandPattern {
    pub(crate) fn parse(text: &str) -> Self {
        let text = text.trim();
        let (body, mut end) = match text.strip_suffix(":*") {
            Some(body) => (body, End::Words),
            None => (text, End::Exact),
        };
        let mut words = split(body);
        if end == End::Exact && words.len() > 1 && words.last().is_some_and(|last| last == "*") {
            words.pop();
            end = End::Words;
        } else if let Some(last) =
            words.last_mut().filter(|last| last.ends_with('*') && !last.ends_with("\\*"))
            && end == End::Exact
        {
            last.pop();
            end = End::Anything;
        }
        let plain: Vec<&str> = words.iter().map(String::as_str).collect();
        let line = has_operator(body).then(|| squeeze(text.strip_suffix(":*").map_or(text, |_| body)));
        let mut normal = gripper_shell::normal(&plain);
        normal.head.iter_mut().for_each(|name| *name = programs::usual_name(name).to_owned());
        let patterns = patterns(&words, end);
        Self { normal, words, end, line, patterns }
    }

    /// Whether every command fits: `Bash` and `Bash(*)`.
    pub(crate) fn is_any(&self) -> bool {
        self.words.iter().all(String::is_empty) && self.end != End::Exact
    }

    /// Whether nothing fits.
    pub(crate) fn is_empty(&self) -> bool {
        self.words.is_empty() && self.end == End::Exact
    }

    /// The same with `~` and `$HOME` as the person's home, the way the shell passes them on.
    pub(crate) fn at_home(&self, home: &str) -> Self {
        let expand = |word: &String| {
            let below = ["~", "$HOME", "${HOME}"].iter().find_map(|name| word.strip_prefix(name));
            match below.filter(|below| below.is_empty() || below.starts_with('/')) {
                Some(below) => format!("{home}{below}"),
                None => word.clone(),
            }
        };
        let words: Vec<String> = self.words.iter().map(expand).collect();
        Self { patterns: patterns(&words, self.end), words, ..self.clone() }
    }

    /// The program it is about, when that is spelt out.
    pub(crate) fn program(&self) -> Option<&str> {
        let settings = self.settings();
        let first = self.words.get(settings).filter(|first| !first.is_empty() && !first.contains('*'))?;
        let whole = self.words.len() > settings + 1 || self.end != End::Anything;
        (whole && self.line.is_none()).then(|| first.rsplit('/').next().unwrap_or(first))
    }

    /// How many words set variables for the command.
    fn settings(&self) -> usize {
        self.words.iter().take_while(|word| gripper_shell::is_setting(word)).count()
    }

    /// Whether it spells out exactly these variables.
    pub(crate) fn sets(&self, settings: &[String]) -> bool {
        let count = self.settings();
        count > 0 && self.words.get(..count) == Some(settings)
    }

    /// The words before the first wildcard.
    pub(crate) fn literal_words(&self) -> &[String] {
        let literal = self.words.iter().take_while(|word| !word.contains('*')).count();
        let open = self.end == End::Anything && literal == self.words.len();
        self.words.get(..literal - usize::from(open && literal > 0)).unwrap_or_default()
    }

    /// Whether it has no wildcard at all.
    pub(crate) fn is_exact(&self) -> bool {
        self.end == End::Exact && !self.words.iter().any(|word| word.contains('*'))
    }

    /// Whether operators of the shell stand in it, so that no single command can fit.
    pub(crate) fn has_operators(&self) -> bool {
        self.line.is_some()
    }

    /// Whether the hosts it names are among `hosts`, all of them. A rule without hosts minds none.
    pub(crate) fn minds_hosts(&self, hosts: &[&str]) -> bool {
        let urls = || self.words.iter().filter(|word| word.contains("://"));
        let named: Vec<DomainPattern> = urls().filter_map(|word| host(word)).collect();
        let small = |host: &str| host.to_ascii_lowercase();
        urls().next().is_none() || hosts.iter().all(|host| named.iter().any(|named| named.fits(&small(host))))
    }

    /// Whether an allow rule covers the words. A wildcard inside a word stays inside it, and does
    /// not climb out of a folder.
    pub(crate) fn allows(&self, argv: &[Argument]) -> bool {
        if self.line.is_some() || self.is_empty() {
            return false;
        }
        let Some((first, rest)) = argv.split_first() else { return false };
        let program = first.literal().unwrap_or_default();
        let bare = gripper_shell::bare_program(program);
        let mut words: Vec<Option<&str>> = vec![Some(bare)];
        words.extend(rest.iter().map(Argument::literal));
        let pattern = self.words.get(self.settings()..).unwrap_or_default();
        self.fits_words(pattern, &words)
            || (bare != program && {
                words[0] = Some(program);
                self.fits_words(pattern, &words)
            })
    }

    /// Word by word, the way globs are matched letter by letter: a lone `*` takes one word or more.
    fn fits_words(&self, pattern: &[String], words: &[Option<&str>]) -> bool {
        let (mut at, mut word) = (0, 0);
        let mut star: Option<(usize, usize)> = None;
        loop {
            let done = at == pattern.len();
            if done && (self.end != End::Exact || word == words.len()) {
                return true;
            }
            let lone = pattern.get(at).is_some_and(|pattern| pattern == "*");
            if lone && word < words.len() {
                star = Some((at, word + 1));
                (at, word) = (at + 1, word + 1);
                continue;
            }
            let last = at + 1 == pattern.len() && self.end == End::Anything;
            let fits = !done
                && words.get(word).is_some_and(|text| {
                    pattern.get(at).is_some_and(|pattern| fits_word(pattern, *text, last))
                });
            if fits {
                (at, word) = (at + 1, word + 1);
                continue;
            }
            match star {
                Some((from, taken)) if taken < words.len() => {
                    star = Some((from, taken + 1));
                    (at, word) = (from + 1, taken + 1);
                }
                _ => return false,
            }
        }
    }

    /// How a deny or ask rule fits a part: by its words as they are, in the one spelling, or with
    /// its options in any order.
    pub(crate) fn strikes(&self, part: &Part, spelling: &Spelling) -> Fit {
        let Some(first) = part.argv.first() else { return Fit::No };
        if self.is_any() {
            return Fit::Yes;
        }
        if first.literal().is_none() {
            return Fit::Maybe;
        }
        let fits = |pattern: &String| spelling.sure.iter().any(|text| glob::matches(pattern, text));
        let meets = |pattern: &String| spelling.perhaps.iter().any(|text| glob::meets(pattern, text));
        match () {
            () if self.patterns.iter().any(fits) => Fit::Yes,
            () if self.in_any_order(part, spelling) => Fit::Yes,
            () if self.patterns.iter().any(meets) => Fit::Maybe,
            () => Fit::No,
        }
    }

    /// Whether all that another rule fits, fits this one too, by their texts.
    pub(crate) fn swallows(&self, other: &Self) -> bool {
        let narrow = other.words.join("\u{1f}");
        let ends = other.end == End::Exact || self.end != End::Exact;
        self.is_any() || (ends && self.patterns.iter().any(|wide| glob::matches(wide, &narrow)))
    }

    /// Whether its words stand in a part in their order, with options between them of which nobody
    /// knows whether they take a value.
    pub(crate) fn lurks(&self, part: &Part) -> bool {
        let literal = self.literal_words();
        let option = part.argv.get(1).is_some_and(|first| first.text.prefix().starts_with(['-', '+']));
        let mut wanted = literal.iter().skip(1).filter(|word| !word.starts_with('-')).peekable();
        if !option || wanted.peek().is_none() {
            return false;
        }
        let mut given = part.argv.iter().skip(1).map(Argument::shown);
        wanted.all(|wanted| given.any(|given| given == *wanted))
    }

    fn in_any_order(&self, part: &Part, spelling: &Spelling) -> bool {
        let (rule, argv, part) = (&self.normal, &part.argv, &part.normal);
        let heads = spelling.head.get(..rule.head.len()) == Some(rule.head.as_slice());
        if !heads || self.words.is_empty() || rule.head.is_empty() {
            return false;
        }
        let has = |wanted: &String| {
            part.options.iter().any(|option| {
                // A long option may be cut short.
                let short =
                    option.len() > 3 && option.starts_with("--") && wanted.starts_with(option.as_str());
                let same = programs::long_option(&part.head, option).is_some_and(|long| long == wanted);
                same || short
                    || glob::matches(wanted, option)
                    || glob::matches(&format!("{wanted}=*"), option)
            })
        };
        if !rule.options.iter().all(has) {
            return false;
        }
        let operands = match self.end {
            End::Exact => {
                // Options before the subcommand only say where and how the program works.
                let inner = part.head.last().and_then(|last| {
                    argv.iter().position(|argument| argument.literal() == Some(last.as_str()))
                });
                let global = argv.iter().take(inner.unwrap_or(0));
                let global = global.filter(|argument| argument.text.prefix().starts_with('-')).count();
                rule.operands.len() == part.operands.len()
                    && rule.head.len() == part.head.len()
                    && part.options.len().saturating_sub(global) <= rule.options.len()
            }
            End::Words | End::Anything => rule.operands.len() <= part.operands.len(),
        };
        let fits = rule.operands.iter().zip(&part.operands).all(|(rule, given)| {
            let open = self.end == End::Anything;
            glob::matches(rule, given) || (open && glob::matches(&format!("{rule}*"), given))
        });
        operands && fits
    }

    /// Whether the text of a command could hold what the rule is about, wherever it stands. For
    /// text that could not be followed.
    pub(crate) fn appears_in(&self, text: &str) -> bool {
        if self.is_any() {
            return true;
        }
        if self.has_operators() {
            return self.strikes_line(text);
        }
        let literal: Vec<&str> =
            self.words.iter().map(String::as_str).take_while(|word| !word.contains('*')).collect();
        if literal.is_empty() {
            return false;
        }
        let mark =
            |c: char| !(c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | '/' | ':' | '=' | '+' | '@'));
        let words: Vec<&str> = text.split(mark).filter(|word| !word.is_empty()).collect();
        words.windows(literal.len()).any(|run| {
            run.iter().zip(&literal).enumerate().all(|(at, (word, wanted))| {
                let word = if at == 0 { word.rsplit('/').next().unwrap_or(word) } else { word };
                let last = at + 1 == literal.len() && self.end == End::Anything;
                word == *wanted || (last && word.starts_with(wanted))
            })
        })
    }

    /// Whether a rule with operators fits the line, or commands within it.
    pub(crate) fn strikes_line(&self, text: &str) -> bool {
        self.line.as_ref().is_some_and(|line| glob::matches(&format!("*{line}*"), &squeeze(text)))
    }

    /// The words of a rule without wildcards, as they stand in it: a line of just these words is
    /// what the person meant.
    pub(crate) fn spelt(&self, rule: &str) -> Option<String> {
        let inner = rule.split_once('(')?.1.strip_suffix(')')?;
        let words: Vec<&str> = inner.split_whitespace().collect();
        (!inner.contains('*')).then(|| words.join(" "))
    }
}

/// Patterns for texts whose words are separated by gaps.
fn patterns(words: &[String], end: End) -> Vec<String> {
    let pattern = words.join("\u{1f}");
    match end {
        End::Exact => vec![pattern],
        End::Words => vec![format!("{pattern}{GAP}*"), pattern],
        End::Anything => vec![format!("{pattern}*")],
    }
}

fn fits_word(pattern: &str, text: Option<&str>, open: bool) -> bool {
    let Some(text) = text else { return pattern == "*" };
    // `scripts/*.py` must not reach `scripts/../x.py`.
    let folder = pattern.contains("/*") || (open && pattern.ends_with('/'));
    let climbs = folder && text.split('/').any(|part| part == "..");
    !climbs && if open { glob::matches(&format!("{pattern}*"), text) } else { glob::matches(pattern, text) }
}

/// Adds an argument to two texts: one in which the unknown is a letter that only wildcards fit,
/// and a pattern in which it is a wildcard itself.
fn spell(argument: &Argument, sure: &mut String, perhaps: &mut String) {
    sure.push(GAP);
    perhaps.push(GAP);
    for stretch in argument.text.stretches() {
        if let Stretch::Known(known) = stretch {
            sure.push_str(known);
            perhaps.push_str(&glob::escape(known));
        } else {
            sure.push(UNKNOWN);
            perhaps.push('*');
        }
    }
    if argument.many {
        sure.push(UNKNOWN);
        perhaps.push('*');
    }
}

/// The words of a specifier: quotes group, blanks separate.
fn split(text: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut quote = None;
    let mut letters = text.chars().peekable();
    while let Some(letter) = letters.next() {
        match (quote, letter) {
            (Some(open), _) if letter == open => quote = None,
            (None, '\'' | '"') if letters.clone().any(|later| later == letter) => {
                quote = Some(letter);
                word.get_or_insert_default();
            }
            (None, _) if letter.is_whitespace() => words.extend(word.take()),
            (_, '\\') => {
                let word = word.get_or_insert_default();
                match letters.next() {
                    Some(star @ ('*' | '\\')) => word.extend(['\\', star]),
                    Some(other) => word.push(other),
                    None => word.push('\\'),
                }
            }
            _ => word.get_or_insert_default().push(letter),
        }
    }
    words.extend(word);
    words
}

fn has_operator(text: &str) -> bool {
    let bare: String = {
        let mut quote = None;
        text.chars()
            .filter(|&letter| match quote {
                Some(open) => {
                    if letter == open {
                        quote = None;
                    }
                    false
                }
                None if matches!(letter, '\'' | '"') => {
                    quote = Some(letter);
                    false
                }
                None => true,
            })
            .collect()
    };
    bare.contains(['|', ';', '&', '>', '<', '`', '\n']) || bare.contains("$(")
}

/// One blank between words, none around operators.
fn squeeze(text: &str) -> String {
    let mut squeezed = text.split_whitespace().collect::<Vec<_>>().join(" ");
    for operator in ["|", ";", "&", "<", ">"] {
        squeezed =
            squeezed.replace(&format!(" {operator}"), operator).replace(&format!("{operator} "), operator);
    }
    squeezed
}

/// The hosts that a URL in a rule means.
fn host(word: &str) -> Option<DomainPattern> {
    let (_, behind) = word.split_once("://")?;
    let host = behind.split(['/', '?', '#', ':']).next()?;
    let host = host.rsplit('@').next().unwrap_or(host);
    // `example.com*` means that host; only a whole label can be left open.
    let host = host.strip_prefix("*.").map_or_else(
        || host.split('*').next().unwrap_or_default().to_owned(),
        |below| format!("*.{}", below.split('*').next().unwrap_or_default()),
    );
    DomainPattern::parse(host.trim_end_matches('.'))
}
