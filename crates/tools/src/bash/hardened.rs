//! Git as it runs where nobody was asked: without programs that a repository names.

use std::{
    collections::BTreeSet,
    ffi::OsString,
    fs,
    path::{Path, PathBuf},
    time::Duration,
};

use gripper_process::Spec;
use gripper_runtime::Call;

use super::environment::Variables;

/// Settings that keep a repository from running programs of its own.
const SETTINGS: [(&str, &str); 10] = [
    ("core.askPass", ""),
    ("core.fsmonitor", "false"),
    ("core.gitProxy", ""),
    ("core.hooksPath", "/dev/null"),
    ("core.pager", "cat"),
    ("core.sshCommand", "false"),
    ("credential.helper", ""),
    ("log.showSignature", "false"),
    ("protocol.ext.allow", "never"),
    // A folder that only looks like a repository is none: its settings would be anybody's.
    ("safe.bareRepository", "explicit"),
];
/// Settings with names of their own that do the same.
const NAMED: &str =
    r"^(diff\.external|diff\..*\.(textconv|command)|filter\..*\.(clean|smudge|process|required))$";
/// A configuration without any of these words has none of them.
const WORDS: [&str; 4] = ["external", "textconv", "filter", "include"];
/// Nothing can stand in for a program that shows differences in its own way.
const REFUSAL: &str = "echo 'a program that this repository names for showing differences was not run, as nobody \
    was asked; git diff --no-ext-diff goes without it' >&2; false";
const PATIENCE: Duration = Duration::from_secs(5);

/// What may stand beside `git config` in a line that only asks for settings: none of these starts git.
const FILTERS: [&str; 9] = ["cat", "cut", "echo", "grep", "head", "sort", "tail", "tr", "wc"];

/// The variables with which git runs hardened: what the person's own settings name stays.
pub(super) async fn variables(call: &Call, env: &Variables) -> Variables {
    if only_asks_for_settings(call) {
        return Vec::new();
    }
    let mut settings: Vec<(String, &str)> = SETTINGS.map(|(name, value)| (name.to_owned(), value)).into();
    for repository in repositories(call) {
        for name in named(repository, call, env).await {
            let instead = match name.rsplit('.').next() {
                Some("textconv") => "cat",
                Some("clean" | "smudge" | "process") => "",
                Some("required") => "false",
                _ => REFUSAL,
            };
            settings.push((name, instead));
        }
    }
    let count = settings.len().to_string();
    let mut variables: Vec<(String, String)> =
        vec![("GIT_CONFIG_COUNT".into(), count), ("GIT_OPTIONAL_LOCKS".into(), "0".into())];
    for (number, (name, value)) in settings.into_iter().enumerate() {
        variables.push((format!("GIT_CONFIG_KEY_{number}"), name));
        variables.push((format!("GIT_CONFIG_VALUE_{number}"), value.to_owned()));
    }
    variables.into_iter().map(|(name, value)| (name.into(), value.into())).collect()
}

/// Whether git is only asked what its settings are. That runs nothing, and the answer must not be ours.
fn only_asks_for_settings(call: &Call) -> bool {
    let parts = call.access.command_use().map(|command| command.analysis.parts()).unwrap_or_default();
    // As far as each is known; one that is not known at all is empty, and fits nothing below.
    let known = parts.iter().filter(|part| !part.argv.is_empty());
    let known = known.map(|part| part.argv.iter().map_while(|word| word.literal()).collect::<Vec<_>>());
    let known: Vec<_> = known.collect();
    let asks = |words: &Vec<&str>| words.starts_with(&["git", "config"]);
    known.iter().any(asks)
        && known.iter().all(|words| asks(words) || words.first().is_some_and(|name| FILTERS.contains(name)))
}

/// The repositories that git could stand in whose configuration may name programs: around the working directory, and
/// around every folder that the command names.
fn repositories(call: &Call) -> BTreeSet<PathBuf> {
    let Some(command) = call.access.command_use() else { return BTreeSet::new() };
    let parts = command.analysis.parts();
    let words = || parts.iter().flat_map(|part| &part.argv).filter_map(|word| word.literal());
    if !words().any(|word| word.ends_with("git")) {
        return BTreeSet::new();
    }
    let after = call.cwd().join(command.analysis.cwd().unwrap_or_default());
    let named = words().flat_map(|word| [call.cwd().join(word), after.join(word)]);
    let folders = named.filter(|folder| folder.is_dir()).chain([after.clone()]);
    let around = |folder: PathBuf| folder.ancestors().find(|at| at.join(".git").exists()).map(Path::to_owned);
    folders.filter_map(around).filter(|root| may_name(&root.join(".git"))).collect()
}

fn may_name(git: &Path) -> bool {
    // The file of a worktree or submodule leads elsewhere.
    !git.is_dir()
        || ["config", "config.worktree"].iter().any(|name| {
            let text = fs::read(git.join(name)).unwrap_or_default();
            let text = String::from_utf8_lossy(&text).to_lowercase();
            WORDS.iter().any(|word| text.contains(word)) || text.contains("[diff") && text.contains("command")
        })
}

/// The names of such settings in the configuration of a repository. To ask git runs nothing.
async fn named(repository: PathBuf, call: &Call, env: &Variables) -> Vec<String> {
    let words = ["config", "--show-scope", "--name-only", "-z", "--get-regexp", NAMED];
    let args = words.map(OsString::from).into();
    let spec = Spec { env: env.clone(), limit: PATIENCE, ..Spec::exec("git", args, repository) };
    let Ok(ended) = gripper_process::run(spec, &call.cancel).await else { return Vec::new() };
    let text = ended.stdout.text().into_owned();
    let fields: Vec<&str> = text.split('\0').collect();
    let own = fields.chunks_exact(2).filter(|pair| matches!(pair[0], "local" | "worktree"));
    own.map(|pair| pair[1].to_owned()).collect()
}
