//! From flags to an agent that is ready to work.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use futures::FutureExt;
use gripper_agent::{
    agents::{Crew, Kinds, Member, Models, Outfit},
    context::{self, Facts},
    message::Message,
    model::{
        config::{self, Chosen, Purpose},
        scripted::Scripted,
    },
    session::{self as sessions, Header, Transcript},
    structured_output::{Delivery, StructuredOutput},
    turn::{Agent, AgentEvent, Config, Host, Limits, Till},
};
use gripper_mcp::client::Phase;
use gripper_runtime::{
    Deferral, DynTool,
    approve::{Approver, Checks, Coordinator},
    environment::{Environment, variable},
    hooks::HookEvent,
    permissions::{Diagnostic, Scope, Weight},
    schema::InputSchema,
    settings::Node,
    tool::ToolSpec,
};
use gripper_tools::bash;
use serde_json::{Value, json};
use tokio::sync::mpsc;

use super::{
    approver::ByTool,
    args::{self, Args, OutputFormat, json_or_file},
    around::Around,
    commands::Commands,
    complain,
    control::Remote,
    lines::Lines,
    printer::Printer,
};
use crate::{
    ask::Terminal,
    basis::Basis,
    exit::UsageError,
    session::{self, Opening, Session},
};

/// Events that may wait to be shown before the work waits for them.
const WAITING: usize = 256;

/// Everything a conversation needs.
pub(super) struct Started {
    pub(super) agent: Agent,
    pub(super) around: Arc<Around>,
    pub(super) crew: Crew,
    pub(super) commands: Commands,
    pub(super) events: mpsc::Receiver<AgentEvent>,
    pub(super) remote: Option<Arc<Remote>>,
    pub(super) questions: mpsc::UnboundedReceiver<Value>,
    pub(super) printer: Printer,
    pub(super) delivery: Option<Delivery>,
    pub(super) facts: Value,
}

/// The conversation it goes on with, or a new one.
struct Past {
    id: String,
    history: Vec<Arc<Message>>,
    transcript: Option<Transcript>,
    resumed: bool,
}

pub(super) async fn open(args: &Args, environment: &Environment) -> anyhow::Result<Started> {
    let flags = args.policy();
    let basis = Basis::read(&flags, environment)?;
    let chosen = model(args, &basis)?;
    let past = past(args, environment, &chosen.name)?;
    let (delivery, mut more) = delivery(args)?;
    let (remote, questions) = Remote::new();
    let by_wire = args.form.permission_prompt_tool.as_deref() == Some("stdio");
    let terminal = match args.form.output_format {
        OutputFormat::Text => Terminal::open(&flags, environment, false),
        _ => None,
    };
    let wanted = wanted(args);
    let (sender, events) = mpsc::channel(WAITING);
    let watcher = (args.form.output_format == OutputFormat::StreamJson).then(|| sender.clone());
    let crew = crew(args, environment, &basis, &past.id, watcher)?;
    more.extend(crew.tools().into_iter().filter(|tool| wanted(tool.spec())));
    let opening = Opening {
        wanted: &wanted,
        id: Some(past.id.clone()),
        source: if past.resumed { "resume" } else { "startup" },
        more,
        judge: Some(Arc::new(crew.clone())),
        finder: finder(args, &basis, &crew),
    };
    let session = session::open_with(environment, basis, opening, |builder, servers| {
        let person: Arc<dyn Approver> = match args.form.permission_prompt_tool.as_deref() {
            Some("stdio") => remote.clone(),
            Some(name) => Arc::new(ByTool::named(name, servers.clone()).map_err(UsageError)?),
            None => return Ok(Terminal::wire(terminal.as_ref(), &flags, builder)),
        };
        Ok(builder.approver(Arc::new(Coordinator::new(person, Checks::default()))))
    })
    .await?;
    session.servers.start();
    let toolbox = session.toolbox.clone();
    let instructions =
        context::instructions(environment, &toolbox.policy(), &toolbox.place().cwd, &session.root()?);
    complain(&instructions.complaints);
    let files = instructions.files.iter().map(|file| file.path.to_string_lossy());
    let told = json!({ "files": files.collect::<Vec<_>>() });
    toolbox.consult(HookEvent::INSTRUCTIONS_LOADED, "", told).await;
    let told = context::told(&instructions.files);
    let common = 1 + usize::from(told.is_some());
    let system = system(args, &session, told, &chosen.name)?;
    // What the project says and where it is holds for every agent.
    let about = system[system.len().saturating_sub(common)..].to_vec();
    let limits = Limits {
        turns: args.work.max_turns,
        budget: args.work.max_budget_usd,
        price: chosen.price,
        ..Limits::default()
    };
    let config = Config {
        model: chosen.name.clone(),
        fallback: args.work.fallback_model.clone(),
        system,
        max_tokens: chosen.longest_answer(),
        thinking: args.work.max_thinking_tokens,
        deferral: Deferral::default(),
        limits,
        delivery: delivery.clone(),
        till: Till::default(),
    };
    let commands = Commands::of(&session)?;
    let facts = facts(&session, &commands, &chosen.name);
    let around = Arc::new(Around::new(session, instructions));
    let host: Arc<dyn Host> = around.clone();
    let lead = Member {
        toolbox: Arc::downgrade(&toolbox),
        model: chosen.clone(),
        about,
        till: config.till.clone(),
        budget: limits.budget,
    };
    crew.lead(toolbox.agent(), lead, Arc::downgrade(&host));
    let agent = Agent::new(toolbox, chosen.model, config, past.history, sender)
        .recorded(past.transcript)
        .for_host(around.clone());
    let form = &args.form;
    let lines = Lines::new(&past.id, form.include_partial_messages, form.replay_user_messages);
    let printer = Printer::new(form.output_format, lines, Terminal::stage(terminal.as_ref()));
    Ok(Started {
        agent,
        around,
        crew,
        commands,
        events,
        remote: by_wire.then_some(remote),
        questions,
        printer,
        delivery,
        facts,
    })
}

/// The agents that the session may start.
fn crew(
    args: &Args,
    environment: &Environment,
    basis: &Basis,
    session: &str,
    watcher: Option<mpsc::Sender<AgentEvent>>,
) -> anyhow::Result<Crew> {
    let given = args.work.agents.as_deref().map(|given| json_or_file(given, "--agents").map_err(UsageError));
    let (kinds, found) = Kinds::load(&basis.sources()?, given.transpose()?.as_ref());
    let wrong =
        |found: &&Diagnostic| found.weight == Weight::Error && found.source.scope == Scope::CommandLine;
    if let Some(found) = found.iter().find(wrong) {
        return Err(UsageError(format!("--agents: {}", found.what)).into());
    }
    complain(&found.iter().map(ToString::to_string).collect::<Vec<_>>());
    let sessions = environment.config_dir.as_ref().filter(|_| !args.past.no_session_persistence);
    let depth = basis.loaded.effective.at("agents.maxDepth").and_then(|node| node.value().as_u64());
    let scripted = scripted(args);
    Ok(Crew::new(Outfit {
        kinds,
        models: Arc::new(Configured { settings: basis.loaded.effective.clone(), scripted }),
        transcripts: sessions.map(|config| config.join("sessions").join(session).join("agents")),
        max_depth: depth.and_then(|depth| u8::try_from(depth).ok()).unwrap_or(1).clamp(1, 3),
        deferral: Deferral::default(),
        watcher,
    }))
}

/// A fast model that finds files in what commands print, if there is one beside the main model.
fn finder(args: &Args, basis: &Basis, crew: &Crew) -> Option<bash::Finder> {
    basis.loaded.effective.at("models.fast").filter(|_| !scripted(args))?;
    let crew = crew.clone();
    Some(Arc::new(move |output| {
        let crew = crew.clone();
        async move { crew.files_in(output).await }.boxed()
    }))
}

fn scripted(args: &Args) -> bool {
    args.work.model.as_deref().is_some_and(|model| model.starts_with("scripted:"))
}

/// The models of the settings. A script stands for all of them.
struct Configured {
    settings: Node,
    scripted: bool,
}

impl Models for Configured {
    fn fast(&self) -> Option<Chosen> {
        let choose = || config::choose(&self.settings, &variable, None, Purpose::Fast).ok();
        if self.scripted { None } else { choose() }
    }

    fn named(&self, name: &str) -> Result<Chosen, String> {
        if self.scripted {
            return Err(format!("there is no model {name} beside the script"));
        }
        config::choose(&self.settings, &variable, Some(name), Purpose::Main).map_err(|why| why.to_string())
    }
}

/// What `system/init` tells.
fn facts(session: &Session, commands: &Commands, model: &str) -> Value {
    let toolbox = &session.toolbox;
    let pool = toolbox.pool();
    let servers = session.servers.all();
    json!({
        "cwd": toolbox.place().cwd.to_string_lossy(),
        "tools": pool.tools().iter().map(|tool| tool.spec().name.clone()).collect::<Vec<_>>(),
        "mcp_servers": servers.iter().map(|server| json!({
            "name": server.config.name, "status": status(&server.phase()),
        })).collect::<Vec<_>>(),
        "model": model,
        "permissionMode": toolbox.policy().mode.to_string(),
        "slash_commands": commands.names(),
        "apiKeySource": "none",
        "version": env!("CARGO_PKG_VERSION"),
    })
}

fn status(phase: &Phase) -> &'static str {
    match phase {
        Phase::Ready(_) => "connected",
        Phase::Failed(_) => "failed",
        _ => "pending",
    }
}

/// Which built-in tools are offered.
fn wanted(args: &Args) -> impl Fn(&ToolSpec) -> bool + Send + Sync + use<> {
    let names = args.work.tools.clone().filter(|names| names != "default");
    let names: Option<Vec<String>> =
        names.map(|names| names.split(',').map(|name| name.trim().to_owned()).collect());
    move |spec: &ToolSpec| {
        names.as_ref().is_none_or(|names| {
            names.iter().any(|name| *name == spec.name || spec.aliases.iter().any(|alias| name == alias))
        })
    }
}

/// What must be delivered, and the tool to deliver it with.
type Deliverable = (Option<Delivery>, Vec<Arc<dyn DynTool>>);

fn delivery(args: &Args) -> Result<Deliverable, UsageError> {
    let Some(given) = &args.work.json_schema else { return Ok((None, Vec::new())) };
    let schema = json_or_file(given, "--json-schema").map_err(UsageError)?;
    let delivery = Delivery::default();
    let pattern = InputSchema::external(schema.clone()).ok();
    if let Some(pattern) = pattern.as_ref().and_then(|schema| schema.ignored_patterns().first()) {
        return Err(UsageError(format!(
            "--json-schema: the pattern {pattern} cannot be checked: look-around and back-references are not supported"
        )));
    }
    let tool = StructuredOutput::new(schema, delivery.clone())
        .map_err(|why| UsageError(format!("--json-schema: {why}")))?;
    Ok((Some(delivery), vec![Arc::new(tool)]))
}

fn past(args: &Args, environment: &Environment, model: &str) -> anyhow::Result<Past> {
    let cwd = environment.cwd.clone().unwrap_or_default();
    let root: Option<PathBuf> = environment.config_dir.as_ref().map(|config| config.join("sessions"));
    let wanted = &args.past;
    if wanted.fork_session && wanted.resume.is_none() && !wanted.r#continue {
        return Err(
            UsageError("--fork-session needs --resume or --continue to say what is forked".into()).into()
        );
    }
    let given = match (&wanted.resume, wanted.r#continue, &root) {
        (None, false, _) => None,
        (_, _, None) => {
            return Err(UsageError("HOME is not set, so there are no sessions to go on with".into()).into());
        }
        (Some(id), _, Some(_)) => Some(id.clone()),
        (None, true, Some(root)) => {
            let none = || UsageError(format!("there is no session of {} to go on with", cwd.display()));
            Some(sessions::latest(root, &cwd).ok_or_else(none)?)
        }
    };
    if let (Some(id), Some(root)) = (given, &root) {
        return Ok(resumed(root, &id, wanted)?);
    }
    let id = wanted.session_id.unwrap_or_else(uuid::Uuid::now_v7).to_string();
    let kept = root.filter(|_| !wanted.no_session_persistence);
    let transcript = kept.map(|root| Transcript::create(&root, &Header::new(&*id, &cwd, model)));
    let transcript = match transcript.transpose() {
        Ok(transcript) => transcript,
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {
            let words = format!("there is a session {id} already: --resume {id} goes on with it");
            return Err(UsageError(words).into());
        }
        Err(error) => {
            complain(&[format!("the session is not written down and cannot be resumed: {error}")]);
            None
        }
    };
    Ok(Past { id, history: Vec::new(), transcript, resumed: false })
}

fn resumed(root: &Path, id: &str, wanted: &args::Past) -> Result<Past, UsageError> {
    // What is not to be kept must not change the old session either.
    let unkept = wanted.no_session_persistence;
    let copied = wanted.fork_session || unkept;
    let opened = if copied { sessions::fork(root, id) } else { sessions::resume(root, id) };
    let (transcript, recovered) = opened.map_err(|error| UsageError(error.to_string()))?;
    complain(&recovered.complaints);
    let id = transcript.id().to_owned();
    let transcript = (!unkept).then_some(transcript);
    if unkept {
        sessions::delete(root, &id).map_err(|error| UsageError(error.to_string()))?;
    }
    Ok(Past { id, history: recovered.history, transcript, resumed: true })
}

/// The model that answers: from the settings and the environment, or a script.
fn model(args: &Args, basis: &Basis) -> Result<Chosen, UsageError> {
    let wanted = args.work.model.as_deref();
    if let Some(path) = wanted.and_then(|wanted| wanted.strip_prefix("scripted:")) {
        let script = std::fs::read_to_string(path)
            .map_err(|error| UsageError(format!("--model: the script {path} cannot be read: {error}")))?;
        let model = Scripted::parse(&script).map_err(|why| UsageError(format!("--model: {path}: {why}")))?;
        let name = "scripted".to_owned();
        return Ok(Chosen { model: Arc::new(model), name, price: None, max_tokens: None });
    }
    let chosen = config::choose(&basis.loaded.effective, &variable, wanted, Purpose::Main)
        .map_err(|why| UsageError(why.to_string()))?;
    if args.work.max_budget_usd.is_some() && chosen.price.is_none() {
        return Err(UsageError(format!(
            "--max-budget-usd: nobody knows what {} costs: put its price into the settings under prices",
            chosen.name
        )));
    }
    Ok(chosen)
}

/// The system prompt: ours or the person's, then what the project says, then where it is.
fn system(
    args: &Args,
    session: &Session,
    told: Option<String>,
    model: &str,
) -> anyhow::Result<Vec<Arc<str>>> {
    let (place, policy) = (session.toolbox.place(), session.toolbox.policy());
    let root = session.root()?;
    let facts = Facts {
        cwd: &place.cwd,
        root: &root,
        additional: policy.directories.get(1..).unwrap_or_default(),
        model,
        mode: policy.mode,
        shell: "bash",
        today: chrono::Local::now().date_naive(),
        append: args.work.append_system_prompt.as_deref(),
    };
    let mut parts = context::system_prompt(&facts);
    let own = match &args.work.system_prompt_file {
        Some(path) => Some(std::fs::read_to_string(path).map_err(|error| {
            UsageError(format!("--system-prompt-file: {} cannot be read: {error}", path.display()))
        })?),
        None => args.work.system_prompt.clone(),
    };
    if let (Some(own), Some(first)) = (own, parts.first_mut()) {
        *first = own.into();
    }
    let last = parts.len() - 1;
    told.into_iter().for_each(|told| parts.insert(last, told.into()));
    parts.retain(|part| !part.trim().is_empty());
    Ok(parts)
}
