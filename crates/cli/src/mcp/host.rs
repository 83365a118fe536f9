//! Sessions for clients, with the settings and rules of wherever they work.

use std::{
    fs::File,
    io::{BufRead, BufReader, Read},
    path::PathBuf,
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use futures::{FutureExt, future::BoxFuture};
use gripper_mcp::{
    client::Servers,
    server::{Document, Host, Opening, Session as ClientSession},
};
use gripper_runtime::{
    Toolbox,
    approve::{Checks, Coordinator},
    environment::Environment,
    prompts::{PromptWatch, Prompts},
    tool::ToolSpec,
};

use tokio::sync::watch;

use crate::{
    basis::{Basis, PolicyFlags},
    exit::UsageError,
    session::{self, Session},
    show,
};

/// How much of a document is given out.
const MOST_BYTES: u64 = 1024 * 1024;
const RESULTS: &str = "gripper://results/";
const TODOS: &str = "gripper://todos";
const AUDIT: &str = "gripper://audit";
const JSON: &str = "application/json";
const JSON_LINES: &str = "application/jsonl";
const TEXT: &str = "text/plain";
/// Requests that are not about prompts look for changed ones this often at most: every call would pay for it.
const LOOK: Duration = Duration::from_secs(1);

/// Which tools are served.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Profile {
    /// Those that change nothing
    ReadOnly,
    /// Those and the ones that edit files
    Edit,
    /// All
    Full,
}

/// Opens sessions.
pub(crate) struct Front {
    environment: Environment,
    flags: PolicyFlags,
    profile: Profile,
    names: Vec<String>,
    /// The person chose the folder; clients do not.
    pinned: bool,
}

impl Front {
    pub(crate) fn new(
        environment: Environment,
        flags: PolicyFlags,
        (profile, names): (Profile, Vec<String>),
        pinned: bool,
    ) -> anyhow::Result<Self> {
        let registry = session::registry()?;
        for name in &names {
            if registry.get(name).is_none() {
                let known: Vec<&str> = registry.iter().map(|tool| tool.spec().name.as_ref()).collect();
                return Err(UsageError(format!(
                    "--tools: there is no tool called {name}; there are {}",
                    known.join(", ")
                ))
                .into());
            }
        }
        Ok(Self { environment, flags, profile, names, pinned })
    }

    fn wants(&self, spec: &ToolSpec) -> bool {
        let named = |name: &String| *name == spec.name || spec.aliases.iter().any(|alias| name == alias);
        let facts = &spec.facts;
        (self.names.is_empty() || self.names.iter().any(named))
            && match self.profile {
                Profile::ReadOnly => facts.hints.read_only,
                Profile::Edit => facts.hints.read_only || facts.edits_files,
                Profile::Full => true,
            }
    }

    async fn opened(&self, opening: Opening) -> anyhow::Result<Arc<dyn ClientSession>> {
        let (mut environment, mut flags) = (self.environment.clone(), self.flags.clone());
        if let (Some(first), false) = (opening.roots.first(), self.pinned) {
            environment.cwd = Some(first.canonicalize()?);
            flags.add_dir.extend(opening.roots.iter().skip(1).cloned());
        }
        let basis = Basis::read(&flags, &environment)?;
        let person = Coordinator::new(opening.approver, Checks::default());
        let wanted = |spec: &ToolSpec| self.wants(spec);
        let yes = flags.yes;
        let opening = session::Opening { wanted: &wanted, ..Default::default() };
        let session = session::open_with(&environment, basis, opening, |builder, _| {
            Ok(if yes { builder } else { builder.approver(Arc::new(person)) })
        });
        let session = session.await?;
        // Their tools come into the pool as they answer; nobody waits for the slow ones.
        session.servers.start();
        let (toolbox, servers) = (session.toolbox.clone(), session.servers.clone());
        let folder = environment.config_dir;
        let mut watch = PromptWatch::start(session.sources()?);
        watch.look().diagnostics.iter().for_each(|found| show::warn(&found.to_string()));
        let prompts = Mutex::new((watch, Instant::now()));
        Ok(Arc::new(Served { toolbox, servers, session: Mutex::new(session), prompts, folder }))
    }
}

impl Host for Front {
    fn open(&self, opening: Opening) -> BoxFuture<'_, Result<Arc<dyn ClientSession>, String>> {
        self.opened(opening).map(|opened| opened.map_err(|error| format!("{error:#}"))).boxed()
    }
}

/// One client's session.
struct Served {
    toolbox: Arc<Toolbox>,
    servers: Arc<Servers>,
    session: Mutex<Session>,
    /// The prompts, and when they were looked at last.
    prompts: Mutex<(PromptWatch, Instant)>,
    folder: Option<PathBuf>,
}

impl Served {
    fn results(&self) -> Option<PathBuf> {
        Some(self.folder.as_ref()?.join("sessions").join(self.toolbox.session()).join("results"))
    }

    /// The prompts, looked at again if the last look is so long ago.
    fn prompts_of(&self, age: Duration) -> Arc<Prompts> {
        let mut kept = self.prompts.lock().unwrap_or_else(PoisonError::into_inner);
        let (watch, looked) = &mut *kept;
        if looked.elapsed() < age {
            return watch.known().clone();
        }
        let before = watch.known().clone();
        let now = watch.look().clone();
        *looked = Instant::now();
        drop(kept);
        if !now.list_alike(&before) {
            // The tools stay as they are; whoever waits for changes looks at both.
            self.servers.publish();
        }
        now
    }

    fn todos(&self) -> String {
        let session = self.session.lock().unwrap_or_else(PoisonError::into_inner);
        serde_json::to_string_pretty(&session.todos().items()).unwrap_or_default()
    }

    /// What the audit log says of this session, the latest of it.
    fn audit(&self) -> Option<std::io::Result<String>> {
        let log = self.folder.as_ref()?.join("audit/audit.jsonl");
        let own = format!("\"{}\"", self.toolbox.session());
        let read = || {
            let mut lines = String::new();
            for line in BufReader::new(File::open(&log)?).lines() {
                let line = line?;
                if line.contains(&own) {
                    lines.push_str(&line);
                    lines.push('\n');
                }
            }
            let over = lines.len().saturating_sub(MOST_BYTES as usize);
            let cut = lines[lines.floor_char_boundary(over)..].find('\n').map_or(0, |end| over + end + 1);
            Ok(if over > 0 { lines.split_off(cut) } else { lines })
        };
        Some(read())
    }

    fn result(&self, name: &str) -> Option<std::io::Result<String>> {
        // One name in one folder: no address leads anywhere else.
        if name.is_empty() || name.contains(['/', '\\', '\0']) || name.starts_with('.') {
            return None;
        }
        let file = File::open(self.results()?.join(name)).ok()?;
        let mut text = Vec::new();
        let read = file.take(MOST_BYTES).read_to_end(&mut text);
        Some(read.map(|_| String::from_utf8_lossy(&text).into_owned()))
    }
}

impl ClientSession for Served {
    fn toolbox(&self) -> &Arc<Toolbox> {
        &self.toolbox
    }

    fn concurrency(&self) -> usize {
        self.session.lock().unwrap_or_else(PoisonError::into_inner).concurrency()
    }

    fn changes(&self) -> Option<watch::Receiver<u64>> {
        Some(self.servers.published())
    }

    fn refresh(&self) {
        self.session.lock().unwrap_or_else(PoisonError::into_inner).refresh();
        self.prompts_of(LOOK);
    }

    fn prompts(&self) -> Arc<Prompts> {
        self.prompts_of(Duration::ZERO)
    }

    fn documents(&self) -> Vec<Document> {
        let document = |uri: &str, name: &str, description: &str, media_type| Document {
            uri: uri.to_owned(),
            name: name.to_owned(),
            description: description.to_owned(),
            media_type,
        };
        let mut all = vec![
            document(TODOS, "to-do list", "The to-do list of this session", JSON),
            document(AUDIT, "audit log", "What was decided and done in this session", JSON_LINES),
        ];
        let folder = self.results().and_then(|folder| folder.read_dir().ok());
        let names =
            folder.into_iter().flatten().filter_map(|entry| entry.ok()?.file_name().into_string().ok());
        let mut names: Vec<String> = names.filter(|name| !name.starts_with('.')).collect();
        names.sort();
        all.extend(names.iter().map(|name| {
            document(&format!("{RESULTS}{name}"), name, "The whole of a result that was cut", TEXT)
        }));
        all
    }

    fn document(&self, uri: &str) -> Option<Result<(&'static str, String), String>> {
        let (media_type, read) = match uri {
            TODOS => (JSON, Ok(self.todos())),
            AUDIT => (JSON_LINES, self.audit()?),
            _ => (TEXT, self.result(uri.strip_prefix(RESULTS)?)?),
        };
        let told = |error| format!("{uri} could not be read: {error}");
        Some(read.map(|text| (media_type, text)).map_err(told))
    }

    fn end(&self) -> BoxFuture<'_, ()> {
        async move {
            self.toolbox.end().await;
            self.servers.close().await;
        }
        .boxed()
    }
}
