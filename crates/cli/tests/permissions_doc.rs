//! The examples of docs/permissions.md, judged by the binary: the rules of a block hold for the calls below them.
#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a failed expectation is how tests fail"
)]

use gripper_runtime::permissions::{Rule, tools};
use gripper_testkit::{Binary, Workspace};
use serde_json::{Value, json};

const PAGE: &str = include_str!("../../../docs/permissions.md");

/// The tool and its input: a command, unless the line begins with the name of a tool.
fn call(text: &str) -> (&str, Value) {
    let (tool, rest) = text.split_once(' ').unwrap_or((text, ""));
    match tools::known(tool) {
        _ if rest.starts_with('{') => (tool, serde_json::from_str(rest).unwrap()),
        Some(known) if !known.input.is_empty() => (tool, json!({ known.input.as_str(): rest.trim() })),
        _ => ("Bash", json!({ "command": text })),
    }
}

#[test]
fn the_examples_of_the_page_hold() {
    let (mut block, mut rules, mut mode) = ("", json!({}), "default");
    let (mut batch, mut expected) = (String::new(), Vec::new());
    for line in PAGE.lines().filter(|line| !line.is_empty()) {
        match (block, line.strip_prefix("```")) {
            ("", Some(name)) => {
                block = name;
                if name == "rules" {
                    (rules, mode) = (json!({"allow": [], "ask": [], "deny": []}), "default");
                }
            }
            (_, Some(_)) => block = "",
            ("rules", None) => match (line.split_once(" → "), line.split_once(' ')) {
                (Some((text, answer)), _) => {
                    let (tool, input) = call(text.trim_end());
                    let case = json!({"tool": tool, "input": input, "rules": rules, "mode": mode});
                    batch.push_str(&format!("{case}\n"));
                    expected.push((line, answer.split_once(": ").unwrap_or((answer, ""))));
                }
                (None, Some(("mode", name))) => mode = name,
                (None, Some((list @ ("allow" | "ask" | "deny"), text))) => {
                    Rule::parse(text).unwrap_or_else(|error| panic!("{line}: {error}"));
                    rules[list].as_array_mut().unwrap().push(json!(text));
                }
                _ => panic!("neither a rule nor a call with its answer: {line}"),
            },
            _ => {}
        }
    }
    assert!(expected.len() > 50, "only {} examples were found", expected.len());
    let workspace = Workspace::new();
    workspace.write("page.jsonl", batch);
    let ran = Binary::new(env!("CARGO_BIN_EXE_gripper"), &workspace)
        .args(["explain", "--batch", "page.jsonl"])
        .run();
    assert_eq!(ran.code, 0, "{}", ran.transcript());
    let answers = ran.json_lines();
    assert_eq!(answers.len(), expected.len());
    let wrong: Vec<String> = expected
        .iter()
        .zip(&answers)
        .filter(|((_, (behavior, words)), answer)| {
            answer["behavior"] != **behavior || !answer["reason"].as_str().unwrap().contains(words)
        })
        .map(|((line, _), answer)| format!("{line}\n    is {} {}", answer["behavior"], answer["reason"]))
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
