use std::{fs, path::Path};

use gripper_runtime::{
    environment::Environment,
    permissions::{Diagnostic, Mode},
    settings::Sources,
};
use gripper_testkit::Workspace;
use serde_json::{Value, json};

use super::{Kinds, ModelChoice};

fn load(workspace: &Workspace, cwd: &Path, given: Option<Value>) -> (Kinds, Vec<Diagnostic>) {
    let home = workspace.home().to_string_lossy().into_owned();
    let environment = Environment::from_lookup(|name| (name == "HOME").then(|| home.clone()));
    Kinds::load(&Sources::discover(&environment, cwd, None), given.as_ref())
}

fn trust(workspace: &Workspace) {
    let folder = workspace.home().join(".gripper");
    fs::create_dir_all(&folder).unwrap();
    let list = json!({ "trusted": [workspace.project()] }).to_string();
    fs::write(folder.join("trust.json"), list).unwrap();
}

fn agent(name: &str, more: &str) -> String {
    format!("---\nname: {name}\ndescription: does {name}\n{more}---\nYou do {name}.\n")
}

#[test]
fn a_nearer_kind_counts_and_one_bad_file_harms_no_other() {
    let workspace = Workspace::new();
    trust(&workspace);
    fs::create_dir_all(workspace.path(".git")).unwrap();
    let user = workspace.home().join(".claude/agents");
    fs::create_dir_all(&user).unwrap();
    fs::write(user.join("one.md"), agent("one", "model: fast\n")).unwrap();
    fs::write(user.join("two.md"), agent("two", "permissionMode: acceptEdits\nmaxTurns: 3\n")).unwrap();
    workspace.write(".claude/agents/two.md", agent("two", "tools: Read, Grep\n"));
    workspace.write("deep/.gripper/agents/two.md", agent("two", "disallowed-tools: Bash(rm *), Write\n"));
    workspace.write(".claude/agents/broken.md", "no fields");
    workspace.write(".claude/agents/nameless.md", "---\ndescription: x\nhooks: {}\nshape: round\n---\nYou.");
    workspace.write(".claude/agents/wide.md", agent("wide", "permissionMode: bypassPermissions\n"));
    let (kinds, found) = load(&workspace, &workspace.path("deep"), None);
    assert_eq!(kinds.get("one").unwrap().model, ModelChoice::Fast);
    let two = kinds.get("two").unwrap();
    assert_eq!((two.denied.len(), &two.tools, two.mode, two.max_turns), (2, &None, None, None));
    let (kinds, _) = load(&workspace, &workspace.project(), None);
    assert_eq!(kinds.get("two").unwrap().tools, Some(vec!["Read".to_owned(), "Grep".to_owned()]));
    assert_eq!(
        (kinds.get("nameless").unwrap().prompt.as_str(), kinds.get("wide").unwrap().mode),
        ("You.", None)
    );
    assert!(kinds.get("broken").is_none() && kinds.get("Explore").unwrap().mode == Some(Mode::Plan));
    let said = found.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n");
    for words in
        ["broken.md: this agent does not count", "hooks is not supported", "no field shape", "bypass"]
    {
        assert!(said.contains(words), "{words} is not in\n{said}");
    }
}

#[test]
fn a_project_that_is_not_trusted_has_no_agents() {
    let workspace = Workspace::new();
    workspace.write(".claude/agents/one.md", agent("one", ""));
    let (kinds, found) = load(&workspace, &workspace.project(), None);
    assert!(kinds.get("one").is_none());
    assert!(found.len() == 1 && found[0].to_string().contains("gripper trust"), "{found:?}");
}

#[test]
fn the_command_line_gives_kinds_as_well() {
    let workspace = Workspace::new();
    let given = json!({
        "Explore": { "description": "mine", "prompt": "Look.", "tools": ["Read"], "permissionMode": "plan" },
        "half": { "description": "no prompt" },
        "rule": { "description": "d", "prompt": "p", "tools": "Read, Bash(git log, -p)" },
        "wrong": { "description": "d", "prompt": "p", "maxTurns": "many" },
    });
    let (kinds, found) = load(&workspace, &workspace.project(), Some(given));
    let explore = kinds.get("Explore").unwrap();
    assert_eq!((explore.description.as_str(), explore.explores), ("mine", false));
    assert_eq!(
        kinds.get("rule").unwrap().tools,
        Some(vec!["Read".to_owned()]),
        "a rule is no name of a tool"
    );
    let said: Vec<String> = found.iter().map(ToString::to_string).collect();
    assert_eq!(said.len(), 3, "{said:?}");
    assert!(kinds.get("half").is_none() && kinds.get("wrong").is_none());
    assert_eq!(load(&workspace, &workspace.project(), Some(json!([]))).1.len(), 1);
}
