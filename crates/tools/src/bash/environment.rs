//! What a command finds in its environment, and how long it may take.

use std::{ffi::OsString, path::PathBuf, sync::Arc, time::Duration};

use gripper_process::limits::Limits;
use gripper_runtime::Call;
use tokio::sync::OnceCell;

use super::{cage, hardened, start_up::StartUp};

/// Names and values.
pub(super) type Variables = Vec<(OsString, OsString)>;

/// Names with one of these in them hold secrets.
const SECRET: [&str; 8] = ["KEY", "TOKEN", "SECRET", "PASSWORD", "PASSWD", "CREDENTIAL", "AUTH", "PRIVATE"];
/// Names that only look like it.
const HARMLESS: [&str; 4] = ["SSH_AUTH_SOCK", "XAUTHORITY", "KEYBOARD_LAYOUT", "GPG_TTY"];
/// Nothing waits for a terminal, and nothing is coloured.
const QUIET: [(&str, &str); 9] = [
    ("PAGER", "cat"),
    ("GIT_PAGER", "cat"),
    ("MANPAGER", "cat"),
    ("GH_PAGER", "cat"),
    ("GIT_TERMINAL_PROMPT", "0"),
    ("GIT_EDITOR", "true"),
    ("NO_COLOR", "1"),
    ("TERM", "dumb"),
    ("DEBIAN_FRONTEND", "noninteractive"),
];
/// For commands that only ask others: the usual way there, whatever the repository says, and folders for what
/// they put by, which goes with the cage.
const QUERIES: [(&str, &str); 3] =
    [("GIT_SSH_COMMAND", "ssh"), ("XDG_CACHE_HOME", "/tmp/.cache"), ("npm_config_cache", "/tmp/.npm")];

/// How commands are run.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The environment to start from.
    pub env: Vec<(OsString, OsString)>,
    /// Secrets are handed down as well.
    pub keep_secrets: bool,
    /// The usual time and the longest.
    pub limits: (Duration, Duration),
    /// What is out of time is ended, instead of going on in the background.
    pub kill_on_time_out: bool,
    /// Nothing may run without a cage, whoever agrees.
    pub bare_forbidden: bool,
    /// Where whole outputs go, by session.
    pub outputs: Option<PathBuf>,
    /// Every command is confined to the working directories, unless a person agreed to it.
    pub sandbox: bool,
    /// What cannot be confined does not run at all.
    pub fail_if_unavailable: bool,
    /// How much a command may use.
    pub resources: Limits,
    /// Hosts that confined commands may reach, as patterns.
    pub allowed_hosts: Vec<String>,
    /// Hosts that they may not, whoever allows them.
    pub denied_hosts: Vec<String>,
    /// Commands find what the start files of the person's shell set.
    pub start_files: bool,
    /// What those have set, once it was asked for.
    pub start_up: Arc<OnceCell<StartUp>>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            env: Vec::new(),
            keep_secrets: false,
            limits: (Duration::from_secs(120), Duration::from_secs(600)),
            kill_on_time_out: false,
            bare_forbidden: false,
            outputs: None,
            sandbox: false,
            fail_if_unavailable: false,
            resources: Limits::default(),
            allowed_hosts: Vec::new(),
            denied_hosts: Vec::new(),
            start_files: false,
            start_up: Arc::default(),
        }
    }
}

impl Settings {
    /// The limits that the environment asks for, under the names in use.
    pub fn with_limits_of_env(mut self) -> Self {
        let set = |name: &str| {
            let value = self.env.iter().find(|(known, _)| known == name)?.1.to_str()?;
            value.trim().parse().ok().filter(|ms| *ms > 0).map(Duration::from_millis)
        };
        let most = set("BASH_MAX_TIMEOUT_MS").unwrap_or(self.limits.1);
        let usual = set("BASH_DEFAULT_TIMEOUT_MS").unwrap_or(self.limits.0);
        self.limits = (usual.min(most), most);
        self
    }

    /// What a command finds.
    pub(crate) fn environment(&self) -> Vec<(OsString, OsString)> {
        let mut env: Vec<(OsString, OsString)> = self
            .env
            .iter()
            .filter(|(name, _)| self.keep_secrets || !is_secret(&name.to_string_lossy()))
            .filter(|(name, _)| !QUIET.iter().any(|(quiet, _)| name == quiet))
            .cloned()
            .collect();
        env.extend(QUIET.iter().map(|(name, value)| (OsString::from(name), OsString::from(value))));
        env
    }

    /// What the command of a call finds, start files included.
    pub(super) async fn environment_of(&self, call: &Call) -> Variables {
        let queries = cage::queries(call);
        let mut env = self.environment();
        if queries || (call.access.read_only() && !call.approved) {
            env.extend(hardened::variables(call, &env).await);
        }
        if queries {
            env.retain(|(name, _)| !QUERIES.iter().any(|(known, _)| name == known));
            env.extend(QUERIES.map(|(name, value)| (name.into(), value.into())));
        }
        if !call.approved {
            // Functions in the environment, and files of them, give names another meaning than was judged.
            env.retain(|(name, _)| {
                name != "BASH_ENV" && name != "ENV" && !name.as_encoded_bytes().starts_with(b"BASH_FUNC_")
            });
        }
        if self.start_files {
            self.start_up.get_or_init(|| StartUp::take(self, call)).await.add_to(&mut env, call);
        }
        env
    }

    /// What went wrong with the start files, once.
    pub(super) fn trouble(&self) -> Option<String> {
        self.start_up.get()?.trouble()
    }

    pub(super) fn output_file(&self, session: &str) -> Option<PathBuf> {
        let folder = self.outputs.as_ref()?.join(session).join("outputs");
        std::fs::create_dir_all(&folder).ok()?;
        Some(folder.join(format!("{}.log", uuid::Uuid::now_v7())))
    }
}

pub(super) fn is_secret(name: &str) -> bool {
    let name = name.to_ascii_uppercase();
    !HARMLESS.contains(&name.as_str()) && SECRET.iter().any(|part| name.contains(part))
}
