//! The only file that knows how the analysis is called.

use gripper_shell::{Analysis, Argument, EffectKind, Part, Stretch, Surroundings, Target, Text, analyze};

use crate::generate::PROGRAMS;

/// Words that a script calls as programs, beside the stubs on the path.
const OTHER_PROGRAMS: [&str; 3] = ["./p", "d/p", "nosuch"];

/// How well a call was predicted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Fit {
    /// Not at all.
    Missed,
    /// By a part with holes.
    Holes,
    /// Word for word.
    Exact,
}

/// What the analysis says about a script.
pub(crate) struct Prediction {
    /// Why anything may happen; empty when the analysis claims to know what runs.
    pub(crate) doubts: Vec<String>,
    analysis: Analysis,
}

impl Prediction {
    pub(crate) fn of(script: &str, cwd: &str, home: &str) -> Self {
        let analysis = analyze(script, &Surroundings::new(cwd, home));
        let mut doubts: Vec<String> = analysis.unresolved().iter().map(|doubt| doubt.why.clone()).collect();
        doubts.extend(analysis.parts().iter().filter(|part| !is_program(part)).flat_map(runs_unseen_code));
        Self { doubts, analysis }
    }

    /// How well the parts predicted `argv`.
    pub(crate) fn fit(&self, argv: &[String]) -> Fit {
        let fits = self.analysis.parts().iter().map(|part| {
            if !matches(&part.argv, argv) {
                Fit::Missed
            } else if part.argv.iter().all(|argument| argument.literal().is_some()) {
                Fit::Exact
            } else {
                Fit::Holes
            }
        });
        fits.max().unwrap_or(Fit::Missed)
    }

    /// Whether a file that was made or changed is one that the analysis said is written.
    pub(crate) fn writes(&self, path: &str) -> bool {
        self.analysis.writes().into_iter().any(|target| match target {
            Target::Path(known) => known == path,
            Target::Pattern(pattern) => {
                let known = pattern.split(['*', '?', '[', '\\']).next().unwrap_or_default();
                path.starts_with(known)
            }
            Target::Unknown => true,
        })
    }

    /// The parts, for people.
    pub(crate) fn shown(&self) -> Vec<String> {
        let words = |part: &Part| part.argv.iter().map(show).collect::<Vec<_>>().join(", ");
        let parts = self.analysis.parts().iter().map(|part| format!("[{}]", words(part)));
        let writes = self.analysis.writes().into_iter().map(|target| format!("writes {target:?}"));
        parts.chain(writes).collect()
    }
}

/// Whether the part calls one of the stubs; what a real program of that name would do does not matter here.
fn is_program(part: &Part) -> bool {
    let name = part.argv.first().and_then(Argument::literal);
    name.is_some_and(|name| PROGRAMS.contains(&name) || OTHER_PROGRAMS.contains(&name))
}

/// What a part of the shell itself does that nobody followed, such as `source`.
fn runs_unseen_code(part: &Part) -> Vec<String> {
    let unseen = |kind: &EffectKind| matches!(kind, EffectKind::Execute(_) | EffectKind::Unknown(_));
    part.effects.iter().filter(|effect| unseen(&effect.kind)).map(|effect| effect.kind.to_string()).collect()
}

fn show(argument: &Argument) -> String {
    match argument.literal() {
        Some(text) => format!("{text:?}"),
        None => {
            format!("{}{:?}", if argument.many { "any number of " } else { "" }, argument.text.stretches())
        }
    }
}

/// Whether `arguments` could have become `words`.
fn matches(arguments: &[Argument], words: &[String]) -> bool {
    let Some((first, rest)) = arguments.split_first() else { return words.is_empty() };
    let holds = |wanted: fn(&Stretch) -> bool| first.text.stretches().iter().any(wanted);
    if !first.many && !holds(|stretch| matches!(stretch, Stretch::Glob(_))) {
        let Some((word, others)) = words.split_first() else { return false };
        return fits(&first.text, word) && matches(rest, others);
    }
    // Unknown text is split at blanks, so its neighbours end up in any of the words; a pattern is not.
    let unknown = first.many && holds(|stretch| matches!(stretch, Stretch::Unknown(_)));
    let run = words.iter().take_while(|word| unknown || fits(&first.text, word)).count();
    let least = usize::from(!first.many);
    (least..=run).any(|taken| matches(rest, words.get(taken..).unwrap_or_default()))
}

fn fits(text: &Text, word: &str) -> bool {
    stretches_fit(text.stretches(), word)
}

fn stretches_fit(stretches: &[Stretch], word: &str) -> bool {
    let Some((first, rest)) = stretches.split_first() else { return word.is_empty() };
    if let Stretch::Known(known) = first {
        return word.strip_prefix(known.as_str()).is_some_and(|after| stretches_fit(rest, after));
    }
    let ends = word.char_indices().map(|(at, letter)| at + letter.len_utf8());
    std::iter::once(0).chain(ends).any(|end| {
        let (taken, after) = word.split_at(end);
        hole_fits(first, taken) && stretches_fit(rest, after)
    })
}

fn hole_fits(hole: &Stretch, taken: &str) -> bool {
    match hole {
        Stretch::Known(known) => known == taken,
        Stretch::Glob(pattern) => (!taken.is_empty() || pattern == "*") && !taken.contains('/'),
        Stretch::Plain => plain(taken),
        Stretch::Number => {
            let digits = taken.strip_prefix('-').unwrap_or(taken);
            !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())
        }
        Stretch::Unknown(_) => true,
    }
}

/// One word that nobody could take for a path or an option.
fn plain(word: &str) -> bool {
    let option =
        word.strip_prefix('-').is_some_and(|rest| rest.starts_with(|first: char| first.is_alphabetic()));
    !word.is_empty() && !option && !word.contains('/') && !word.contains(char::is_whitespace)
}
