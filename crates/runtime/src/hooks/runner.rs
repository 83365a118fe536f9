//! Runs configured hooks.

use std::{
    ffi::OsString,
    path::Path,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
};

use futures::{
    FutureExt,
    future::{BoxFuture, join, join_all},
};
use gripper_permissions::{HookOpinion, Request, Rule, Scope};
use gripper_process::{Spec, find_program};
use serde_json::{Map, Value};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use super::{
    After, Before, BeforeCall, Fired, HookEvent, HookRun, Hooks, Occasion, Rewrite, Scene,
    config::{Action, Entry, OnFailure, Pace},
    contract::{self, Raw, Said, Verdict},
    http,
};
use crate::{approve, pipeline::CallResult};

/// What a hook is run with.
#[derive(Debug, Clone, Default)]
pub struct Surroundings {
    /// The environment that commands inherit and headers may name.
    pub env: Vec<(OsString, OsString)>,
    /// Where the account of the session is; empty while there is none.
    pub transcript: String,
}

/// The hooks of settings files.
pub struct HookRunner(Arc<Inner>);

struct Inner {
    slots: Vec<Slot>,
    surroundings: Surroundings,
    /// What nobody waits for, and the way to end it.
    detached: TaskTracker,
    over: CancellationToken,
    late: Mutex<Vec<HookRun>>,
}

struct Slot {
    entry: Entry,
    name: Arc<str>,
    used: AtomicBool,
}

/// How one hook went when it was tried by hand.
pub struct Rehearsal {
    /// The hook.
    pub entry: Entry,
    /// What it read.
    pub stdin: String,
    /// How it came back, in words; what it printed; what it printed on standard error.
    pub raw: (String, String, String),
    /// What that means.
    pub outcome: String,
    /// Whether it failed.
    pub failed: bool,
}

/// One hook and what came of it.
type Heard<'a> = (&'a Slot, Result<Said, String>);

impl HookRunner {
    /// Runs `entries`, in the order managed, user, project, local, command line.
    pub fn new(mut entries: Vec<Entry>, surroundings: Surroundings) -> Self {
        let place = |scope: Scope| match scope {
            Scope::Managed => 0,
            Scope::User => 1,
            Scope::Project => 2,
            Scope::Local => 3,
            Scope::CommandLine => 4,
            Scope::Session => 5,
        };
        entries.sort_by_key(|entry| place(entry.source.scope));
        // What cannot run and would not matter was reported when it was read; it stays out of the way.
        entries.retain(|entry| entry.trouble.is_none() || entry.on_failure != OnFailure::Allow);
        let slot = |entry: Entry| {
            let words: String = entry.action.words().chars().take(100).collect();
            let name = entry.status.as_ref().map_or(words.clone(), |status| format!("{status} ({words})"));
            Slot { entry, name: name.into(), used: AtomicBool::new(false) }
        };
        let slots = entries.into_iter().map(slot).collect();
        let (detached, over, late) = Default::default();
        Self(Arc::new(Inner { slots, surroundings, detached, over, late }))
    }

    /// Whether there are any hooks.
    pub fn is_empty(&self) -> bool {
        self.0.slots.is_empty()
    }

    /// Fires an event by hand, each matching hook by itself, and tells how it went.
    pub async fn rehearse(&self, scene: Scene<'_>, occasion: Occasion<'_>) -> Vec<Rehearsal> {
        let Occasion { event, subject, fields, request } = occasion;
        let payload = contract::payload(scene, &self.0.surroundings.transcript, event, fields);
        let mut all = Vec::new();
        for slot in self.0.matching(event, subject, request.as_ref()) {
            let stdin = Value::Object(payload.clone()).to_string();
            let raw = self.0.ask(slot, scene, stdin.clone()).await;
            let heard = raw.as_ref().map_err(Clone::clone).and_then(|raw| contract::read(event, raw));
            let (outcome, failed) = match &heard {
                Ok(said) => (format!("{}{}", said.word(), said.details()), false),
                Err(why) => (format!("failed: {why}"), true),
            };
            let raw = raw.map(|raw| (status_words(&raw), raw.stdout, raw.stderr)).unwrap_or_default();
            all.push(Rehearsal { entry: slot.entry.clone(), stdin, raw, outcome, failed });
        }
        all
    }
}

/// Whether an `if` applies to a call.
fn covers(rule: &Rule, request: &Request<'_>) -> bool {
    rule.covers(request.tool)
}

fn status_words(raw: &Raw) -> String {
    match raw.status {
        gripper_process::Status::Exited(code) => format!("exit code {code}"),
        gripper_process::Status::Signalled(signal) => format!("killed by signal {signal}"),
        gripper_process::Status::TimedOut => "its time was up".to_owned(),
        gripper_process::Status::Cancelled => "stopped".to_owned(),
    }
}

impl Inner {
    /// The hooks for this, each only once, in order.
    fn matching(&self, event: HookEvent, subject: &str, request: Option<&Request<'_>>) -> Vec<&Slot> {
        let mut found: Vec<&Slot> = Vec::new();
        for slot in self.slots.iter().filter(|slot| slot.entry.event == event.name()) {
            let entry = &slot.entry;
            let covered = match (&entry.condition, request) {
                (Some(rule), Some(request)) => covers(rule, request),
                (Some(_), None) => false,
                (None, _) => true,
            };
            if !covered
                || !entry.fits.fits(subject)
                || found.iter().any(|earlier| earlier.entry.action == entry.action)
                || (entry.once && slot.used.swap(true, Ordering::Relaxed))
            {
                continue;
            }
            found.push(slot);
        }
        found
    }

    /// Runs one hook and hears what it says. A detached one is only started.
    async fn hear<'a>(
        self: &Arc<Self>,
        slot: &'a Slot,
        scene: Scene<'_>,
        event: HookEvent,
        payload: Map<String, Value>,
    ) -> Heard<'a> {
        let stdin = Value::Object(payload).to_string();
        if slot.entry.pace == Pace::Detached {
            self.detach(slot, scene, event, stdin);
            return (slot, Ok(Said::default()));
        }
        let raw = self.ask(slot, scene, stdin).await;
        (slot, raw.and_then(|raw| contract::read(event, &raw)))
    }

    /// Runs one hook.
    async fn ask(&self, slot: &Slot, scene: Scene<'_>, stdin: String) -> Result<Raw, String> {
        self.job(&slot.entry, scene, stdin)?.run(self.over.clone()).await
    }

    /// Everything one run needs, so that it may outlive the call.
    fn job(&self, entry: &Entry, scene: Scene<'_>, stdin: String) -> Result<Job, String> {
        if let Some(trouble) = &entry.trouble {
            return Err(trouble.clone());
        }
        let env = environment(&self.surroundings.env, &scene.policy.root);
        let cwd = &scene.place.cwd;
        Ok(match &entry.action {
            Action::Command { command, args } => {
                let spec = match args {
                    None => Spec::shell(command, cwd, env),
                    Some(args) => {
                        let args = args.iter().map(OsString::from).collect();
                        Spec { env, ..Spec::exec(command, args, cwd) }
                    }
                };
                Job::Command(Spec { stdin: stdin.into_bytes(), limit: entry.limit, ..spec })
            }
            Action::Http { .. } => Job::Http(entry.clone(), env, stdin),
            Action::Other(kind) => return Err(format!("hooks of type {kind} cannot run")),
        })
    }

    /// Starts a hook that nobody waits for; it ends with the session at the latest.
    fn detach(self: &Arc<Self>, slot: &Slot, scene: Scene<'_>, event: HookEvent, stdin: String) {
        let job = self.job(&slot.entry, scene, stdin);
        let (inner, name) = (self.clone(), slot.name.clone());
        self.detached.spawn(async move {
            let raw = match job {
                Ok(job) => job.run(inner.over.clone()).await,
                Err(why) => Err(why),
            };
            let run = match raw.and_then(|raw| contract::read(event, &raw)) {
                Ok(said) => HookRun { message: said.message.clone(), ..HookRun::new(&name, said.word()) },
                Err(why) => HookRun { failed: true, ..HookRun::new(&name, why) },
            };
            inner.late.lock().unwrap_or_else(PoisonError::into_inner).push(run);
        });
    }

    /// Runs hooks beside each other and gives what they said in their order.
    async fn hear_all<'a>(
        self: &Arc<Self>,
        slots: &[&'a Slot],
        scene: Scene<'_>,
        event: HookEvent,
        payload: &Map<String, Value>,
    ) -> Vec<Heard<'a>> {
        join_all(slots.iter().map(|slot| self.hear(slot, scene, event, payload.clone()))).await
    }

    async fn before(self: &Arc<Self>, call: BeforeCall<'_>) -> Before {
        let event = HookEvent::PRE_TOOL_USE;
        let slots = self.matching(event, call.tool, Some(&call.request()));
        let payload = |input: &Value| {
            let fields = contract::call_fields(call.call_id, call.tool, input);
            contract::payload(call.scene, &self.surroundings.transcript, event, fields)
        };
        let (chain, beside): (Vec<&Slot>, Vec<&Slot>) =
            slots.iter().partition(|slot| slot.entry.pace == Pace::Usual);
        // Each sees the input as the one before left it; after a no there is nothing left to say.
        let one_by_one = async {
            let mut heard = Vec::new();
            let mut input = call.input.clone();
            for slot in chain {
                let (slot, said) = self.hear(slot, call.scene, event, payload(&input)).await;
                let last = match &said {
                    Ok(said) => {
                        input = said.input.clone().unwrap_or(input);
                        said.block.is_some()
                            || said.stop.is_some()
                            || matches!(said.verdict, Some(Verdict::Deny(_)))
                    }
                    Err(_) => slot.entry.on_failure == OnFailure::Block,
                };
                heard.push((slot, said));
                if last {
                    break;
                }
            }
            heard
        };
        let original = payload(call.input);
        let (mut heard, others) =
            join(one_by_one, self.hear_all(&beside, call.scene, event, &original)).await;
        heard.extend(others);
        let place = |slot: &Slot| slots.iter().position(|known| std::ptr::eq(*known, slot));
        heard.sort_by_key(|(slot, _)| place(slot));
        merge_before(heard)
    }

    async fn after(self: &Arc<Self>, call: BeforeCall<'_>, result: &CallResult) -> After {
        let event = if result.is_error { HookEvent::POST_TOOL_USE_FAILURE } else { HookEvent::POST_TOOL_USE };
        let slots = self.matching(event, call.tool, Some(&call.request()));
        let mut merged = After::default();
        if slots.is_empty() {
            return merged;
        }
        let mut fields = contract::call_fields(call.call_id, call.tool, call.input);
        let millis = u64::try_from(result.duration.as_millis()).unwrap_or(u64::MAX);
        fields.insert("duration_ms".to_owned(), millis.into());
        if let Some(error) = result.error_text() {
            fields.insert("error".to_owned(), error.into());
        } else {
            let response = result.structured.clone().unwrap_or_else(|| result.to_string().into());
            fields.insert("tool_response".to_owned(), response);
        }
        let payload = contract::payload(call.scene, &self.surroundings.transcript, event, fields);
        for (slot, said) in self.hear_all(&slots, call.scene, event, &payload).await {
            merged.runs.push(run_of(slot, &said));
            match said {
                Ok(said) => {
                    merged.context.extend(said.block.map(|reason| format!("A hook objects: {reason}")));
                    merged.context.extend(said.context);
                    merged.output = said.output.or(merged.output);
                    merged.stop = merged.stop.or(said.stop);
                }
                // The call is done; all that is left is not to hide it.
                Err(why) if slot.entry.on_failure == OnFailure::Block => {
                    merged.context.push(format!("A hook after this call failed ({why}): {}", slot.name));
                }
                Err(_) => {}
            }
        }
        merged
    }

    async fn fire(self: &Arc<Self>, scene: Scene<'_>, occasion: Occasion<'_>) -> Fired {
        let Occasion { event, subject, fields, request } = occasion;
        let slots = self.matching(event, subject, request.as_ref());
        let payload = contract::payload(scene, &self.surroundings.transcript, event, fields);
        let mut merged = Fired::default();
        for (slot, said) in self.hear_all(&slots, scene, event, &payload).await {
            merged.runs.push(run_of(slot, &said));
            let answer = match said {
                Ok(said) => {
                    merged.context.extend(said.context);
                    merged.stop = merged.stop.or(said.stop);
                    let block = said.block.map(|reason| approve::Answer::Deny { feedback: Some(reason) });
                    block.or(said.answer)
                }
                Err(why) if slot.entry.on_failure == OnFailure::Block => {
                    Some(approve::Answer::Deny { feedback: Some(failed(slot, &why)) })
                }
                Err(_) => None,
            };
            // A no counts more than a yes, whoever says it.
            if matches!(answer, Some(approve::Answer::Deny { .. })) || merged.answer.is_none() {
                merged.answer = answer.or(merged.answer);
            }
        }
        merged
    }
}

/// One run, ready to go.
enum Job {
    Command(Spec),
    Http(Entry, Vec<(OsString, OsString)>, String),
}

impl Job {
    async fn run(self, over: CancellationToken) -> Result<Raw, String> {
        match self {
            Job::Command(spec) => {
                let ended = gripper_process::run(spec, &over).await.map_err(|error| error.to_string())?;
                Ok(Raw {
                    status: ended.status,
                    stdout: ended.stdout.text().into_owned(),
                    stderr: ended.stderr.text().into_owned(),
                    cut: ended.stdout.dropped > 0,
                })
            }
            Job::Http(entry, env, body) => {
                let Action::Http { url, headers, .. } = &entry.action else {
                    return Err("it has no address".to_owned());
                };
                let post = http::post(url, headers, &env, body.into_bytes(), entry.limit);
                let stopped = || Err("it was stopped".to_owned());
                over.run_until_cancelled(post).await.unwrap_or_else(stopped)
            }
        }
    }
}

fn environment(inherited: &[(OsString, OsString)], root: &Path) -> Vec<(OsString, OsString)> {
    let mut env = inherited.to_vec();
    for name in ["GRIPPER_PROJECT_DIR", "CLAUDE_PROJECT_DIR"] {
        env.push((name.into(), root.into()));
    }
    env.push(("CLAUDECODE".into(), "1".into()));
    env
}

fn failed(slot: &Slot, why: &str) -> String {
    format!("the hook {} failed: {why}", slot.name)
}

fn run_of(slot: &Slot, said: &Result<Said, String>) -> HookRun {
    match said {
        Ok(_) if slot.entry.pace == Pace::Detached => HookRun::new(&slot.name, "started"),
        Ok(said) => HookRun { message: said.message.clone(), ..HookRun::new(&slot.name, said.word()) },
        Err(why) => HookRun { failed: true, ..HookRun::new(&slot.name, why.clone()) },
    }
}

/// Strictest decision first, earliest reason first; everything else in order.
fn merge_before(heard: Vec<Heard<'_>>) -> Before {
    let mut merged = Before::default();
    let mut verdict: Option<Verdict> = None;
    let mut judge = |new: Verdict| {
        if verdict.as_ref().is_none_or(|known| known.rank() < new.rank()) {
            verdict = Some(new);
        }
    };
    for (slot, mut said) in heard {
        // It ran beside the others: they have not seen its input, and it has not seen theirs.
        if slot.entry.pace == Pace::Parallel && said.as_mut().is_ok_and(|said| said.input.take().is_some()) {
            said = Err("it rewrote the input, which a hook declared parallel may not".to_owned());
        }
        merged.runs.push(run_of(slot, &said));
        match said {
            Ok(said) => {
                merged.block = merged.block.or(said.block).or(said.stop.clone());
                merged.stop = merged.stop.or(said.stop);
                merged.context.extend(said.context);
                said.verdict.into_iter().for_each(&mut judge);
                if let Some(input) = said.input {
                    let managed = slot.entry.source.scope == Scope::Managed
                        && merged.input.as_ref().is_none_or(|before| before.managed);
                    merged.input = Some(Rewrite { input, managed });
                }
            }
            Err(why) => match slot.entry.on_failure {
                OnFailure::Allow => {}
                OnFailure::Ask => judge(Verdict::Ask(failed(slot, &why))),
                OnFailure::Block => merged.block = merged.block.or(Some(failed(slot, &why))),
            },
        }
    }
    merged.opinion = verdict.map(Verdict::opinion);
    merged
}

impl Hooks for HookRunner {
    fn interested(&self, tool: &str) -> bool {
        const AROUND: [HookEvent; 3] =
            [HookEvent::PRE_TOOL_USE, HookEvent::POST_TOOL_USE, HookEvent::POST_TOOL_USE_FAILURE];
        self.0.slots.iter().any(|slot| {
            AROUND.iter().any(|event| event.name() == slot.entry.event) && slot.entry.fits.fits(tool)
        })
    }

    fn before<'a>(&'a self, call: BeforeCall<'a>) -> BoxFuture<'a, Before> {
        self.0.before(call).boxed()
    }

    fn after<'a>(&'a self, call: BeforeCall<'a>, result: &'a CallResult) -> BoxFuture<'a, After> {
        self.0.after(call, result).boxed()
    }

    fn listens(&self, event: HookEvent) -> bool {
        self.0.slots.iter().any(|slot| slot.entry.event == event.name())
    }

    fn fire<'a>(&'a self, scene: Scene<'a>, occasion: Occasion<'a>) -> BoxFuture<'a, Fired> {
        self.0.fire(scene, occasion).boxed()
    }

    fn notify(&self, scene: Scene<'_>, occasion: Occasion<'_>) {
        let Occasion { event, subject, fields, request } = occasion;
        // Without a runtime nothing can run; whoever embeds us outside one gets no notifications.
        if tokio::runtime::Handle::try_current().is_err() {
            return;
        }
        let stdin = contract::payload(scene, &self.0.surroundings.transcript, event, fields);
        let stdin = Value::Object(stdin).to_string();
        for slot in self.0.matching(event, subject, request.as_ref()) {
            self.0.detach(slot, scene, event, stdin.clone());
        }
    }

    fn close(&self) -> BoxFuture<'_, Vec<HookRun>> {
        async {
            self.0.over.cancel();
            self.0.detached.close();
            self.0.detached.wait().await;
            std::mem::take(&mut *self.0.late.lock().unwrap_or_else(PoisonError::into_inner))
        }
        .boxed()
    }
}

/// What would keep a hook from running here, found without running it.
pub fn ailment(entry: &Entry, cwd: &Path, root: &Path, env: &[(OsString, OsString)]) -> Option<String> {
    /// Words of the shell itself, for which there is no program.
    const SHELL: [&str; 20] = [
        "if", "for", "while", "until", "case", "[[", "{", "cd", "exit", "export", "set", "source", ".", ":",
        "exec", "eval", "trap", "read", "local", "unset",
    ];
    if let Some(trouble) = &entry.trouble {
        return Some(trouble.clone());
    }
    let Action::Command { command, args } = &entry.action else { return None };
    let program = if args.is_some() { command.as_str() } else { command.split_whitespace().next()? };
    let mut program = program.replace('"', "");
    for name in ["GRIPPER_PROJECT_DIR", "CLAUDE_PROJECT_DIR"] {
        for spelling in [format!("${{{name}}}"), format!("${name}")] {
            program = program.replace(&spelling, &root.to_string_lossy());
        }
    }
    let plain = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | '/' | '+');
    if args.is_none() && (SHELL.contains(&program.as_str()) || !program.chars().all(plain)) {
        return None;
    }
    find_program(program.as_ref(), cwd, env).err().map(|error| error.to_string())
}

impl Said {
    /// What goes with its word, for a person who tries it.
    fn details(&self) -> String {
        let mut all = Vec::new();
        all.extend(self.block.as_ref().map(|reason| format!("because: {reason}")));
        if let Some(verdict) = &self.verdict {
            let opinion = verdict.clone().opinion();
            let (HookOpinion::Allow(reason) | HookOpinion::Ask(reason) | HookOpinion::Deny(reason)) = opinion;
            all.push(format!("because: {reason}"));
        }
        all.extend(self.input.as_ref().map(|input| format!("input: {input}")));
        all.extend(self.output.as_ref().map(|output| format!("output: {output}")));
        all.extend(self.context.as_ref().map(|context| format!("for the model: {context}")));
        all.extend(self.message.as_ref().map(|message| format!("for the person: {message}")));
        all.extend(self.stop.as_ref().map(|reason| format!("ends the session: {reason}")));
        if all.is_empty() { String::new() } else { format!(" ({})", all.join("; ")) }
    }
}
