//! What the analysis is told about the place where the command would run.

/// Where a command would run. The analysis looks at nothing else: no files, no environment.
#[derive(Clone)]
pub struct Surroundings<'a> {
    /// The working directory, absolute.
    pub cwd: String,
    /// The home directory, absolute.
    pub home: String,
    /// The folders that may be worked in, absolute.
    pub roots: Vec<String>,
    /// Whether a path holds secrets or steers other programs.
    pub sensitive: &'a (dyn Fn(&str) -> bool + Sync),
}

impl Surroundings<'static> {
    /// A place whose only root is its working directory, with nothing marked sensitive.
    pub fn new(cwd: impl Into<String>, home: impl Into<String>) -> Self {
        let cwd = cwd.into();
        Self { roots: vec![cwd.clone()], cwd, home: home.into(), sensitive: &|_| false }
    }
}

impl<'a> Surroundings<'a> {
    /// With another opinion on what is sensitive.
    #[must_use]
    pub fn with_sensitive<'b>(self, sensitive: &'b (dyn Fn(&str) -> bool + Sync)) -> Surroundings<'b> {
        Surroundings { cwd: self.cwd, home: self.home, roots: self.roots, sensitive }
    }

    /// Whether `path`, absolute and without dots, lies in one of the roots.
    pub fn holds(&self, path: &str) -> bool {
        self.roots.iter().any(|root| within(path, root))
    }
}

/// Whether `path` is `root` or below it.
pub(crate) fn within(path: &str, root: &str) -> bool {
    let root = root.trim_end_matches('/');
    path.strip_prefix(root).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// `path` against `base`, with `.`, `..` and double slashes taken out. `..` above the root stays at the root.
pub fn join(base: &str, path: &str) -> String {
    let mut parts: Vec<&str> = Vec::new();
    let whole = [if path.starts_with('/') { "" } else { base }, path];
    for part in whole.iter().flat_map(|text| text.split('/')) {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop();
            }
            other => parts.push(other),
        }
    }
    format!("/{}", parts.join("/"))
}
