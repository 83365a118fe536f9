//! Built-in checks: those that refuse whatever the rules say, and those that always ask.

use std::path::{Path, PathBuf};

use gripper_shell::{Argument, Cause, Effect, EffectKind, Part, Phase, RiskKind, Target, Verdict, hidden};

use crate::{
    Behavior, By, Check, Decision, PathUse, Policy, Request, Risk, RuleList, Subject,
    index::{Index, located, words},
    programs, sensitive,
    web::{self, Site},
};

fn refuse(check: Check, reason: String) -> Decision {
    Decision::new(Behavior::Deny, By::Check(check), reason)
}

fn ask(check: Check, reason: String) -> Decision {
    Decision::new(Behavior::Ask, By::Check(check), reason)
}

fn shown(path: &Path) -> String {
    hidden::visible(&path.to_string_lossy()).into_owned()
}

/// Characters that deceive a reader of a command, or end a path early.
pub(crate) fn hidden(request: &Request<'_>) -> Option<Decision> {
    let (detail, what) = request.subjects.iter().find_map(|subject| match subject {
        Subject::Command(command) => {
            let found = hidden::find(&command.text);
            found
                .first()
                .map(|found| (format!("{} at byte {} of the command", found.name(), found.at), "command"))
        }
        Subject::Path(path) => {
            let at = path.written.to_string_lossy().find(|c: char| c.is_control())?;
            Some((format!("control character at byte {at} of the path"), "path"))
        }
        _ => None,
    })?;
    let reason = format!("the {what} hides a {detail}: write it without hidden characters");
    let mut decision = refuse(Check::HiddenCharacters, reason);
    decision.risks.push(Risk { name: "hidden_characters".into(), detail });
    Some(decision)
}

/// Writing what nothing may write, or leaving the working directories through a link.
pub(crate) fn protected(policy: &Policy, request: &Request<'_>) -> Option<Decision> {
    let written = || request.paths().filter(|path| path.write);
    let found = written().flat_map(PathUse::both).find(|path| {
        sensitive::is_protected(&path.to_string_lossy())
            || policy.protected.iter().any(|own| path.starts_with(own))
    });
    if let Some(path) = found {
        return Some(refuse(
            Check::ProtectedPath,
            format!("{} is protected: nothing may write it", shown(path)),
        ));
    }
    let escapes = |path: &&PathUse| policy.holds(&path.written) && !policy.holds(&path.real);
    let escaping = written().find(escapes)?;
    let (written, real) = (shown(&escaping.written), shown(&escaping.real));
    let reason = format!(
        "writing {written} would change {real}, which is outside the working directories: name that file itself"
    );
    Some(refuse(Check::EscapingLink, reason))
}

/// Removing, or changing in bulk, a folder that everything depends on.
pub(crate) fn critical_removal(policy: &Policy, request: &Request<'_>) -> Option<Decision> {
    let command = request.command_use()?;
    let above = |path: &Path| {
        let shallow = path.components().count() <= 2 && !policy.holds(path);
        let around = |folder: &PathBuf| folder.starts_with(path) && folder != path;
        shallow || path == policy.home || policy.directories.iter().any(around)
    };
    let critical = |path: &Path| above(path) || policy.directories.iter().any(|folder| folder == path);
    command.analysis.parts().iter().find_map(|part| {
        let does = |wanted: fn(&EffectKind) -> bool| part.effects.iter().any(|effect| wanted(&effect.kind));
        let in_bulk = does(|kind| *kind == EffectKind::Tamper);
        let searches = does(|kind| matches!(kind, EffectKind::Delete(Target::Unknown)));
        let found = part.effects.iter().find_map(|effect| match &effect.kind {
            EffectKind::Delete(Target::Path(path)) => critical(Path::new(path)).then(|| path.clone()),
            EffectKind::Write(Target::Path(path)) if in_bulk => above(Path::new(path)).then(|| path.clone()),
            // What is searched for things to delete goes with them; in the project a test may narrow it.
            EffectKind::List(Target::Path(path)) if searches => {
                let all = part.argv.len() <= 3 && critical(Path::new(path));
                (all || above(Path::new(path))).then(|| path.clone())
            }
            EffectKind::Delete(Target::Pattern(pattern)) => {
                let (folder, last) = pattern.rsplit_once('/')?;
                let folder = if folder.is_empty() { "/" } else { folder };
                let all = matches!(last, "*" | ".*" | "**" | "?*" | ".[!.]*") && critical(Path::new(folder));
                all.then(|| pattern.clone())
            }
            EffectKind::Delete(Target::Unknown) => {
                // `"$FOLDER"/*` is `/*` as long as the variable is empty.
                let word = effect.span.of(&command.text);
                let bare = word.replace(['"', '{', '}'], "");
                let empty = bare.strip_prefix('$').and_then(|rest| rest.split_once('/'));
                empty.is_some_and(|(_, rest)| matches!(rest, "" | "*")).then(|| word.to_owned())
            }
            _ => None,
        })?;
        let found = hidden::visible(&found);
        let reason = format!("removing {found} would destroy far more than a task needs: name what is to go");
        Some(refuse(Check::CriticalRemoval, reason))
    })
}

/// Removing whole folders that are not known beforehand.
pub(crate) fn blind_removal(request: &Request<'_>) -> Option<Decision> {
    let parts = request.command_use()?.analysis.parts();
    let blind = |part: &&Part| {
        let named = |argument: &Argument, effect: &Effect| argument.span == effect.span;
        let unknown = |effect: &Effect| {
            effect.kind == EffectKind::Delete(Target::Unknown)
                && (part.moved || part.argv.iter().skip(1).any(|argument| named(argument, effect)))
                && !programs::is_carrier(crate::index::program(part))
        };
        let in_bulk = part.effects.iter().any(|effect| effect.kind == EffectKind::Tamper);
        in_bulk && part.effects.iter().any(unknown)
    };
    let part = parts.iter().find(blind)?;
    let reason =
        format!("`{}` removes folders that are not known beforehand", hidden::visible(&part.shown()));
    Some(ask(Check::CriticalRemoval, reason))
}

/// A text that the shell itself may not be able to read.
pub(crate) fn malformed(request: &Request<'_>) -> Option<Decision> {
    let command = request.command_use()?;
    let risk = command.analysis.risks().iter().find(|risk| risk.kind == RiskKind::MalformedTokens)?;
    let reason = format!("{}: {}", risk.kind, risk.detail);
    Some(ask(Check::DeceptiveCommand, hidden::visible(&reason).into_owned()))
}

/// Words that name secret, steering or protected files, in a command of which it is not known what it
/// does with its words.
pub(crate) fn sensitive_words(policy: &Policy, index: &Index, request: &Request<'_>) -> Option<Decision> {
    let command = request.command_use()?;
    let list = index.list(RuleList::Allow);
    let parts = command.analysis.parts().iter().filter(|part| {
        part.effects.iter().any(|effect| {
            matches!(
                effect.kind,
                EffectKind::Execute(_)
                    | EffectKind::Unknown(_)
                    | EffectKind::Network { .. }
                    | EffectKind::Write(Target::Unknown)
                    | EffectKind::Delete(Target::Unknown)
            )
        })
    });
    let sends =
        |part: &Part| part.effects.iter().any(|effect| matches!(effect.kind, EffectKind::Network { .. }));
    let found =
        parts.flat_map(|part| words(part).map(move |word| (word, sends(part)))).find(|(word, sends)| {
            let path = located(policy, word);
            let text = path.to_string_lossy();
            let delicate = index.own.is_secret(&text)
                || sensitive::is_protected(&text)
                || (sensitive::is_steering(&text) && word.contains(['/', '.']));
            // `process.env` in code is no file.
            let code = text.ends_with(".env") && !text.ends_with("/.env") && !word.contains('/');
            // A rule that names the file lets it be read, but not be sent away.
            let named = !sends && list.names_path(&PathUse::new(path.clone(), path.clone(), false));
            delicate && !code && !named
        })?;
    if exactly_allowed(index, request) {
        return None;
    }
    let reason = format!(
        "`{}` is a sensitive file, and it is not known what the command does with it",
        hidden::visible(&found.0)
    );
    Some(ask(Check::SensitivePath, reason))
}

/// A command whose text hides what it does should be written plainly before anybody judges it.
pub(crate) fn deceptive(request: &Request<'_>, behavior: Behavior) -> Option<Decision> {
    let command = request.command_use()?;
    let risk = command.analysis.risks().iter().find(|risk| risk.kind.phase() == Phase::Allow)?;
    let reason = format!("{}: {}; {}", risk.kind, risk.detail, risk.kind.advice());
    Some(Decision::new(behavior, By::Check(Check::DeceptiveCommand), hidden::visible(&reason).into_owned()))
}

fn sites<'r>(request: &'r Request<'_>) -> impl Iterator<Item = Site> + 'r {
    request.subjects.iter().filter_map(|subject| match subject {
        Subject::Url(url) => Some(web::site(url)),
        _ => None,
    })
}

/// A URL that may not be fetched.
pub(crate) fn bad_url(request: &Request<'_>) -> Option<Decision> {
    sites(request).find_map(|site| match site {
        Site::Refused(why) => Some(refuse(Check::BadUrl, why)),
        _ => None,
    })
}

/// A page of a site that only publishes documentation, over an encrypted connection.
pub(crate) fn is_documentation(request: &Request<'_>) -> bool {
    let mut sites = sites(request).peekable();
    let page = |site| matches!(site, Site::Open { host, https: true } if web::is_preapproved(&host));
    sites.peek().is_some() && sites.all(page)
}

/// A URL that a person must see, whatever the rules say.
pub(crate) fn doubtful_url(request: &Request<'_>) -> Option<Decision> {
    sites(request).find_map(|site| match site {
        Site::Doubtful { why, .. } => Some(ask(Check::DoubtfulUrl, why)),
        _ => None,
    })
}

/// Reading or writing what holds secrets, or writing what steers other programs, unless a rule
/// names that very file.
pub(crate) fn sensitive_path(index: &Index, request: &Request<'_>) -> Option<Decision> {
    for path in request.paths().filter(|path| !path.names_only && path.pattern.is_none()) {
        if let Some((it, why)) = delicate(index, path)
            && !exactly_allowed(index, request)
        {
            return Some(ask(Check::SensitivePath, format!("{} {why}", shown(it))));
        }
    }
    let patterns = request.paths().filter(|path| !path.names_only).filter_map(|path| path.pattern.as_ref());
    let pattern = patterns.into_iter().find(|pattern| sensitive::pattern_is_secret(pattern))?;
    let reason = format!("`{}` may lead to secrets", hidden::visible(pattern));
    (!exactly_allowed(index, request)).then(|| ask(Check::SensitivePath, reason))
}

/// What is delicate about a path, unless a rule names it.
pub(crate) fn delicate<'p>(index: &Index, path: &'p PathUse) -> Option<(&'p Path, &'static str)> {
    // Comparing paths part by part would cost more than all the rest.
    let same = path.written.as_os_str() == path.real.as_os_str();
    let found = path.both().into_iter().skip(usize::from(same)).find_map(|it| {
        let text = it.to_string_lossy();
        if index.own.is_secret(&text) {
            Some((it.as_path(), "may hold secrets"))
        } else if path.write && sensitive::is_steering(&text) {
            Some((it.as_path(), "decides what other programs do later"))
        } else {
            None
        }
    });
    found.filter(|_| !index.list(RuleList::Allow).names_path(path))
}

/// Whether a rule spells out the whole command, word for word. What a redirection adds stands in the
/// line only.
fn exactly_allowed(index: &Index, request: &Request<'_>) -> bool {
    let Some(command) = request.command_use() else { return false };
    let list = index.list(RuleList::Allow);
    if list.spells_out(&command.text).is_some() {
        return true;
    }
    let [part] = command.analysis.parts() else { return false };
    let redirected = part.effects.iter().any(|effect| effect.cause == Cause::Redirection);
    let mut rules = list.commands(crate::index::program(part));
    !redirected && rules.any(|(pattern, _)| pattern.is_exact() && pattern.allows(&part.argv))
}

/// A redirection that leaves the working directories.
pub(crate) fn redirection(policy: &Policy, request: &Request<'_>) -> Option<Decision> {
    let analysis = &request.command_use()?.analysis;
    let outside = analysis.effects().find_map(|effect| match &effect.kind {
        EffectKind::Write(target) if effect.cause == Cause::Redirection => match target {
            Target::Path(path) | Target::Pattern(path) => {
                (!policy.holds(Path::new(path))).then(|| hidden::visible(path).into_owned())
            }
            Target::Unknown => Some("a file that is not known beforehand".to_owned()),
        },
        _ => None,
    })?;
    Some(ask(Check::Redirection, format!("a redirection writes {outside}, outside the working directories")))
}

/// Secrets together with a way out.
pub(crate) fn exfiltration(index: &Index, request: &Request<'_>) -> Option<Decision> {
    let analysis = &request.command_use()?.analysis;
    let sends = analysis
        .effects()
        .any(|effect| matches!(&effect.kind, EffectKind::Network { sends: true, .. } | EffectKind::Listen));
    let secret = analysis.effects().any(|effect| match &effect.kind {
        EffectKind::Environment(_) => effect.cause != Cause::Setting,
        EffectKind::Read(Target::Path(path)) => index.own.is_secret(path),
        _ => false,
    });
    (sends && secret)
        .then(|| ask(Check::Exfiltration, "it sends data out and uses secrets or the environment".to_owned()))
}

/// A command that only reads, but decides while it runs what.
pub(crate) fn open_reads(policy: &Policy, request: &Request<'_>) -> Option<Decision> {
    let analysis = &request.command_use()?.analysis;
    if analysis.verdict() != Verdict::ReadOnlyIfConfined {
        return None;
    }
    if !policy.flags.confined {
        let why = analysis
            .confined()
            .first()
            .map_or("which files it reads is decided while it runs", |note| &note.why);
        let reason = format!("{why}, and nothing here hides sensitive files from it");
        return Some(ask(Check::Unconfined, reason));
    }
    let reads = analysis.reads();
    // Names that are only listed count when something else reads what is not known.
    let lists = if reads.contains(&Target::Unknown) { analysis.lists() } else { Default::default() };
    let pattern = reads.iter().chain(&lists).find_map(|target| match target {
        Target::Pattern(pattern) if sensitive::pattern_is_secret(pattern) => Some(pattern.as_str()),
        _ => None,
    });
    let open = reads.contains(&Target::Unknown);
    let hint = analysis.hints().iter().find(|word| open && sensitive::word_is_secret(word));
    let named = analysis.words().iter().find(|word| open && sensitive::names_secret(word));
    let found = pattern.or(hint.or(named).map(String::as_str))?;
    let reason = format!("`{}` may lead to secrets", hidden::visible(found));
    Some(ask(Check::SensitivePath, reason))
}

/// The first path, as written or as it resolves, that leaves the working directories.
pub(crate) fn first_outside(policy: &Policy, request: &Request<'_>) -> Option<String> {
    request.paths().find_map(|path| {
        if !policy.holds(&path.written) {
            Some(path.written.display().to_string())
        } else if !policy.holds(&path.real) {
            Some(format!("{} (which leads to {})", path.written.display(), path.real.display()))
        } else {
            None
        }
    })
}
