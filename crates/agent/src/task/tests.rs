use std::{path::Path, sync::Arc};

use gripper_runtime::{CallRequest, CallResult, Deferral, Event, Toolbox};
use gripper_testkit::{Probe, cases, run_all, toolbox_of};
use serde_json::{Value, json};

use crate::{
    agents::{Crew, Kinds, Member, Models, Outfit},
    model::{Price, config::Chosen, scripted::Scripted},
    turn::{Alone, Host, Till},
};

struct Nobody;

impl Models for Nobody {
    fn fast(&self) -> Option<Chosen> {
        None
    }

    fn named(&self, name: &str) -> Result<Chosen, String> {
        Err(format!("there is no model {name}"))
    }
}

struct Scene {
    crew: Crew,
    toolbox: Arc<Toolbox>,
    till: Till,
    _host: Arc<dyn Host>,
}

fn scene(answers: &[Value], budget: Option<f64>) -> Scene {
    let (kinds, models) = (Kinds::built_in(), Arc::new(Nobody));
    let deferral = Deferral::Never;
    let crew = Crew::new(Outfit { kinds, models, transcripts: None, max_depth: 1, deferral, watcher: None });
    let probes = [Probe::noop("Look"), Probe::barrier("Meet", 3)];
    let toolbox = toolbox_of(crew.tools().into_iter().chain(probes)).build();
    let script: String = answers.iter().map(|answer| format!("{answer}\n")).collect();
    let price = Some(Price { output: 1_000_000.0, ..Price::default() });
    let model = Arc::new(Scripted::parse(&script).unwrap());
    let model = Chosen { model, name: "m".to_owned(), price, max_tokens: None };
    let till = Till::default();
    let (host, member): (Arc<dyn Host>, _) = (Arc::new(Alone), Arc::downgrade(&toolbox));
    let member = Member { toolbox: member, model, about: Vec::new(), till: till.clone(), budget };
    crew.lead(toolbox.agent(), member, Arc::downgrade(&host));
    Scene { crew, toolbox, till, _host: host }
}

fn task(id: &str, more: Value) -> CallRequest {
    let mut input = json!({ "description": "d", "prompt": "p", "subagent_type": "general-purpose" });
    input.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    CallRequest::new(id, "Task", input)
}

fn answer(content: Value, tokens: u64) -> Value {
    json!({ "content": [content], "usage": { "output_tokens": tokens } })
}

fn says(text: &str) -> Value {
    json!({ "type": "text", "text": text })
}

#[test]
fn schema_files_are_up_to_date() {
    for (tool, folder) in scene(&[], None).crew.tools().iter().zip(["agent_output_tool", "task"]) {
        let schema = serde_json::to_string_pretty(tool.spec().input.value()).unwrap() + "\n";
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("src").join(folder).join("schema.json");
        cases::check_text(&file, &schema);
        tool.spec().input.verify().unwrap();
    }
}

#[tokio::test]
async fn what_an_agent_does_is_progress_and_what_it_costs_is_the_starters() {
    let look = json!({ "type": "tool_use", "name": "Look", "input": {} });
    let scene = scene(&[answer(look, 2), answer(says("seen"), 1)], Some(10.0));
    let turn = scene.toolbox.turn();
    turn.submit(task("c", json!({ "name": "scout" })));
    turn.close();
    let (mut progress, mut result) = (Vec::new(), None);
    while let Some(event) = turn.next().await {
        match event {
            Event::Progress { progress: step, .. } => progress.push(step.message),
            Event::Result(done) => result = Some(done),
            _ => {}
        }
    }
    assert!(progress.len() == 1 && progress[0].starts_with("scout: Look"), "{progress:?}");
    let told = result.unwrap().structured.clone().unwrap();
    assert_eq!(
        (&told["result"], &told["toolUses"], &told["status"]),
        (&json!("seen"), &json!(1), &json!("completed"))
    );
    assert_eq!(told["usage"]["output_tokens"], 3);
    assert!((scene.till.total() - 3.0).abs() < 1e-9);
}

#[tokio::test]
async fn limits_end_an_agent_or_keep_it_from_starting() {
    let look = || json!({ "type": "tool_use", "name": "Look", "input": {} });
    let scene = scene(&[answer(look(), 1), answer(look(), 4), answer(look(), 9)], Some(3.0));
    let words = |results: Vec<Arc<CallResult>>| results[0].to_string();
    let short = words(run_all(&scene.toolbox, [task("a", json!({ "max_turns": 1 }))]).await);
    assert!(short.contains("not done, it was ended after 1 answers"), "{short}");
    let dear = words(run_all(&scene.toolbox, [task("b", json!({}))]).await);
    assert!(dear.contains("not done, the budget is used up"), "{dear}");
    let none = words(run_all(&scene.toolbox, [task("c", json!({}))]).await);
    assert!(none.contains("the budget is used up"), "{none}");
    let model = words(run_all(&scene.toolbox, [task("d", json!({ "model": "other", "name": "x" }))]).await);
    assert!(model.contains("budget") || model.contains("no model other"), "{model}");
    let rule = words(run_all(&scene.toolbox, [task("e", json!({ "allowed_tools": ["Bash(ls)"] }))]).await);
    assert!(rule.contains("names of tools"), "{rule}");
}

#[tokio::test]
async fn one_in_the_background_is_read_when_it_has_ended() {
    let slow = json!({ "content": [says("found")], "delay_ms": 200 });
    let scene = scene(&[slow.clone(), slow], None);
    let start = |id: &'static str| run_all(&scene.toolbox, [task(id, json!({ "run_in_background": true }))]);
    let id = |started: &[Arc<CallResult>]| started[0].structured.clone().unwrap()["agentId"].clone();
    let ask = |call: &'static str, id: &Value, block: bool| {
        let input = json!({ "agentId": id, "block": block });
        run_all(&scene.toolbox, [CallRequest::new(call, "AgentOutputTool", input)])
    };
    let first = id(&start("a").await);
    assert!(ask("b", &first, false).await[0].to_string().contains("still works"));
    assert!(ask("c", &first, true).await[0].to_string().starts_with("found"));
    assert!(scene.toolbox.take_messages().is_empty(), "whoever waited knows");
    let second = id(&start("d").await);
    let mut announced = Vec::new();
    while announced.is_empty() {
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
        announced = scene.toolbox.take_messages();
    }
    assert!(announced[0].contains(second.as_str().unwrap()), "{announced:?}");
    assert!(ask("e", &second, false).await[0].to_string().starts_with("found"));
}

#[tokio::test]
async fn agents_of_one_turn_work_side_by_side_and_end_with_the_session() {
    let meet =
        |who: &str| json!({ "content": [{ "type": "tool_use", "name": "Meet", "input": {} }], "for": who });
    let done = |who: &str| json!({ "content": [says("met")], "for": who });
    let answers: Vec<Value> = ["A", "B", "C"].iter().flat_map(|who| [meet(who), done(who)]).collect();
    let scene = scene(&answers, None);
    let all = ["A", "B", "C"].map(|who| task(who, json!({ "prompt": who })));
    // Each waits for the others.
    let results = run_all(&scene.toolbox, all).await;
    assert!(results.iter().all(|result| result.to_string().starts_with("met")), "{results:?}");
    let stuck = task("d", json!({ "prompt": "A", "run_in_background": true }));
    run_all(&scene.toolbox, [stuck]).await;
    scene.crew.close().await;
}
