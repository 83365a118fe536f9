//! Words and colours for people. Whatever comes from a model, a file or a tool is made safe first.

use std::{borrow::Cow, io::Write, time::Duration};

use anstyle::{AnsiColor, Style};
use gripper_runtime::{CallResult, hooks::HookRun, permissions::visible};

pub(crate) const BOLD: Style = Style::new().bold();
pub(crate) const DIM: Style = Style::new().dimmed();
pub(crate) const GOOD: Style = AnsiColor::Green.on_default();
pub(crate) const BAD: Style = AnsiColor::Red.on_default();
pub(crate) const NOTE: Style = AnsiColor::Yellow.on_default();

/// Lines of a result that are shown before the rest is only counted.
const PREVIEW_LINES: usize = 4;

/// Text that cannot move the cursor or hide anything.
pub(crate) fn safe(text: &str) -> Cow<'_, str> {
    visible(text)
}

/// One line on standard output.
pub(crate) fn line(text: &str) -> std::io::Result<()> {
    writeln!(anstream::stdout(), "{text}")
}

/// A warning on standard error; nothing stops because of it.
pub(crate) fn warn(text: &str) {
    writeln!(anstream::stderr(), "{NOTE}warning:{NOTE:#} {}", safe(text)).ok();
}

/// Something worth knowing, on standard error.
pub(crate) fn note(text: &str) {
    writeln!(anstream::stderr(), "{}", safe(text)).ok();
}

/// What a person should know of a hook that ran: that it failed, and what it has to say.
pub(crate) fn hook(run: &HookRun) {
    if run.failed {
        warn(&format!("the hook {} failed: {}", run.name, clip(&run.outcome, 500)));
    }
    if let Some(message) = &run.message {
        writeln!(anstream::stderr(), "{NOTE}{}:{NOTE:#} {}", safe(&run.name), safe(&clip(message, 10_000)))
            .ok();
    }
}

/// An error on standard error.
pub(crate) fn error(text: &str) {
    writeln!(anstream::stderr(), "{BAD}error:{BAD:#} {}", safe(text)).ok();
}

/// A duration as people read it.
pub(crate) fn duration(duration: Duration) -> String {
    let seconds = duration.as_secs_f64();
    match seconds {
        s if s >= 60.0 => format!("{:.0} min {:.0} s", (s / 60.0).floor(), s % 60.0),
        s if s >= 1.0 => format!("{s:.1} s"),
        s if s >= 0.001 => format!("{:.1} ms", s * 1e3),
        s => format!("{:.0} µs", s * 1e6),
    }
}

/// A result as a heading and a preview.
pub(crate) fn result(result: &CallResult, summary: Option<&str>) -> String {
    let (style, mark) = if result.is_error { (BAD, '✗') } else { (GOOD, '✓') };
    let what = match summary {
        Some(summary) => one_line(&format!("{} · {summary}", result.tool), 100),
        None => one_line(&result.tool, 100),
    };
    let code = result.error_code.map(|code| format!(" {BAD}{code}{BAD:#}")).unwrap_or_default();
    let mut text = format!(
        "{style}{mark}{style:#} {DIM}{}{DIM:#} {BOLD}{}{BOLD:#}{code} {DIM}{}{DIM:#}",
        one_line(&result.call_id, 24),
        what,
        duration(result.duration)
    );
    let whole = result.to_string();
    let lines: Vec<&str> = whole.lines().collect();
    // A failure is read, a success is glanced at.
    let shown = if result.is_error { PREVIEW_LINES * 3 } else { PREVIEW_LINES };
    for line in lines.iter().take(shown) {
        text.push_str(&format!("\n    {DIM}{}{DIM:#}", clip(&safe(&line.replace('\t', "  ")), 160)));
    }
    if lines.len() > shown {
        text.push_str(&format!("\n    {DIM}… {}{DIM:#}", count(lines.len() - shown, "more line")));
    }
    text
}

/// A number of things, in words.
pub(crate) fn count(number: impl TryInto<u64>, thing: &str) -> String {
    match number.try_into().unwrap_or(u64::MAX) {
        1 => format!("1 {thing}"),
        many => format!("{many} {thing}s"),
    }
}

/// Safe, on one line, and at most so many characters.
pub(crate) fn one_line(text: &str, most: usize) -> String {
    clip(&safe(&clip(text, most)).replace(['\n', '\t'], " "), most)
}

/// At most so many characters.
pub(crate) fn clip(text: &str, most: usize) -> String {
    let mut characters = text.chars();
    let mut clipped: String = characters.by_ref().take(most).collect();
    if characters.next().is_some() {
        clipped.pop();
        clipped.push('…');
    }
    clipped
}
