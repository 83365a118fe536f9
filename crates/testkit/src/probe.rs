//! Stand-in tools that do exactly what their input says: touch cells of a small world, wait,
//! fail, meet at a barrier. With them, schedules can be provoked and compared.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use futures::future::BoxFuture;
use gripper_runtime::permissions::Opinion;
use gripper_runtime::{
    Access, Block, Call, DynTool, ErrorCode, Facts, Place, Resource, ToolError, ToolOutput, Use,
    schema::InputSchema,
    tool::{Interrupt, ResultBound, SessionEffect, ToolSpec, ValidInput},
};
use serde_json::{Value, json};
use tokio::sync::Barrier;

/// Named numbers that probes read and change.
#[derive(Clone, Default)]
pub struct World {
    cells: Arc<Mutex<BTreeMap<String, i64>>>,
}

impl World {
    /// Every cell now.
    pub fn cells(&self) -> BTreeMap<String, i64> {
        self.lock().clone()
    }

    fn get(&self, cell: &str) -> i64 {
        self.lock().get(cell).copied().unwrap_or(0)
    }

    fn set(&self, cell: &str, value: i64) {
        self.lock().insert(cell.to_owned(), value);
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, BTreeMap<String, i64>> {
        self.cells.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

type RunFn =
    dyn for<'a> Fn(&'a Value, &'a Call) -> BoxFuture<'a, Result<ToolOutput, ToolError>> + Send + Sync;
type AccessFn = dyn Fn(&Value) -> Access + Send + Sync;

/// A tool made of two functions.
pub struct Probe {
    spec: ToolSpec,
    access: Box<AccessFn>,
    run: Box<RunFn>,
    opinion: Opinion,
    missing: Option<String>,
}

impl Probe {
    /// A tool that touches what `access` says, allowed without asking.
    pub fn tool(
        name: &'static str,
        facts: Facts,
        access: impl Fn(&Value) -> Access + Send + Sync + 'static,
        run: impl for<'a> Fn(&'a Value, &'a Call) -> BoxFuture<'a, Result<ToolOutput, ToolError>>
        + Send
        + Sync
        + 'static,
    ) -> Arc<dyn DynTool> {
        let spec = ToolSpec {
            name: name.into(),
            title: name.into(),
            aliases: facts.aliases.iter().copied().map(Into::into).collect(),
            search_hint: facts.search_hint.into(),
            description: "A stand-in for tests.".into(),
            input: InputSchema::trusted(json!({"type": "object"})),
            output_schema: None,
            examples: Vec::new(),
            facts,
            server: None,
        };
        let opinion = Opinion::Allow("a stand-in".into());
        Arc::new(Self { spec, access: Box::new(access), run: Box::new(run), opinion, missing: None })
    }

    /// A tool of a server, known only by its schema: echoes its input, and asks by default.
    pub fn external(server: &str, name: &str, description: &str, schema: Value) -> Arc<dyn DynTool> {
        let spec = ToolSpec::external(server, name.to_owned(), description.to_owned(), schema);
        Arc::new(Self {
            spec: spec.expect("a schema within bounds"),
            access: Box::new(|_| Access::unknown()),
            run: Box::new(|input, _| {
                let words = input.to_string();
                Box::pin(async move { Ok(text(&words)) })
            }),
            opinion: Opinion::None,
            missing: None,
        })
    }

    /// A tool that does not work here, because of `why`.
    pub fn unavailable(name: &str, why: &str) -> Arc<dyn DynTool> {
        let spec = ToolSpec::external("", name.to_owned(), String::new(), json!({"type": "object"}));
        Arc::new(Self {
            spec: ToolSpec { server: None, ..spec.expect("a schema within bounds") },
            access: Box::new(|_| Access::unknown()),
            run: Box::new(|_, _| Box::pin(async { Ok(text("ok")) })),
            opinion: Opinion::None,
            missing: Some(why.to_owned()),
        })
    }

    /// A tool that returns at once and touches nothing.
    pub fn noop(name: &'static str) -> Arc<dyn DynTool> {
        Self::tool(name, Facts::DEFAULT, |_| Access::nothing(), |_, _| Box::pin(async { Ok(text("ok")) }))
    }

    /// A tool that waits until `parties` calls of it run at once.
    pub fn barrier(name: &'static str, parties: usize) -> Arc<dyn DynTool> {
        let barrier = Arc::new(Barrier::new(parties));
        Self::tool(
            name,
            Facts::DEFAULT,
            |_| Access::concurrency_safe(),
            move |_, _| {
                let barrier = barrier.clone();
                Box::pin(async move {
                    barrier.wait().await;
                    Ok(text("met"))
                })
            },
        )
    }

    /// A tool that never returns, whatever it is told.
    pub fn stuck(name: &'static str, interrupt: Interrupt, time_limit: Duration) -> Arc<dyn DynTool> {
        let facts = Facts { interrupt, time_limit, ..Facts::DEFAULT };
        Self::tool(name, facts, |_| Access::nothing(), |_, _| Box::pin(std::future::pending()))
    }

    /// A tool that panics.
    pub fn panics(name: &'static str) -> Arc<dyn DynTool> {
        Self::tool(
            name,
            Facts::DEFAULT,
            |_| Access::nothing(),
            |_, _| Box::pin(async { panic!("the tool fell over") }),
        )
    }

    /// A tool that asks for these session effects.
    pub fn effects(name: &'static str, access: Access, effects: Vec<SessionEffect>) -> Arc<dyn DynTool> {
        Self::tool(
            name,
            Facts::DEFAULT,
            move |_| access.clone(),
            move |_, _| {
                let effects = effects.clone();
                Box::pin(async move { Ok(ToolOutput { effects, ..text("done") }) })
            },
        )
    }

    /// A tool whose result is as long as `{"chars": N}` says.
    pub fn wordy(name: &'static str, bound: ResultBound) -> Arc<dyn DynTool> {
        let facts = Facts { bound, ..Facts::DEFAULT };
        Self::tool(
            name,
            facts,
            |_| Access::nothing(),
            |input, _| {
                let chars = usize::try_from(input["chars"].as_u64().unwrap_or(0)).unwrap_or(0);
                let line = "x".repeat(49) + "\n";
                Box::pin(async move { Ok(text(&line.repeat(chars.div_ceil(50))[..chars])) })
            },
        )
    }

    /// A tool on a world. Input: `reads`, `writes` (cells), `delay` (ms, before and after
    /// touching), `fail`, `alone`. A writer adds what it read to what it writes, so any change of
    /// order shows. `spreads`: a failure takes followers along.
    pub fn on_world(name: &'static str, world: World, spreads: bool) -> Arc<dyn DynTool> {
        let facts = Facts { failure_spreads: spreads, ..Facts::DEFAULT };
        Self::tool(name, facts, world_access, move |input, call| {
            let world = world.clone();
            Box::pin(async move { touch(&world, input, call).await })
        })
    }
}

/// A good result of one text.
pub fn text(words: &str) -> ToolOutput {
    ToolOutput { content: vec![Block::text(words)], ..ToolOutput::default() }
}

fn names(input: &Value, key: &str) -> Vec<String> {
    input[key]
        .as_array()
        .map(|cells| cells.iter().filter_map(|cell| Some(cell.as_str()?.to_owned())).collect())
        .unwrap_or_default()
}

fn world_access(input: &Value) -> Access {
    let mut access = Access::nothing();
    for (key, how) in [("reads", Use::Read), ("writes", Use::Write)] {
        for cell in names(input, key) {
            access = access.uses(Resource::Path(format!("/world/{cell}").into()), how);
        }
    }
    if input["alone"] == true { access.alone() } else { access }
}

async fn touch(world: &World, input: &Value, call: &Call) -> Result<ToolOutput, ToolError> {
    let half = Duration::from_millis(input["delay"].as_u64().unwrap_or(0));
    tokio::time::sleep(half).await;
    let mut sum: i64 = names(input, "reads").iter().map(|cell| world.get(cell)).sum();
    if input["alone"] == true {
        sum += world.cells().values().sum::<i64>();
    }
    for cell in names(input, "writes") {
        let before = world.get(&cell);
        // Between reading and writing others get a chance to do harm.
        tokio::time::sleep(half).await;
        world.set(&cell, before.wrapping_mul(3).wrapping_add(sum % 1_000).wrapping_add(1));
        sum = sum.wrapping_add(world.get(&cell));
    }
    if input["fail"] == true {
        return Err(ToolError::new(ErrorCode::Failed, format!("failed with {sum}")));
    }
    Ok(text(&format!("{} {sum}", call.id)))
}

impl DynTool for Probe {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn access(&self, input: &ValidInput, _place: &Place) -> Access {
        (self.access)(input.value())
    }

    fn available(&self) -> Result<(), String> {
        self.missing.clone().map_or(Ok(()), Err)
    }

    fn opinion(&self, _input: &ValidInput) -> Opinion {
        self.opinion.clone()
    }

    fn run<'a>(
        &'a self,
        input: &'a ValidInput,
        call: &'a Call,
    ) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        (self.run)(input.value(), call)
    }
}
