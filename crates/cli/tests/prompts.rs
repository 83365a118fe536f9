//! `gripper -p "/name …"`: prompts of files and of servers, and what the model is given for them.
#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a failed expectation is how tests fail"
)]

use std::fs;

use gripper_testkit::{
    Binary, Ran, Workspace, mcp_peer,
    model_server::{Answer, ModelServer},
};
use rstest::rstest;
use serde_json::{Value, json};

fn own(workspace: &Workspace, name: &str, text: &str) {
    let file = workspace.home().join(name);
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    fs::write(file, text).unwrap();
}

/// A project whose person has commands, a skill and a server with prompts.
fn with_prompts() -> Workspace {
    let workspace = Workspace::new();
    own(
        &workspace,
        ".gripper/commands/review.md",
        "---\nargument-hint: <what> [how]\n---\nReview $what, $how.",
    );
    own(&workspace, ".claude/commands/git/commit.md", "Commit. $ARGUMENTS");
    own(&workspace, ".claude/skills/tidy/SKILL.md", "---\ndisable-model-invocation: true\n---\nTidy up.");
    let peer = json!({ "command": "python3", "args": [mcp_peer(), "stdio"] });
    own(&workspace, ".gripper/settings.json", &json!({ "mcpServers": { "peer": peer } }).to_string());
    workspace
}

fn gripper(workspace: &Workspace, server: &ModelServer, args: &[&str]) -> Ran {
    let settings = json!({
        "model": "here/m", "providers": { "here": { "type": "anthropic", "baseUrl": server.url() } },
    });
    let binary = Binary::new(env!("CARGO_BIN_EXE_gripper"), workspace);
    binary.arg("--settings").arg(settings.to_string()).args(args).run()
}

/// The blocks of the first prompt that the model was given.
fn given(server: &ModelServer) -> Vec<Value> {
    let asked = server.asked();
    let content = &asked.first().expect("the model was asked").body["messages"][0]["content"];
    content.as_array().unwrap_or_else(|| panic!("{content}")).clone()
}

#[rstest]
#[case::words("/review the diff", "Review the, diff.")]
#[case::rest("/review all of it", "Review all, of it.")]
#[case::by_name("/review how='with care' what=it", "Review it, with care.")]
#[case::folder("/git:commit all\nof it", "Commit. all\nof it")]
#[case::skill("/tidy", "Tidy up.")]
#[case::server("/mcp__peer__greet the world", "Greet the, world.")]
#[case::server_by_name("/mcp__peer__greet who='the world'", "Greet the world, plainly.")]
#[case::server_odd("/mcp__peer__odd_one", "odd")]
#[case::path("/usr/bin is full", "/usr/bin is full")]
#[case::blank(" /review", " /review")]
fn a_prompt_is_called_by_its_name(#[case] prompt: &str, #[case] expected: &str) {
    let (workspace, server) = (with_prompts(), ModelServer::start([Answer::says("done")]));
    let ran = gripper(&workspace, &server, &["-p", prompt]);
    assert_eq!((ran.code, ran.stdout.as_str()), (0, "done\n"), "{}", ran.transcript());
    assert_eq!(given(&server)[0]["text"], expected);
}

#[rstest]
#[case::unknown("/reveiw x", 2, "there is no command /reveiw: did you mean /review?")]
#[case::nothing_like_it("/xyzzy", 2, "there is no command /xyzzy: begin with a blank if it is no command")]
#[case::missing("/review", 2, "/review needs what: /review <what> [how]")]
#[case::server("/mcp__pear__greet", 2, "there is no server for /mcp__pear__greet: there are peer")]
#[case::server_prompt("/mcp__peer__gret x", 2, "did you mean /mcp__peer__greet?")]
#[case::server_argument("/mcp__peer__greet", 2, "/mcp__peer__greet needs who: /mcp__peer__greet <who> [how]")]
#[case::server_takes_none("/mcp__peer__scene x", 2, "/mcp__peer__scene takes no arguments")]
#[case::too_long("/mcp__peer__long", 1, "/mcp__peer__long says more than 1024 KiB")]
fn what_cannot_be_called_is_one_clear_error(#[case] prompt: &str, #[case] code: i32, #[case] words: &str) {
    let (workspace, server) = (with_prompts(), ModelServer::start([Answer::says("done")]));
    let ran = gripper(&workspace, &server, &["-p", prompt, "--output-format=json"]);
    assert_eq!(ran.code, code, "{}", ran.transcript());
    assert_eq!(ran.stderr.matches(words).count(), 1, "{}", ran.transcript());
    let last = ran.json_lines().pop().unwrap();
    assert!(last["is_error"] == true && last["result"].as_str().unwrap().contains(words), "{last}");
    assert!(server.asked().is_empty(), "the model is not asked");
}

#[test]
fn a_slip_is_not_what_is_gone_on_with() {
    let workspace = with_prompts();
    let server = ModelServer::start([Answer::says("one"), Answer::says("two")]);
    assert_eq!(gripper(&workspace, &server, &["-p", "first"]).code, 0);
    assert_eq!(gripper(&workspace, &server, &["-p", "/reveiw x"]).code, 2);
    let ran = gripper(&workspace, &server, &["-p", "second", "--continue"]);
    assert_eq!(ran.stdout, "two\n", "{}", ran.transcript());
    let asked = server.asked().pop().unwrap().body["messages"].to_string();
    assert!(asked.contains("first") && asked.contains("second"), "{asked}");
}

#[test]
fn everything_a_server_says_is_given_to_the_model() {
    let (workspace, server) = (with_prompts(), ModelServer::start([Answer::says("done")]));
    let ran = gripper(&workspace, &server, &["-p", "/mcp__peer__scene"]);
    assert_eq!(ran.code, 0, "{}", ran.transcript());
    let given = given(&server);
    assert_eq!(given[0]["text"], "What is this?");
    assert_eq!(
        (&given[1]["type"], &given[1]["source"]["media_type"]),
        (&json!("image"), &json!("image/png"))
    );
    assert_eq!(given[2]["text"], "[peer://note]\nwhat is noted");
    assert_eq!(given[3]["text"], "[said by the assistant]\nA pixel.");
}

#[test]
fn commands_of_a_project_count_once_it_is_trusted() {
    let (workspace, server) = (with_prompts(), ModelServer::start([Answer::says("done")]));
    workspace.write(".claude/commands/theirs.md", "Theirs.");
    let refused = gripper(&workspace, &server, &["-p", "/theirs"]);
    assert_eq!(refused.code, 2, "{}", refused.transcript());
    assert!(refused.stderr.contains("the project is not trusted"), "{}", refused.stderr);
    assert_eq!(Binary::new(env!("CARGO_BIN_EXE_gripper"), &workspace).arg("trust").run().code, 0);
    let ran = gripper(&workspace, &server, &["-p", "/theirs"]);
    assert_eq!((ran.code, given(&server)[0]["text"].as_str()), (0, Some("Theirs.")), "{}", ran.transcript());
}

#[test]
fn prompts_that_follow_each_other_may_be_commands_too() {
    let workspace = with_prompts();
    let server = ModelServer::start([Answer::says("one"), Answer::says("two")]);
    let settings = json!({
        "model": "here/m", "providers": { "here": { "type": "anthropic", "baseUrl": server.url() } },
    });
    let line = |content: &str| json!({ "type": "user", "message": { "role": "user", "content": content } });
    let hello =
        json!({ "type": "control_request", "request_id": "1", "request": { "subtype": "initialize" } });
    let lines = [hello, line("/tidy"), line("/nothing"), line("/review it")];
    let lines: String = lines.iter().map(|line| format!("{line}\n")).collect();
    let ran = Binary::new(env!("CARGO_BIN_EXE_gripper"), &workspace)
        .args(["-p", "--input-format=stream-json", "--output-format=stream-json", "--settings"])
        .arg(settings.to_string())
        .input(lines)
        .run();
    let told = ran.json_lines();
    assert_eq!(told[0]["slash_commands"], json!(["git:commit", "review", "tidy"]), "{}", ran.transcript());
    let hello = told.iter().find(|line| line["type"] == "control_response").unwrap();
    let known = &hello["response"]["response"]["commands"][1];
    assert_eq!((&known["name"], &known["argumentHint"]), (&json!("review"), &json!("<what> [how]")));
    let results: Vec<&Value> =
        told.iter().filter(|line| line["type"] == "result").map(|line| &line["result"]).collect();
    assert_eq!(results.len(), 3, "{results:?}");
    assert_eq!((results[0], results[2]), (&json!("one"), &json!("two")));
    assert!(results[1].as_str().unwrap().contains("there is no command /nothing"), "{}", results[1]);
    assert_eq!(server.asked().len(), 2);
}
