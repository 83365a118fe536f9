#![allow(clippy::unwrap_used, reason = "a failed expectation is how tests fail")]

use std::{collections::VecDeque, time::Duration};

use gripper_runtime::{
    Place,
    approve::{Answer, Ask, Grant, SaveTo},
    permissions::{CommandPlace, Policy, Request, Rule, decide},
};
use serde_json::json;
use tokio::time::Instant;

use super::{
    dialog::{Person, Stop, hold, limited},
    words,
};

/// Types these lines, then hangs up.
struct Typist {
    lines: VecDeque<&'static str>,
    read: String,
}

impl Person for Typist {
    fn say(&mut self, text: &str) {
        self.read.push_str(&anstream::adapter::strip_str(text).to_string());
        self.read.push('\n');
    }

    fn hear(&mut self, prompt: &str) -> Result<String, Stop> {
        self.say(prompt);
        self.lines.pop_front().map(str::to_owned).ok_or(Stop::End)
    }
}

fn place() -> Place {
    Place { cwd: "/project".into() }
}

fn ask(text: &str) -> Ask {
    let policy = Policy::new("/project");
    let surroundings = CommandPlace { cwd: "/project", home: "/home/dev", real: &|path| path.into() };
    let request = Request::command("Bash", text, &policy, surroundings);
    let mut decision = decide(&policy, &request);
    decision.suggestions.truncate(1);
    Ask {
        id: "t:c1".into(),
        call_id: "c1".into(),
        tool: "Bash".into(),
        agent: "main".into(),
        mode: policy.mode,
        summary: "run a command".into(),
        input: json!({ "command": text }),
        subjects: request.subjects,
        decision,
        preview: None,
    }
}

fn talk(ask: &Ask, lines: &[&'static str]) -> (Result<Answer, Stop>, String) {
    let mut typist = Typist { lines: lines.iter().copied().collect(), read: String::new() };
    let answer = hold(ask, &place(), &mut typist);
    (answer, typist.read)
}

#[test]
fn choices_and_detours() {
    let ask = ask("touch made.txt");
    let offered = ask.offer().unwrap();
    let granting = |grant: Grant| Ok(Answer::granting(Some(grant)));
    let saved = |rule: &str, to| Grant { save: Some(to), ..Grant::of(Rule::parse(rule).unwrap()) };
    let table: &[(&[&str], Result<Answer, Stop>)] = &[
        (&["1"], Ok(Answer::once())),
        (&["", " ", "y", "1 2", "allow", "1"], Ok(Answer::once())),
        (&["2"], granting(offered.clone())),
        (&["2 5x"], granting(Grant { uses: Some(5), ..offered.clone() })),
        (&["2 often", "4"], Ok(Answer::Deny { feedback: None })),
        (&["3", "1", "1"], granting(saved(offered.rule.text(), SaveTo::Local))),
        (
            &["3", "Bad(", "mcp__srv", "", "3", "mcp__srv", "9", "2"],
            granting(saved("mcp__srv", SaveTo::Project)),
        ),
        (&["3", "", "3", "Read", "3"], granting(saved("Read", SaveTo::User))),
        (&["5", "", "5", "use a dry run"], Ok(Answer::deny("use a dry run"))),
        (&["e", "{", "e", r#"{"command":"ls"}"#], Ok(Answer::edited(json!({"command": "ls"})))),
        (&[], Err(Stop::End)),
        (&["3"], Err(Stop::End)),
    ];
    for (lines, expected) in table {
        let (answer, read) = talk(&ask, lines);
        assert_eq!(&answer, expected, "{lines:?}\n{read}");
    }
}

#[test]
fn without_a_rule_there_is_only_once() {
    let mut ask = ask("touch made.txt");
    ask.decision.suggestions.clear();
    let (answer, read) = talk(&ask, &["2", "1"]);
    assert_eq!(answer, Ok(Answer::once()));
    assert!(read.contains("2 is not there") && read.contains("it can only be allowed once"), "{read}");
}

#[test]
fn limits_of_a_grant() {
    let grant = |limits: &str| {
        let mut grant = Grant::of(Rule::parse("Read").unwrap());
        limited(&mut grant, limits, &place()).map(|()| grant)
    };
    let all = grant("3x 10m in src/../lib").unwrap();
    assert_eq!((all.uses, all.folder), (Some(3), Some("/project/lib".into())));
    let left = all.until.unwrap() - Instant::now();
    assert!(left > Duration::from_secs(500) && left <= Duration::from_secs(600));
    for bad in ["x", "5", "5d", "-1x", "5x y", "5ü", "99999999999s"] {
        assert!(grant(bad).is_err(), "{bad}");
    }
}

#[test]
fn the_question_shows_all_that_matters_and_nothing_that_moves_the_cursor() {
    let mut shown = ask("printf '\u{1b}[2J' > out.txt; cargo publish");
    shown.summary = "harmless\r\u{1b}[1Aline\nbreak".into();
    let text = anstream::adapter::strip_str(&words::question(&shown)).to_string();
    assert!(text.contains(r"Bash: harmless\r\u{1b}[1Aline break"), "{text}");
    assert!(text.contains(r"printf '\u{1b}[2J'"), "{text}");
    for part in
        ["cargo publish", "writes /project/out.txt", "the command has 38 characters", "why", "1 allow once"]
    {
        assert!(text.contains(part), "{part} is missing in {text}");
    }
    let long = words::question(&ask(&format!("echo {}; rm -r end", "a".repeat(70_000))));
    assert!(long.len() < 40_000 && long.contains("characters not shown") && long.contains("rm -r end"));
}
