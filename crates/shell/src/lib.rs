//! What does this command do?
//!
//! Pure analysis of bash command lines: no files, no processes, no policy. [`analyze`] parses a
//! text, follows it as the shell would, reads every command by a table of some hundred programs,
//! and says what the text reads, writes, runs and reaches, with a place in the text for everything.
//! What it does not understand it calls unresolved; it never guesses.
//!
//! ```
//! use gripper_shell::{analyze, Surroundings, Verdict};
//!
//! let here = Surroundings::new("/home/dev/project", "/home/dev");
//! let analysis = analyze("cd src && grep -rn main . | head -5", &here);
//! assert_eq!(analysis.verdict(), Verdict::ReadOnlyIfConfined);
//!
//! let analysis = analyze("sort -uo names.txt names.txt", &here);
//! assert_eq!(analysis.verdict(), Verdict::NotReadOnly);
//! assert_eq!(analysis.summary(&here), "reads names.txt, writes names.txt");
//! ```
//!
//! Characters that a person cannot see are found by [`hidden`]: a command that shows one thing
//! to a reader and another to the shell must not get as far as being judged.
//!
//! ```
//! use gripper_shell::hidden;
//!
//! let found = hidden::find("ls \u{202e}fdp.txt");
//! assert_eq!(found[0].name(), "right-to-left override");
//! assert_eq!(hidden::visible("ls \u{202e}fdp.txt"), r"ls \u{202e}fdp.txt");
//! ```

mod analysis;
mod effect;
mod expand;
pub mod hidden;
mod model;
mod risk;
mod scripts;
mod span;
mod state;
mod summary;
mod surroundings;
pub mod syntax;
mod value;
mod variables;
mod walk;

pub use analysis::{Analysis, InPlaceEdit, Needs, Normal, Part, Unresolved, Verdict, Via};
pub use effect::{Cause, Effect, EffectKind, Target};
pub use model::programs;
pub use risk::{Phase, Risk, RiskKind, Severity};
pub use span::Span;
pub use surroundings::{Surroundings, join};
pub use value::{Argument, Origin, Stretch, Text};
pub use walk::{bare_program, is_setting};

/// The longest text that is analysed; beyond it everything is unresolved.
pub const LONGEST: usize = 64 * 1024;

/// What `text`, run by bash in these surroundings, would do.
///
/// Never runs anything, never panics, and takes bounded time and memory for any text.
pub fn analyze(text: &str, surroundings: &Surroundings<'_>) -> Analysis {
    walk::Walker::new(surroundings).run(text)
}

/// The words of a command in one spelling, by the model of its program: for comparing a rule
/// with a command. Unknown programs keep their words as operands.
pub fn normal(words: &[&str]) -> Normal {
    let arguments: Vec<Argument> = words
        .iter()
        .skip_while(|word| walk::is_setting(word))
        .map(|word| Argument::known(word, Span::default()))
        .collect();
    let Some((name, rest)) = arguments.split_first() else { return Normal::default() };
    let bare = name.text.prefix().rsplit('/').next().unwrap_or_default();
    match model::find(bare) {
        Some(model) => model::argv::Reading::new(model, rest).normal(bare),
        None => Normal::plain(&arguments),
    }
}
