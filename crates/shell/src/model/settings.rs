//! Settings of git on its command line: which only change what is shown.

/// Names of settings, in small letters, that only change how something is compared or shown; a dot at
/// the end stands for all of that family.
const SHOWING: &[&str] = &[
    "advice.",
    "blame.coloring",
    "blame.date",
    "blame.showemail",
    "branch.sort",
    "color.",
    "column.",
    "core.abbrev",
    "core.autocrlf",
    "core.filemode",
    "core.preloadindex",
    "core.quotepath",
    "core.whitespace",
    "diff.algorithm",
    "diff.colormoved",
    "diff.context",
    "diff.ignoresubmodules",
    "diff.interhunkcontext",
    "diff.mnemonicprefix",
    "diff.noprefix",
    "diff.renamelimit",
    "diff.renames",
    "diff.statgraphwidth",
    "diff.statnamewidth",
    "diff.suppressblankempty",
    "diff.wserrorhighlight",
    "grep.column",
    "grep.fullname",
    "grep.linenumber",
    "grep.patterntype",
    "i18n.logoutputencoding",
    "log.abbrevcommit",
    "log.date",
    "log.decorate",
    "log.follow",
    "log.mailmap",
    "log.showroot",
    "status.",
    "tag.sort",
    "versionsort.suffix",
];
/// Names of settings that make git run a program: harmless when they are switched off.
const SWITCHES: &[&str] = &["core.fsmonitor", "log.showsignature", "pager."];

/// Whether `NAME=VALUE`, given to git for one command, only changes what is shown.
pub(crate) fn only_shows(setting: &str) -> bool {
    let (name, value) = setting.split_once('=').unwrap_or((setting, "true"));
    let name = name.to_ascii_lowercase();
    let listed = |list: &[&str]| {
        list.iter().any(|known| if known.ends_with('.') { name.starts_with(known) } else { name == *known })
    };
    let plain = value.chars().all(|c| c.is_ascii_alphanumeric() || " _.,:%#+-".contains(c));
    (plain && listed(SHOWING))
        || (matches!(value, "" | "false") && listed(SWITCHES))
        || (value == "cat" && (name == "core.pager" || name.starts_with("pager.")))
}
