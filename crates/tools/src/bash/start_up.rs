//! What the person's own shell starts with: taken down once, and given to commands.
//!
//! A function or an alias gives a name another meaning than the one that was judged. So what nobody was asked
//! about gets only such names as mean nothing otherwise, and what was allowed because it only reads gets none.

use std::{
    collections::HashSet,
    ffi::{OsStr, OsString},
    io::Write,
    os::unix::{
        ffi::{OsStrExt, OsStringExt},
        fs::OpenOptionsExt,
    },
    path::{Path, PathBuf},
    sync::{
        LazyLock,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use gripper_process::{Spec, Status};
use gripper_runtime::{Call, permissions::programs};

use super::{Settings, environment::is_secret};

/// Start files that take longer are gone without.
const PATIENCE: Duration = Duration::from_secs(5);
/// The most that is taken of them.
const MOST_BYTES: usize = 4 * 1024 * 1024;
/// Stands before what is asked of the shell: start files may print.
const MARK: &[u8] = b"\0gripper-start-up\0";
/// Variables, a NUL, then names with their definitions. Only bash knows what it has defined in its own words.
const TELL: &str = r#"printf '\0gripper-start-up\0'; command env -0; printf '\0'
if [ -n "$BASH_VERSION" ]; then
compgen -A function | while IFS= read -r name; do printf '%s\0' "$name"; declare -f -- "$name"; printf '\0'; done
compgen -A alias | while IFS= read -r name; do printf '%s\0' "$name"; alias -- "$name"; printf '\0'; done
fi; exit 0"#;
/// Words of the shell's grammar; an alias of that name would change what a line means.
const KEYWORDS: [&str; 18] = [
    "if",
    "then",
    "elif",
    "else",
    "fi",
    "case",
    "esac",
    "for",
    "select",
    "while",
    "until",
    "do",
    "done",
    "in",
    "function",
    "time",
    "coproc",
    "command_not_found_handle",
];

/// What start files have set.
#[derive(Debug, Default)]
pub struct StartUp {
    env: Vec<(OsString, OsString)>,
    /// All definitions, and those of names that mean nothing otherwise.
    files: Option<(PathBuf, PathBuf)>,
    trouble: Option<String>,
    told: AtomicBool,
}

impl StartUp {
    /// Runs the person's shell once, as for a login and with somebody at it.
    pub(super) async fn take(settings: &Settings, call: &Call) -> Self {
        let variable = |wanted: &str| {
            settings.env.iter().find(|(name, _)| name == wanted).map(|(_, value)| value.clone())
        };
        if variable("HOME").is_none() {
            return Self::default();
        }
        let shell = variable("SHELL").filter(|shell| {
            let name = Path::new(shell).file_name();
            name.is_some_and(|name| name == "bash" || name == "zsh")
        });
        let args = vec!["-l".into(), "-i".into(), "-c".into(), TELL.into()];
        let spec = Spec {
            env: settings.environment(),
            keep: MOST_BYTES,
            limit: PATIENCE,
            ..Spec::exec(shell.unwrap_or_else(|| "bash".into()), args, call.policy.home.clone())
        };
        let ended = match gripper_process::run(spec, &call.cancel).await {
            Ok(ended) => ended,
            Err(error) => return Self::without(&error.to_string()),
        };
        if ended.status == Status::TimedOut {
            return Self::without(&format!("they were not done after {} s", PATIENCE.as_secs()));
        }
        let told = memchr::memmem::find(&ended.stdout.bytes, MARK).map(|at| at + MARK.len());
        match told.and_then(|at| ended.stdout.bytes.get(at..)).filter(|_| ended.stdout.dropped == 0) {
            Some(told) => Self::read(told, settings, call).await,
            None => Self::without("the shell did not get as far as telling what they set"),
        }
    }

    fn without(why: &str) -> Self {
        let trouble = format!(
            "the start files of your shell are not used: {why}; `bash.startFiles: false` leaves them out"
        );
        Self { trouble: Some(trouble), ..Self::default() }
    }

    async fn read(told: &[u8], settings: &Settings, call: &Call) -> Self {
        let mut pieces = told.split(|byte| *byte == 0);
        let mut start = Self::default();
        for piece in pieces.by_ref().take_while(|piece| !piece.is_empty()) {
            let Some(at) = memchr::memchr(b'=', piece) else { continue };
            let name = String::from_utf8_lossy(&piece[..at]);
            if is_wanted(&name) && (settings.keep_secrets || !is_secret(&name)) {
                let value = OsStr::from_bytes(&piece[at + 1..]);
                start.env.push((name.into_owned().into(), value.to_owned()));
            }
        }
        let pieces: Vec<&[u8]> = pieces.collect();
        let Some(folder) = settings.outputs.as_ref().map(|outputs| outputs.join(&*call.session)) else {
            return start;
        };
        let (all, new) = (folder.join("shell-all.sh"), folder.join("shell-new.sh"));
        let definitions = || pieces.chunks_exact(2).map(|pair| (pair[0], pair[1]));
        if definitions().next().is_none() {
            return start;
        }
        let written = write(&folder, &all, definitions())
            .and_then(|()| write(&folder, &new, definitions().filter(|(name, _)| means_nothing_else(name))));
        // A definition that cannot be read again would spoil every command.
        let args = vec!["-O".into(), "extglob".into(), "-n".into(), all.clone().into()];
        let spec = Spec { env: settings.environment(), limit: PATIENCE, ..Spec::exec("bash", args, folder) };
        let sound = gripper_process::run(spec, &call.cancel)
            .await
            .is_ok_and(|ended| ended.status == Status::Exited(0));
        match written {
            Ok(()) if sound => start.files = Some((all, new)),
            Ok(()) => start.trouble = Self::without("bash cannot read its own definitions back").trouble,
            Err(error) => start.trouble = Self::without(&format!("they cannot be kept: {error}")).trouble,
        }
        start
    }

    /// What there is to be said, once.
    pub(super) fn trouble(&self) -> Option<String> {
        self.trouble.clone().filter(|_| !self.told.swap(true, Ordering::Relaxed))
    }

    /// Adds to the environment of a call what start files have set.
    pub(super) fn add_to(&self, env: &mut Vec<(OsString, OsString)>, call: &Call) {
        for (name, value) in &self.env {
            match env.iter_mut().find(|(known, _)| known == name) {
                Some((_, path)) if name == "PATH" => *path = joined(path, value),
                Some(_) => {}
                None => env.push((name.clone(), value.clone())),
            }
        }
        let file = match &self.files {
            Some((all, _)) if call.approved => all,
            Some((_, new)) if !call.access.read_only() => new,
            _ => return,
        };
        env.push(("BASH_ENV".into(), file.into()));
    }
}

/// Whether a variable is one that was set for good.
fn is_wanted(name: &str) -> bool {
    !["_", "SHLVL", "PWD", "OLDPWD", "BASH_ENV", "ENV", "PS1"].contains(&name) && !name.contains('%')
}

/// Whether a name has no meaning that a command could have been judged by.
fn means_nothing_else(name: &[u8]) -> bool {
    static KNOWN: LazyLock<HashSet<&str>> =
        LazyLock::new(|| programs().map(|(name, _)| name).chain(KEYWORDS).collect());
    let plain = |c: char| c.is_ascii_alphanumeric() || "_-.:+".contains(c);
    std::str::from_utf8(name).is_ok_and(|name| name.chars().all(plain) && !KNOWN.contains(name))
}

fn write<'a>(
    folder: &Path,
    file: &Path,
    definitions: impl Iterator<Item = (&'a [u8], &'a [u8])>,
) -> std::io::Result<()> {
    std::fs::create_dir_all(folder)?;
    let mut text = b"shopt -s expand_aliases extglob\n".to_vec();
    for (_, definition) in definitions {
        text.extend_from_slice(definition);
        text.push(b'\n');
    }
    // Shells further down start as they always do.
    text.extend_from_slice(b"shopt -u extglob\nunset BASH_ENV\n");
    let mut options = std::fs::OpenOptions::new();
    options.write(true).create(true).truncate(true).mode(0o600).open(file)?.write_all(&text)
}

/// Both search paths in one. Where start files only add to what there is, their order counts; folders that
/// depend on where a command runs are left out.
fn joined(ours: &OsStr, theirs: &OsStr) -> OsString {
    let folders = |path: &OsStr| -> Vec<Vec<u8>> {
        path.as_bytes().split(|byte| *byte == b':').map(<[u8]>::to_vec).collect()
    };
    let added = folders(theirs).into_iter().filter(|folder| folder.starts_with(b"/"));
    let added: Vec<Vec<u8>> = added.collect();
    let base = folders(ours);
    let mut all = if base.iter().all(|folder| added.contains(folder)) { Vec::new() } else { base };
    for folder in added {
        if !all.contains(&folder) {
            all.push(folder);
        }
    }
    OsString::from_vec(all.join(&b':'))
}

#[cfg(test)]
mod tests {
    use super::{joined, means_nothing_else};

    #[test]
    fn names_that_mean_something_stay_what_they_are() {
        for name in ["ls", "git", "cd", "if", "[", "time", "a b", "x/y", "command_not_found_handle"] {
            assert!(!means_nothing_else(name.as_bytes()), "{name}");
        }
        assert!(means_nothing_else(b"greet_me"));
    }

    #[test]
    fn search_paths_are_joined() {
        let table = [
            ("/usr/bin:/bin", "/home/dev/bin:/usr/bin:/bin", "/home/dev/bin:/usr/bin:/bin"),
            ("/fake:/usr/bin", "/home/dev/bin:/usr/bin", "/fake:/usr/bin:/home/dev/bin"),
            ("/usr/bin", "node_modules/.bin:/usr/bin:.", "/usr/bin"),
        ];
        for (ours, theirs, expected) in table {
            assert_eq!(joined(ours.as_ref(), theirs.as_ref()), expected);
        }
    }
}
