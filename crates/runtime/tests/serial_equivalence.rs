//! Whatever runs at once, results and final state equal those of running the calls one by one.
#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a failed expectation is how tests fail"
)]

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use gripper_runtime::{
    CallRequest, CallResult, Event, Settings, Toolbox,
    hooks::{Answer, HookSet},
};
use gripper_testkit::{Probe, World, settings, toolbox_of};
use proptest::prelude::{Just, ProptestConfig, Strategy, any, prop, prop_assert_eq, proptest};
use serde_json::{Value, json};

const CELLS: [&str; 4] = ["a", "b", "a/deep", "c"];

/// One call of a random turn.
#[derive(Debug, Clone)]
struct Step {
    command: bool,
    reads: Vec<usize>,
    writes: Vec<usize>,
    alone: bool,
    fail: bool,
    delay: u64,
    /// Time that passes before it is submitted.
    pause: u64,
}

fn step() -> impl Strategy<Value = Step> {
    let cells = || prop::collection::vec(0..CELLS.len(), 0..3);
    (any::<bool>(), cells(), cells(), 0..8u8, 0..5u8, 0..6u64, 0..4u64).prop_map(
        |(command, reads, writes, alone, fail, delay, pause)| Step {
            command,
            reads,
            writes,
            alone: alone == 0,
            fail: fail == 0,
            delay,
            pause,
        },
    )
}

impl Step {
    fn tool(&self) -> &'static str {
        if self.command { "Command" } else { "Plain" }
    }

    fn input(&self, unique: Option<usize>) -> Value {
        let names = |cells: &[usize]| cells.iter().map(|&cell| CELLS[cell]).collect::<Vec<_>>();
        json!({
            "reads": names(&self.reads), "writes": names(&self.writes), "alone": self.alone,
            "fail": self.fail, "delay": self.delay, "n": unique,
        })
    }

    /// Independent of the code under test: what two calls must not do at once.
    fn conflicts(&self, other: &Step) -> bool {
        let overlap = |a: &[usize], b: &[usize]| {
            a.iter().any(|&x| b.iter().any(|&y| x == y || (x.min(y) == 0 && x.max(y) == 2)))
        };
        self.alone
            || other.alone
            || overlap(&self.writes, &other.writes)
            || overlap(&self.writes, &other.reads)
            || overlap(&self.reads, &other.writes)
    }
}

/// The outcome of a call: its text, or how it failed.
type Outcome = (Option<&'static str>, String);

/// Runs the calls one by one, in plain code, leaving out the ones that were stopped from outside.
/// `declared` is what the model wrote, `steps` what ran after hooks.
fn model(declared: &[Step], steps: &[Step], stopped: &[usize]) -> (Vec<Outcome>, BTreeMap<String, i64>) {
    let mut cells: BTreeMap<String, i64> = BTreeMap::new();
    let mut outcomes = Vec::new();
    let mut failed: Vec<(usize, &Step)> = Vec::new();
    for (number, step) in steps.iter().enumerate() {
        if stopped.contains(&number) {
            outcomes.push((None, String::new()));
            continue;
        }
        let cause = failed.iter().find(|(_, earlier)| step.command || earlier.conflicts(&declared[number]));
        if let Some((cause, _)) = cause {
            let words = format!("cancelled: parallel call c{cause} (Command) failed");
            outcomes.push((Some("sibling_failed"), words));
            continue;
        }
        outcomes.push(apply(number, step, &mut cells));
        if step.command && step.fail {
            failed.push((number, step));
        }
    }
    (outcomes, cells)
}

fn apply(number: usize, step: &Step, cells: &mut BTreeMap<String, i64>) -> Outcome {
    let get = |cells: &BTreeMap<String, i64>, cell: usize| cells.get(CELLS[cell]).copied().unwrap_or(0);
    let mut sum: i64 = step.reads.iter().map(|&cell| get(cells, cell)).sum();
    if step.alone {
        sum += cells.values().sum::<i64>();
    }
    for &cell in &step.writes {
        let value = get(cells, cell).wrapping_mul(3).wrapping_add(sum % 1_000).wrapping_add(1);
        cells.insert(CELLS[cell].to_owned(), value);
        sum = sum.wrapping_add(value);
    }
    if step.fail {
        (Some("failed"), format!("failed with {sum}"))
    } else {
        (None, format!("c{number} {sum}"))
    }
}

fn outcome(result: &CallResult) -> Outcome {
    (result.error_code.map(|code| code.name()), result.to_string())
}

fn toolbox(world: &World, limit: usize, change: impl FnOnce(&mut Settings)) -> Arc<Toolbox> {
    let tools =
        [Probe::on_world("Plain", world.clone(), false), Probe::on_world("Command", world.clone(), true)];
    let settings = settings(|settings| {
        settings.max_concurrency = limit;
        change(settings);
    });
    toolbox_of(tools).settings(settings).build()
}

/// What is done to the turn from outside, and when.
#[derive(Debug, Clone, Copy)]
enum Meddling {
    None,
    Cancel(u64),
    Interrupt(u64),
}

/// Submits while results come in, in virtual time.
async fn play(
    toolbox: &Arc<Toolbox>,
    steps: &[Step],
    unique: bool,
    meddling: Meddling,
) -> Vec<Arc<CallResult>> {
    let turn = toolbox.turn();
    let mut results = Vec::new();
    let submit = async {
        for (number, step) in steps.iter().enumerate() {
            tokio::time::sleep(Duration::from_millis(step.pause)).await;
            let input = step.input(unique.then_some(number));
            turn.submit(CallRequest::new(&format!("c{number}"), step.tool(), input));
        }
        turn.close();
    };
    let collect = async {
        while let Some(event) = turn.next().await {
            if let Event::Result(result) = event {
                results.push(result);
            }
        }
    };
    let meddle = async {
        match meddling {
            Meddling::None => {}
            Meddling::Cancel(after) => {
                tokio::time::sleep(Duration::from_millis(after)).await;
                turn.cancel();
            }
            Meddling::Interrupt(after) => {
                tokio::time::sleep(Duration::from_millis(after)).await;
                turn.interrupt();
            }
        }
    };
    tokio::join!(submit, collect, meddle);
    results
}

fn block_on<T>(work: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .unwrap()
        .block_on(work)
}

fn ids(results: &[Arc<CallResult>]) -> Vec<String> {
    results.iter().map(|result| result.call_id.to_string()).collect()
}

fn expected_ids(steps: &[Step]) -> Vec<String> {
    (0..steps.len()).map(|number| format!("c{number}")).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 10_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn random_turns_equal_one_by_one(steps in prop::collection::vec(step(), 0..12), limit in 1..6usize) {
        let world = World::default();
        let results = block_on(play(&toolbox(&world, limit, |_| {}), &steps, true, Meddling::None));
        let (outcomes, cells) = model(&steps, &steps, &[]);
        prop_assert_eq!(ids(&results), expected_ids(&steps));
        prop_assert_eq!(results.iter().map(|result| outcome(result)).collect::<Vec<_>>(), outcomes);
        prop_assert_eq!(world.cells(), cells);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4_000, failure_persistence: None, ..ProptestConfig::default() })]

    /// Stopped from outside at any moment: one result each, in order; what was not stopped is
    /// what it would have been, and so is every cell that no stopped call could have touched.
    #[test]
    fn stopped_turns_keep_what_was_done(
        steps in prop::collection::vec(step(), 1..12),
        limit in 1..6usize,
        meddling in prop::sample::select(vec![0, 1]).prop_flat_map(|kind| (Just(kind), 0..40u64)),
    ) {
        let world = World::default();
        let meddling = if meddling.0 == 0 { Meddling::Cancel(meddling.1) } else { Meddling::Interrupt(meddling.1) };
        let results = block_on(play(&toolbox(&world, limit, |_| {}), &steps, true, meddling));
        prop_assert_eq!(ids(&results), expected_ids(&steps));
        let stopped: Vec<usize> = (0..steps.len())
            .filter(|&number| matches!(outcome(&results[number]).0, Some("cancelled" | "interrupted")))
            .collect();
        let (outcomes, cells) = model(&steps, &steps, &stopped);
        for number in (0..steps.len()).filter(|number| !stopped.contains(number)) {
            prop_assert_eq!(&outcome(&results[number]), &outcomes[number]);
        }
        let doubtful: Vec<usize> = stopped.iter().flat_map(|&number| steps[number].writes.clone()).collect();
        for (cell, name) in CELLS.iter().enumerate() {
            if !doubtful.contains(&cell) {
                prop_assert_eq!(world.cells().get(*name).copied(), cells.get(*name).copied(), "cell {}", name);
            }
        }
    }

    /// Hooks that rewrite change what a call touches after it was placed in the order.
    #[test]
    fn rewritten_turns_equal_one_by_one(
        steps in prop::collection::vec(step(), 0..10),
        rewrites in prop::collection::vec(any::<bool>(), 10),
        limit in 1..6usize,
    ) {
        let world = World::default();
        // Every cell moves on by one.
        let moved = |cells: &[usize]| cells.iter().map(|cell| (cell + 1) % CELLS.len()).collect::<Vec<_>>();
        let effective: Vec<Step> = steps
            .iter()
            .zip(&rewrites)
            .map(|(step, rewrite)| match rewrite {
                true => Step { reads: moved(&step.reads), writes: moved(&step.writes), ..step.clone() },
                false => step.clone(),
            })
            .collect();
        let inputs: Vec<Value> = effective.iter().enumerate().map(|(n, step)| step.input(Some(n))).collect();
        let hooks = HookSet::new().before("move", &[], move |call| {
            let number = call.input["n"].as_u64().and_then(|n| usize::try_from(n).ok()).unwrap_or(0);
            if rewrites[number] { Answer::Rewrite(inputs[number].clone()) } else { Answer::Pass }
        });
        let tools = [Probe::on_world("Plain", world.clone(), false), Probe::on_world("Command", world.clone(), true)];
        let settings = settings(|settings| settings.max_concurrency = limit);
        let toolbox = toolbox_of(tools).settings(settings).hooks(Arc::new(hooks)).build();
        let results = block_on(play(&toolbox, &steps, true, Meddling::None));
        let (outcomes, cells) = model(&steps, &effective, &[]);
        prop_assert_eq!(results.iter().map(|result| outcome(result)).collect::<Vec<_>>(), outcomes);
        prop_assert_eq!(world.cells(), cells);
    }

    /// With repeated calls the loop guard speaks; what it says must not depend on the schedule.
    #[test]
    fn the_loop_guard_counts_in_order(steps in prop::collection::vec(step(), 1..4), picks in prop::collection::vec(0..4usize, 1..16)) {
        let steps: Vec<Step> = picks.iter().map(|pick| steps[pick % steps.len()].clone()).collect();
        let run = |limit| {
            let world = World::default();
            let results = block_on(play(&toolbox(&world, limit, |_| {}), &steps, false, Meddling::None));
            (results.iter().map(|result| outcome(result)).collect::<Vec<_>>(), world.cells())
        };
        prop_assert_eq!(run(1), run(8));
    }
}
