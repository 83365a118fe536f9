//! The one place that reads the process environment and knows the home directory.

use std::{env, ffi::OsString, path::PathBuf};

use gripper_process::confine::Backend;

/// The concurrency limit, under the names people may already have set; the first one set counts.
const CONCURRENCY_NAMES: [&str; 3] = [
    "GRIPPER_MAX_TOOL_CONCURRENCY",
    "COCODE_MAX_TOOL_USE_CONCURRENCY",
    "CLAUDE_CODE_MAX_TOOL_USE_CONCURRENCY",
];

/// Which back ends of confinement may be used.
pub const BACKENDS_NAME: &str = "GRIPPER_SANDBOX_BACKENDS";

/// More at once only costs memory and open files.
const CONCURRENCY_CEILING: usize = 256;

/// Where whoever runs the machine keeps policy. No variable moves it.
const MANAGED_DIR: &str = "/etc/gripper";

/// What Gripper takes from its environment, read once at the start.
#[derive(Debug, Clone, Default)]
pub struct Environment {
    /// Where settings, sessions and the audit log live: `GRIPPER_CONFIG_DIR`, else `~/.gripper`.
    pub config_dir: Option<PathBuf>,
    /// Where settings in the widely used form live: `CLAUDE_CONFIG_DIR`, else `~/.claude`.
    pub claude_dir: Option<PathBuf>,
    /// Folders of managed policy, the machine's own first. `GRIPPER_MANAGED_DIR` adds one behind it.
    pub managed_dirs: Vec<PathBuf>,
    /// The wanted concurrency limit, if one was set and makes sense.
    pub max_concurrency: Option<usize>,
    /// Bypass was forced although the process is root (`GRIPPER_FORCE_BYPASS=1`).
    pub force_bypass: bool,
    /// The secret that clients of the HTTP server must carry (`GRIPPER_MCP_TOKEN`).
    pub mcp_token: Option<String>,
    /// The back ends of confinement that may be used, if `GRIPPER_SANDBOX_BACKENDS` names any or `none`.
    pub backends: Option<Vec<Backend>>,
    /// The home directory, if it is set and absolute.
    pub home: Option<PathBuf>,
    /// The working directory of the process, links followed.
    pub cwd: Option<PathBuf>,
    /// What was set but could not be used, in words for the person.
    pub complaints: Vec<String>,
}

impl Environment {
    /// Reads the process environment.
    pub fn from_process() -> Self {
        let cwd = env::current_dir().ok();
        Self { cwd, ..Self::from_lookup(|name| env::var_os(name).and_then(|value| value.into_string().ok())) }
    }

    /// Reads through a function, so that tests need not touch the process.
    pub fn from_lookup(lookup: impl Fn(&str) -> Option<String>) -> Self {
        let set = |name: &str| lookup(name).filter(|value| !value.is_empty());
        let mut complaints = Vec::new();
        let max_concurrency = CONCURRENCY_NAMES.iter().find_map(|name| {
            let value = set(name)?;
            match value.trim().parse::<usize>() {
                Ok(limit @ 1..=CONCURRENCY_CEILING) => Some(limit),
                _ => {
                    complaints.push(format!(
                        "{name} is \"{value}\": expected a whole number from 1 to {CONCURRENCY_CEILING}, so it was ignored"
                    ));
                    None
                }
            }
        });
        let backends = set(BACKENDS_NAME).and_then(|value| {
            let named = |name: &str| Backend::ALL.into_iter().find(|known| known.to_string() == name);
            let names = value.split(',').map(str::trim).filter(|name| *name != "none");
            let backends: Option<Vec<Backend>> = names.map(named).collect();
            if backends.is_none() {
                let known = Backend::ALL.map(|backend| backend.to_string()).join(", ");
                complaints.push(format!(
                    "{BACKENDS_NAME} is \"{value}\": expected names of {known}, or none, so it was ignored"
                ));
            }
            backends
        });
        // A relative one would scatter logs over whatever directory happens to be current.
        let folder = |name: &str| set(name).map(PathBuf::from).filter(|folder| folder.is_absolute());
        let home = folder("HOME");
        let own = |name: &str, usual: &str| match set(name) {
            Some(_) => folder(name),
            None => home.as_ref().map(|home| home.join(usual)),
        };
        if set("GRIPPER_MANAGED_DIR").is_some() && folder("GRIPPER_MANAGED_DIR").is_none() {
            complaints.push("GRIPPER_MANAGED_DIR is not an absolute path, so it was ignored".to_owned());
        }
        let managed_dirs = [PathBuf::from(MANAGED_DIR)].into_iter().chain(folder("GRIPPER_MANAGED_DIR"));
        let force_bypass = set("GRIPPER_FORCE_BYPASS").is_some_and(|value| value == "1");
        Self {
            config_dir: own("GRIPPER_CONFIG_DIR", ".gripper"),
            claude_dir: own("CLAUDE_CONFIG_DIR", ".claude"),
            managed_dirs: managed_dirs.collect(),
            max_concurrency,
            force_bypass,
            mcp_token: set("GRIPPER_MCP_TOKEN"),
            backends,
            home,
            cwd: None,
            complaints,
        }
    }
}

/// One variable, for what settings name.
pub fn variable(name: &str) -> Option<String> {
    env::var(name).ok()
}

/// Every variable, for children that inherit the environment.
pub fn inherited() -> Vec<(OsString, OsString)> {
    env::vars_os().collect()
}

/// The program that runs, to be started once more.
pub fn own_program() -> Option<PathBuf> {
    // After an update its path leads to another program; this name does not.
    if cfg!(target_os = "linux") { Some("/proc/self/exe".into()) } else { env::current_exe().ok() }
}

/// The system and the processor, such as `linux x86_64`.
pub fn platform() -> String {
    format!("{} {}", env::consts::OS, env::consts::ARCH)
}

/// Where the program that runs lies, for others to start it.
pub fn own_path() -> Option<PathBuf> {
    env::current_exe().ok()
}

#[cfg(test)]
mod tests {
    use super::{BACKENDS_NAME, Backend, Environment};

    fn read(pairs: &[(&str, &str)]) -> Environment {
        Environment::from_lookup(|name| {
            pairs.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned())
        })
    }

    #[test]
    fn each_concurrency_name_counts_and_ours_comes_first() {
        assert_eq!(read(&[("CLAUDE_CODE_MAX_TOOL_USE_CONCURRENCY", "3")]).max_concurrency, Some(3));
        assert_eq!(read(&[("COCODE_MAX_TOOL_USE_CONCURRENCY", "4")]).max_concurrency, Some(4));
        let all = read(&[
            ("CLAUDE_CODE_MAX_TOOL_USE_CONCURRENCY", "3"),
            ("COCODE_MAX_TOOL_USE_CONCURRENCY", "4"),
            ("GRIPPER_MAX_TOOL_CONCURRENCY", "5"),
        ]);
        assert_eq!(all.max_concurrency, Some(5));
    }

    #[test]
    fn nonsense_is_reported_and_the_next_name_counts() {
        for bad in ["0", "-1", "many", "100000", "1.5"] {
            let environment =
                read(&[("GRIPPER_MAX_TOOL_CONCURRENCY", bad), ("COCODE_MAX_TOOL_USE_CONCURRENCY", "2")]);
            assert_eq!(environment.max_concurrency, Some(2), "{bad}");
            assert!(environment.complaints[0].contains(bad));
        }
    }

    #[test]
    fn managed_policy_is_added_to_and_never_moved() {
        let machine = std::path::PathBuf::from("/etc/gripper");
        assert_eq!(read(&[]).managed_dirs, vec![machine.clone()]);
        let more = read(&[("GRIPPER_MANAGED_DIR", "/more"), ("GRIPPER_CONFIG_DIR", "/c")]);
        assert_eq!(more.managed_dirs, [machine.clone(), "/more".into()]);
        let relative = read(&[("GRIPPER_MANAGED_DIR", "more")]);
        assert_eq!((relative.managed_dirs, relative.complaints.len()), (vec![machine], 1));
    }

    #[test]
    fn back_ends_are_named_or_none_and_a_slip_switches_nothing_off() {
        let backends = |value| read(&[(BACKENDS_NAME, value)]).backends;
        assert_eq!(backends("landlock, bubblewrap"), Some(vec![Backend::Landlock, Backend::Bubblewrap]));
        assert_eq!((backends("none"), backends("")), (Some(Vec::new()), None));
        assert_eq!((backends("slip"), read(&[(BACKENDS_NAME, "slip")]).complaints.len()), (None, 1));
    }

    #[test]
    fn config_directory() {
        let usual = read(&[("HOME", "/home/a")]).config_dir;
        assert_eq!(usual, Some("/home/a/.gripper".into()));
        let own = read(&[("HOME", "/home/a"), ("GRIPPER_CONFIG_DIR", "/c")]);
        assert_eq!(own.config_dir, Some("/c".into()));
        assert_eq!(read(&[]).config_dir, None);
        assert_eq!(read(&[("HOME", "relative")]).config_dir, None);
    }
}
