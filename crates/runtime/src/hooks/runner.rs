//! Runs configured hooks.

use std::{
    ffi::OsString,
    path::PathBuf,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
};

use futures::{
    FutureExt,
    future::{BoxFuture, join, join_all},
};
use gripper_permissions::{COMMAND_TOOL, Request, RuleList, Scope};
use gripper_process::{Spec, Status, confine::Profile};
use serde_json::{Map, Value};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use super::{
    After, Before, BeforeCall, HookEvent, HookRun, Hooks, Occasion, Rewrite, Scene,
    config::{Action, Confine, Entry, OnFailure, Pace},
    contract::{self, Raw, Said, Verdict},
    http,
    model_hook::{self, Judge},
    tool_hook,
};
use crate::pipeline::CallResult;

/// What a hook is run with.
#[derive(Clone, Default)]
pub struct Surroundings {
    /// The environment that commands inherit and headers may name.
    pub env: Vec<(OsString, OsString)>,
    /// Where the account of the session is; empty while there is none.
    pub transcript: String,
    /// Who calls the tools of servers for hooks; without it such hooks fail.
    pub tools: Option<Arc<dyn CallTool>>,
    /// Who asks models for hooks; without it such hooks fail.
    pub judge: Option<Arc<dyn Judge>>,
}

/// Calls tools of servers for hooks. What comes back is text as a command would have printed it.
pub trait CallTool: Send + Sync {
    /// Calls `tool`, by its server's name for it, and waits for the result.
    fn call<'a>(
        &'a self,
        server: &'a str,
        tool: &'a str,
        input: Map<String, Value>,
    ) -> BoxFuture<'a, Result<String, String>>;
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

    /// Fires an event by hand, each matching hook by itself, and tells how it went.
    pub async fn rehearse(&self, scene: Scene<'_>, occasion: Occasion<'_>) -> Vec<Rehearsal> {
        let Occasion { event, subject, fields, request } = occasion;
        let payload = contract::payload(scene, &self.0.surroundings.transcript, event, fields);
        let mut all = Vec::new();
        for slot in self.0.matching(event, subject, scene, request) {
            let stdin = Value::Object(payload.clone()).to_string();
            let raw = self.0.prepare(slot, scene, stdin.clone()).go().await;
            let heard = raw.as_ref().map_err(Clone::clone).and_then(|raw| contract::read(event, raw));
            let failed = heard.is_err();
            let outcome = heard.map_or_else(|why| format!("failed: {why}"), |said| said.account());
            let raw = raw.map(|raw| (status_words(&raw), raw.stdout, raw.stderr)).unwrap_or_default();
            all.push(Rehearsal { entry: slot.entry.clone(), stdin, raw, outcome, failed });
        }
        all
    }
}

fn status_words(raw: &Raw) -> String {
    match raw.status {
        Status::Exited(code) => format!("exit code {code}"),
        Status::Signalled(signal) => format!("killed by signal {signal}"),
        Status::TimedOut => "its time was up".to_owned(),
        Status::Cancelled => "stopped".to_owned(),
    }
}

impl Inner {
    /// The hooks for this, each only once, in order.
    fn matching(
        &self,
        event: HookEvent,
        subject: &str,
        scene: Scene<'_>,
        request: Option<&Request<'_>>,
    ) -> Vec<&Slot> {
        let mut found: Vec<&Slot> = Vec::new();
        // What guards commands guards them whichever tool runs them.
        let command = request.is_some_and(|request| request.command_use().is_some());
        for slot in self.slots.iter().filter(|slot| slot.entry.event == event.name()) {
            let entry = &slot.entry;
            let covered = match (&entry.condition, request) {
                // Any part of the call is enough, as for a rule that asks.
                (Some(rule), Some(request)) => rule.matches(RuleList::Ask, scene.policy, request),
                (Some(_), None) => false,
                (None, _) => true,
            };
            if !covered
                || !(entry.fits.fits(subject) || (command && entry.fits.fits(COMMAND_TOOL)))
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
        let run = self.prepare(slot, scene, Value::Object(payload).to_string());
        if slot.entry.pace == Pace::Detached {
            self.detach(slot, event, run);
            return (slot, Ok(Said::default()));
        }
        (slot, run.go().await.and_then(|raw| contract::read(event, &raw)))
    }

    fn prepare(&self, slot: &Slot, scene: Scene<'_>, stdin: String) -> Run {
        let mut env = self.surroundings.env.clone();
        for name in ["GRIPPER_PROJECT_DIR", "CLAUDE_PROJECT_DIR"] {
            env.push((name.into(), scene.policy.root.clone().into()));
        }
        env.push(("CLAUDECODE".into(), "1".into()));
        let (entry, policy) = (slot.entry.clone(), scene.policy);
        let cage = match entry.action {
            Action::Command { confine: Some(Confine::ReadOnly), .. } => Some(Profile::read_only(Vec::new())),
            Action::Command { confine: Some(Confine::Project), .. } => {
                Some(Profile::writes(policy.directories.clone(), Some(&policy.home)))
            }
            _ => None,
        };
        let (cwd, over) = (scene.place.cwd.clone(), self.over.clone());
        let (tools, judge) = (self.surroundings.tools.clone(), self.surroundings.judge.clone());
        Run { entry, env, cage, cwd, stdin, tools, judge, over }
    }

    /// Starts a hook that nobody waits for; it ends with the session at the latest.
    fn detach(self: &Arc<Self>, slot: &Slot, event: HookEvent, run: Run) {
        let (inner, name) = (self.clone(), slot.name.clone());
        self.detached.spawn(async move {
            let said = run.go().await.and_then(|raw| contract::read(event, &raw));
            inner.late.lock().unwrap_or_else(PoisonError::into_inner).push(run_of(&name, &said));
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
        let slots = self.matching(event, call.tool(), call.scene, Some(call.request));
        if slots.is_empty() {
            return Before::default();
        }
        let payload = |input: &Value| {
            let fields = contract::call_fields(call.call_id, call.tool(), input);
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
        let mut fields = contract::call_fields(call.call_id, call.tool(), call.input);
        let millis = u64::try_from(result.duration.as_millis()).unwrap_or(u64::MAX);
        fields.insert("duration_ms".to_owned(), millis.into());
        if let Some(error) = result.error_text() {
            fields.insert("error".to_owned(), error.into());
        } else {
            let response = result.structured.clone().unwrap_or_else(|| result.to_string().into());
            fields.insert("tool_response".to_owned(), response);
        }
        self.fire(call.scene, Occasion { event, subject: call.tool(), fields, request: Some(call.request) })
            .await
    }

    async fn fire(self: &Arc<Self>, scene: Scene<'_>, occasion: Occasion<'_>) -> After {
        let Occasion { event, subject, fields, request } = occasion;
        let slots = self.matching(event, subject, scene, request);
        let payload = contract::payload(scene, &self.surroundings.transcript, event, fields);
        let mut merged = After::default();
        for (slot, said) in self.hear_all(&slots, scene, event, &payload).await {
            merged.runs.push(slot.run(&said));
            match said {
                Ok(said) => {
                    merged.objections.extend(said.block);
                    merged.approved |= said.approved;
                    merged.context.extend(said.context);
                    merged.output = said.output.or(merged.output);
                    merged.stop = merged.stop.or(said.stop);
                }
                Err(why) if slot.entry.on_failure == OnFailure::Block => {
                    merged.objections.push(failed(slot, &why));
                }
                Err(_) => {}
            }
        }
        merged
    }
}

/// One run with everything it needs, so that it may outlive the call.
struct Run {
    entry: Entry,
    env: Vec<(OsString, OsString)>,
    cage: Option<Profile>,
    cwd: PathBuf,
    stdin: String,
    tools: Option<Arc<dyn CallTool>>,
    judge: Option<Arc<dyn Judge>>,
    over: CancellationToken,
}

impl Run {
    async fn go(self) -> Result<Raw, String> {
        let Self { entry, env, cage, cwd, stdin, tools, judge, over } = self;
        let stopped = || Err("it was stopped".to_owned());
        if let Some(trouble) = entry.trouble {
            return Err(trouble);
        }
        let spec = match entry.action {
            Action::Command { command, args: None, .. } => Spec::shell(command, cwd, env),
            Action::Command { command, args: Some(args), .. } => {
                Spec { env, ..Spec::exec(command, args.into_iter().map(OsString::from).collect(), cwd) }
            }
            Action::Http { url, headers, .. } => {
                let post = http::post(&url, &headers, &env, stdin.into_bytes(), entry.limit);
                return over.run_until_cancelled(post).await.unwrap_or_else(stopped);
            }
            Action::McpTool { server, tool, input } => {
                let tools = tools.ok_or("no servers are connected here")?;
                let asked = tool_hook::ask(tools, &server, &tool, input, &stdin, entry.limit);
                return over.run_until_cancelled(asked).await.unwrap_or_else(stopped);
            }
            Action::Model { prompt, model, looks } => {
                let judge = judge.ok_or("no model is there to be asked")?;
                let asked = model_hook::ask(judge, &prompt, model, looks, &stdin, entry.limit);
                return over.run_until_cancelled(asked).await.unwrap_or_else(stopped);
            }
            Action::Other(kind) => return Err(format!("hooks of type {kind} cannot run")),
        };
        let spec = Spec { stdin: stdin.into_bytes(), limit: entry.limit, cage, ..spec };
        let ended = gripper_process::run(spec, &over).await.map_err(|error| error.to_string())?;
        Ok(Raw {
            status: ended.status,
            stdout: ended.stdout.text().into_owned(),
            stderr: ended.stderr.text().into_owned(),
            cut: ended.stdout.dropped > 0,
        })
    }
}

impl Slot {
    fn run(&self, said: &Result<Said, String>) -> HookRun {
        if self.entry.pace == Pace::Detached {
            return HookRun::new(&self.name, "started");
        }
        run_of(&self.name, said)
    }
}

fn run_of(name: &Arc<str>, said: &Result<Said, String>) -> HookRun {
    match said {
        Ok(said) => HookRun { message: said.message.clone(), ..HookRun::new(name, said.word()) },
        Err(why) => HookRun { failed: true, ..HookRun::new(name, why.clone()) },
    }
}

fn failed(slot: &Slot, why: &str) -> String {
    format!("the hook {} failed: {why}", slot.name)
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
        merged.runs.push(slot.run(&said));
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

    fn fire<'a>(&'a self, scene: Scene<'a>, occasion: Occasion<'a>) -> BoxFuture<'a, After> {
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
        for slot in self.0.matching(event, subject, scene, request) {
            self.0.detach(slot, event, self.0.prepare(slot, scene, stdin.clone()));
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
