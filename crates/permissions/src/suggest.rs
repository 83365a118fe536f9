//! Rules that a person could grant: as wide as the next similar call needs, and no wider.

use std::path::Path;

use gripper_shell::{Argument, EffectKind, Part, Target};

use crate::{
    PathUse, Rule, RuleList, Subject, Suggestion,
    cover::{Cover, Coverage},
    decide::Judge,
    index::program,
    programs, sensitive,
    web::{self, Site},
};

/// More parts than this need a person's thought, not a handful of rules.
const MOST_PARTS: usize = 4;

/// The rules that would settle the call, the narrowest that is of use first.
pub(crate) fn rules(judge: &Judge<'_, '_>) -> Vec<Suggestion> {
    let request = judge.request;
    if request.command_use().is_some() {
        return command(judge);
    }
    let mut rules = Vec::new();
    for subject in &request.subjects {
        match subject {
            Subject::Path(path) if request.read_only || request.edits_files => paths(judge, path, &mut rules),
            Subject::Url(url) => {
                if let Site::Open { host, .. } | Site::Doubtful { host, .. } = web::site(url) {
                    let reach = format!("every page of {host}");
                    rules.push(suggestion(format!("WebFetch(domain:{host})"), reach));
                }
            }
            Subject::Name(name) => {
                let reach = format!("every use of {name} by {}", request.tool);
                rules.push(suggestion(format!("{}({name})", request.tool), reach));
            }
            _ => {}
        }
    }
    if rules.is_empty() {
        rules.push(suggestion(request.tool.to_owned(), format!("every call of {}", request.tool)));
    }
    // A text that is no rule, such as a path with a line break, is not offered.
    rules.retain(|suggestion| Rule::parse(&suggestion.rule).is_ok());
    rules
}

fn suggestion(rule: String, reach: String) -> Suggestion {
    Suggestion { list: RuleList::Allow, rule, also: Vec::new(), reach }
}

fn paths(judge: &Judge<'_, '_>, path: &PathUse, rules: &mut Vec<Suggestion>) {
    let (tool, doing) = if path.write { ("Edit", "changing") } else { ("Read", "reading") };
    let text = path.written.to_string_lossy();
    let delicate = sensitive::is_secret(&text) || sensitive::is_steering(&text);
    let this = format!("{tool}({})", spelt(judge, &path.written));
    rules.push(suggestion(this, format!("{doing} this file, whatever the tool")));
    let folder = path.written.parent().filter(|folder| folder.components().count() > 2);
    if let Some(folder) = folder.filter(|folder| !delicate && *folder != judge.policy.home) {
        let rule = format!("{tool}({}/**)", spelt(judge, folder).trim_end_matches('/'));
        rules.push(suggestion(rule, format!("{doing} every file below {}", folder.display())));
    }
}

/// A path the way rules spell it, wildcards in it taken as letters.
fn spelt(judge: &Judge<'_, '_>, path: &Path) -> String {
    let escape = |path: &Path| {
        let mut text = String::new();
        for letter in path.to_string_lossy().chars() {
            if matches!(letter, '*' | '?' | '[' | ']' | '\\') {
                text.push('\\');
            }
            text.push(letter);
        }
        text
    };
    if let Ok(below) = path.strip_prefix(&judge.policy.root) {
        return format!("/{}", escape(below));
    }
    match path.strip_prefix(&judge.policy.home) {
        Ok(below) if judge.policy.home != Path::new("/") => format!("~/{}", escape(below)),
        _ => format!("/{}", escape(path)),
    }
}

/// One rule for every part that lacks one; nothing when a part cannot be put into a rule.
fn command(judge: &Judge<'_, '_>) -> Vec<Suggestion> {
    let Some(command) = judge.request.command_use() else { return Vec::new() };
    let analysis = &command.analysis;
    if !analysis.unresolved().is_empty() {
        return Vec::new();
    }
    let Cover::Lacking(lacking) = Coverage::new(judge.policy, &judge.index, judge.request, command).look()
    else {
        return Vec::new();
    };
    if lacking.len() > MOST_PARTS {
        return Vec::new();
    }
    let mut found: Vec<Suggestion> = Vec::new();
    for at in lacking {
        let Some(part) = analysis.parts().get(at) else { return Vec::new() };
        let Some(rules) = part_rules(judge, part) else { return Vec::new() };
        for rule in rules {
            if !found.iter().any(|known| known.rule == rule.rule) {
                found.push(rule);
            }
        }
    }
    // They help only together.
    let mut found = found.into_iter();
    let Some(mut first) = found.next() else { return Vec::new() };
    for other in found {
        first.reach = format!("{}; {}", first.reach, other.reach);
        first.also.push(other.rule);
    }
    vec![first]
}

/// The rules for one part: its words, and the files it is redirected to.
fn part_rules(judge: &Judge<'_, '_>, part: &Part) -> Option<Vec<Suggestion>> {
    let mut rules = Vec::new();
    let redirected = |cause| cause == gripper_shell::Cause::Redirection;
    for effect in part.effects.iter().filter(|effect| redirected(effect.cause) && !effect.kind.is_read()) {
        let EffectKind::Write(Target::Path(path)) = &effect.kind else { return None };
        let rule = format!("Edit({})", spelt(judge, Path::new(path)));
        rules.push(suggestion(rule, "changing this file, whatever the tool".to_owned()));
    }
    let more = part.effects.iter().any(|effect| !redirected(effect.cause) && !effect.kind.is_read());
    if more || rules.is_empty() {
        rules.insert(0, words(part)?);
    }
    Some(rules)
}

fn words(part: &Part) -> Option<Suggestion> {
    let argv: Vec<&str> = part.argv.iter().map(Argument::literal).collect::<Option<_>>()?;
    let first = *argv.first()?;
    // What reads its program from elsewhere is no command one could know.
    if programs::is_interpreter(program(part)) && argv.iter().skip(1).all(|word| word.starts_with('-')) {
        return None;
    }
    let plain = |word: &&str| !word.starts_with('-') && !word.contains(char::is_whitespace) && is_plain(word);
    let count = match programs::words(&argv) {
        Some(count) => Some(count),
        None if programs::is_interpreter(program(part)) || programs::is_runner(program(part)) => None,
        None if destroys(part) || part.reader => None,
        None => Some(part.normal.head.len().max(1)),
    };
    let general = count.filter(|count| {
        argv.get(..*count).is_some_and(|words| words.iter().all(plain))
            && first == gripper_shell::bare_program(first)
    });
    if let Some(count) = general {
        let start = argv.get(..count)?.join(" ");
        let reach = format!("every command that begins with `{start}`, whatever follows");
        return Some(suggestion(format!("Bash({start} *)"), reach));
    }
    let exact: Vec<String> = argv.iter().map(|word| quoted(word)).collect();
    Some(suggestion(format!("Bash({})", exact.join(" ")), "this command, word for word".to_owned()))
}

fn destroys(part: &Part) -> bool {
    part.effects.iter().any(|effect| {
        matches!(
            effect.kind,
            EffectKind::Delete(_)
                | EffectKind::Tamper
                | EffectKind::Privilege
                | EffectKind::System
                | EffectKind::Process
        )
    })
}

fn is_plain(word: &str) -> bool {
    word.chars().all(|c| c.is_alphanumeric() || matches!(c, '-' | '_' | '.' | '/' | ':' | '@' | '+' | '='))
}

fn quoted(word: &str) -> String {
    if !word.is_empty() && is_plain(word) {
        return word.to_owned();
    }
    let escaped = word.replace('\\', "\\\\").replace('*', "\\*");
    if escaped.contains('\'') { format!("\"{escaped}\"") } else { format!("'{escaped}'") }
}

/// Whether a rule that begins with these words would let nearly anything be done.
pub(crate) fn is_too_broad(words: &[String]) -> bool {
    let Some(first) = words.first() else { return true };
    let name = first.rsplit('/').next().unwrap_or(first);
    let open = programs::is_interpreter(name) || programs::is_runner(name);
    let given = words.get(1..).unwrap_or_default();
    let code = given.iter().all(|word| word.starts_with('-'));
    let runs = matches!(given.first().map(String::as_str), Some("run" | "exec" | "x" | "dlx"))
        && programs::words(&[name]).is_some()
        && given.len() == 1;
    let whole = given.is_empty() && programs::is_open(name);
    let run = open && matches!(given, [word] if programs::runs(word) || word == "eval" || word == "x");
    (open && code) || runs || whole || run
}
