//! Layers, bad input, edits and changes, as tables over small trees of files.

use std::{
    fs,
    path::{Path, PathBuf},
    time::{Duration, SystemTime},
};

use gripper_permissions::{Mode, RuleList, Scope, SourcedRule, Weight};
use rstest::rstest;
use serde_json::{Value, json};

use super::{Kind, Loaded, Sources, Watch, add_rule, check_edit, keys, load};
use crate::environment::Environment;

/// A machine with a home, a project in it and managed policy, all temporary.
struct Machine {
    folder: tempfile::TempDir,
    given: Option<String>,
}

impl Machine {
    fn new(files: &[(&str, &str)]) -> Self {
        let machine = Self { folder: tempfile::tempdir().unwrap(), given: None };
        fs::create_dir_all(machine.path("home/project/src")).unwrap();
        fs::create_dir_all(machine.path("home/project/.git")).unwrap();
        files.iter().for_each(|(name, text)| machine.write(name, text));
        machine
    }

    fn trusted(files: &[(&str, &str)]) -> Self {
        let machine = Self::new(files);
        machine.sources().trust().0.add(&machine.path("home/project"), false).unwrap();
        machine
    }

    fn path(&self, name: &str) -> PathBuf {
        let short =
            [("P/", "home/project/.claude/"), ("G/", "home/project/.gripper/"), ("H/", "home/.claude/")];
        let long = short.iter().find_map(|(from, to)| Some(format!("{to}{}", name.strip_prefix(from)?)));
        self.folder.path().canonicalize().unwrap().join(long.as_deref().unwrap_or(name))
    }

    fn write(&self, name: &str, text: impl AsRef<[u8]>) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn sources(&self) -> Sources {
        let home = self.path("home");
        let lookup = |name: &str| (name == "HOME").then(|| home.to_string_lossy().into_owned());
        let managed_dirs = vec![self.path("etc"), self.path("extra")];
        let environment = Environment { managed_dirs, ..Environment::from_lookup(lookup) };
        Sources::discover(&environment, &self.path("home/project/src"), self.given.as_deref())
    }

    fn load(&self) -> Loaded {
        load(&self.sources())
    }
}

/// The rules as `list rule file:line`.
fn rules(loaded: &Loaded) -> Vec<String> {
    let mut rules = Vec::new();
    for list in RuleList::ALL {
        for SourcedRule { rule, source, .. } in loaded.policy.rules.list(list) {
            let file = source.file.as_ref().unwrap().file_name().unwrap().to_str().unwrap();
            rules.push(format!("{} {rule} {file}:{}", list.name(), source.line.unwrap()));
        }
    }
    rules.sort();
    rules
}

fn complaints(loaded: &Loaded) -> Vec<String> {
    loaded.diagnostics.iter().map(|found| format!("{}: {found}", found.weight.name())).collect()
}

#[test]
fn lists_join_and_scalars_go_to_the_strongest() {
    let file = |model: &str, tool: &str| {
        format!(
            "{{\"model\": \"{model}\", // why\n \"permissions\": {{\"deny\": [\n\"{tool}\",]}}, \"env\": {{\"{model}\": \"1\"}}}}"
        )
    };
    let names = [
        ("H/settings.json", "hc", Scope::User),
        ("home/.gripper/settings.json", "hg", Scope::User),
        ("P/settings.json", "pc", Scope::Project),
        ("G/settings.json", "pg", Scope::Project),
        ("P/settings.local.json", "lc", Scope::Local),
        ("G/settings.local.json", "lg", Scope::Local),
        ("extra/managed-settings.json", "x", Scope::Managed),
        ("etc/managed-settings.json", "m", Scope::Managed),
        ("etc/managed-settings.d/10.json", "m10", Scope::Managed),
        ("etc/managed-settings.d/20.json", "m20", Scope::Managed),
    ];
    let machine = Machine::trusted(&[]);
    for (at, (name, model, scope)) in names.into_iter().enumerate() {
        machine.write(name, file(model, model));
        let loaded = machine.load();
        let node = loaded.effective.get("model").unwrap();
        assert_eq!((node.text(), node.source.scope, node.source.line), (Some(model), scope, Some(1)));
        assert_eq!(node.source.file.as_deref(), Some(&*machine.path(name)));
        assert_eq!((rules(&loaded).len(), loaded.env.len()), (at + 1, at + 1));
        assert!(rules(&loaded).iter().all(|rule| rule.starts_with("deny ") && rule.ends_with(":3")));
        assert_eq!(complaints(&loaded), Vec::<String>::new());
    }
    let mut machine = machine;
    for name in &names[6..] {
        fs::remove_file(machine.path(name.0)).unwrap();
    }
    machine.given = Some(r#"{"model": "given"}"#.into());
    assert_eq!(machine.load().effective.get("model").unwrap().text(), Some("given"));
    machine.given = Some("../given.json".into());
    machine.write("home/project/given.json", r#"{"model": "file"}"#);
    assert_eq!(machine.load().effective.get("model").unwrap().text(), Some("file"));
}

#[test]
fn every_key_has_its_effect() {
    let machine = Machine::trusted(&[(
        "P/settings.json",
        r#"{"permissions": {"defaultMode": "acceptEdits", "additionalDirectories": ["src", "~", "/nowhere"], "networkReads": "allow",
            "allow": [{"rule": "Read", "examples": {"match": ["a"], "not_match": ["b"]}}]},
        "executor": {"maxConcurrency": 3, "siblingCancel": "never"}, "results": {"turnBudget": 5000, "keepDays": 2},
        "hooks": {"updatedInput": "policyOnly", "Stop": [{"hooks": [{"type": "command", "command": "x"}]}]},
        "env": {"A": "b"}, "sensitivePaths": {"add": ["*.x"], "remove": [".env"]}, "$schema": "s", "foreign": {"deep": [1]}}"#,
    )]);
    let loaded = machine.load();
    let policy = &loaded.policy;
    assert!(policy.trusted && policy.mode == Mode::AcceptEdits && policy.flags.network_reads);
    let project = machine.path("home/project");
    assert_eq!((&policy.root, &policy.home), (&project, &machine.path("home")));
    assert_eq!(policy.directories[0], project.join("src"));
    assert!(policy.holds(&machine.path("home/x")) && !policy.holds(Path::new("/nowhere")));
    let examples = &policy.rules.list(RuleList::Allow)[0].examples;
    assert_eq!((&*examples.fits[0], &*examples.not_match[0]), ("a", "b"));
    assert_eq!((loaded.limits.max_concurrency, loaded.limits.turn_budget), (3, 5000));
    assert_eq!(loaded.store.max_age, Duration::from_secs(2 * 86_400));
    assert_eq!(
        format!("{:?} {:?}", loaded.limits.sibling_cancel, loaded.limits.rewrite_trust),
        "Never PolicyOnly"
    );
    assert_eq!(
        (loaded.env["A"].as_str(), policy.sensitive.add.len(), policy.sensitive.remove.len()),
        ("b", 1, 1)
    );
    assert_eq!(loaded.hooks[0].1, json!({"Stop": [{"hooks": [{"type": "command", "command": "x"}]}]}));
    assert_eq!(loaded.effective.at("foreign.deep").unwrap().value(), json!([1]));
    assert_eq!(loaded.diagnostics.len(), 1, "{:?}", complaints(&loaded));
    assert!(complaints(&loaded)[0].ends_with(
        "settings.json:1: /nowhere is not a directory, so it is not added to the working directories"
    ));
}

#[test]
fn older_shapes_and_files_of_their_own() {
    let machine = Machine::trusted(&[
        (
            "P/settings.json",
            "{\"allowed_tools\": [\"Read\"], \"permissions\": {\n\"disabled_tools\": [\"Grep\"], \"pre_approval\": {\"auto_approve_https\": true, \"blocked_domains\": [\"a.com\"]}}}",
        ),
        ("P/permissions.json", "{\"ask\": [\n\"Sleep\"]}"),
        ("G/permissions.json", "{\"permissions\": {\"ask\": [\"Glob\"]}}"),
        ("P/hooks.json", "{\"Stop\": []}"),
        ("G/hooks.json", "{\"hooks\": {\"Setup\": []}}"),
    ]);
    let loaded = machine.load();
    assert_eq!(
        rules(&loaded),
        [
            "allow Read settings.json:1",
            "allow WebFetch settings.json:2",
            "ask Glob permissions.json:1",
            "ask Sleep permissions.json:2",
            "deny Grep settings.json:2",
            "deny WebFetch(domain:a.com) settings.json:2"
        ]
    );
    let hooks: Vec<_> = loaded.hooks.into_iter().map(|(_, value)| value).collect();
    assert_eq!(hooks, [json!({"Stop": []}), json!({"Setup": []})]);
}

#[test]
fn a_folder_nobody_vouches_for_only_makes_things_stricter() {
    let text = r#"{"permissions": {"allow": ["Read"], "ask": ["Grep"], "deny": ["Glob"], "defaultMode": "bypassPermissions",
        "additionalDirectories": ["/"]}, "hooks": {"Stop": []}, "disableAllHooks": true, "env": {"A": "b"}, "foreign": 1}"#;
    let machine = Machine::new(&[("P/settings.json", text), ("H/hooks.json", r#"{"Setup": []}"#)]);
    let loaded = machine.load();
    assert!(!loaded.policy.trusted && loaded.policy.mode == Mode::Default && loaded.env.is_empty());
    assert_eq!((loaded.policy.directories.len(), loaded.hooks.len(), rules(&loaded).len()), (1, 1, 3));
    assert_eq!(complaints(&loaded).len(), 1);
    let words =
        "not additionalDirectories, allow rules, defaultMode, disableAllHooks, env, hooks; if you trust";
    assert!(complaints(&loaded)[0].contains(words), "{:?}", complaints(&loaded));
    let store = machine.sources().trust().0;
    for wide in [machine.path("home"), machine.path(""), "/".into()] {
        assert!(store.add(&wide, false).unwrap_err().to_string().contains("--force"), "{}", wide.display());
    }
    store.add(&machine.path("home/project"), false).unwrap();
    let loaded = machine.load();
    assert!(loaded.policy.trusted && loaded.policy.mode == Mode::BypassPermissions);
    assert_eq!(loaded.hooks.len(), 0, "disableAllHooks of a trusted folder counts");
    machine.write("home/.gripper/trust.json", "{\"trusted\": [");
    let loaded = machine.load();
    assert!(!loaded.policy.trusted && complaints(&loaded)[0].contains("no folder counts as trusted"));
    assert!(
        machine.sources().trust().0.add(&machine.path("home/project"), false).is_err(),
        "nothing is overwritten"
    );
}

#[test]
fn managed_policy_is_strongest_and_fails_closed() {
    let hook = r#""hooks": {"Stop": []}"#;
    let machine = Machine::trusted(&[
        ("etc/managed-settings.json", &*format!(r#"{{"permissions": {{"deny": ["Glob"]}}, {hook}}}"#)),
        ("extra/managed-settings.json", r#"{"disableAllHooks": true}"#),
        (
            "P/settings.json",
            &*format!(
                r#"{{"permissions": {{"allow": ["Read"], "defaultMode": "bypassPermissions"}}, {hook}}}"#
            ),
        ),
        ("H/settings.json", r#"{"permissions": {"disableBypassPermissionsMode": "disable"}}"#),
    ]);
    let loaded = machine.load();
    assert_eq!(loaded.hooks.len(), 1, "a folder that a variable added cannot switch off the machine's hooks");
    assert!(loaded.policy.flags.bypass_unavailable, "whichever file asks for it");
    machine.write("etc/managed-settings.d/1.json", r#"{"disableAllHooks": true}"#);
    assert_eq!(machine.load().hooks.len(), 0);
    fs::remove_file(machine.path("H/settings.json")).unwrap();
    assert!(!machine.load().policy.flags.bypass_unavailable);
    machine.write("etc/managed-settings.d/2.json", r#"{"permissions": {"#);
    let loaded = machine.load();
    assert!(loaded.locked && loaded.policy.flags.bypass_unavailable && loaded.policy.mode == Mode::Default);
    assert_eq!(loaded.with_mode(Mode::AcceptEdits).mode, Mode::Default);
    assert_eq!(loaded.with_mode(Mode::Plan).mode, Mode::Plan);
    let count = |list| loaded.policy.rules.list(list).len();
    assert_eq!(
        (count(RuleList::Allow), count(RuleList::Deny)),
        (0, 1),
        "the project's allow rule does not count"
    );
    assert!(
        complaints(&loaded)
            .iter()
            .any(|text| text.contains("2.json:1: column") && text.contains("no bypass"))
    );
}

#[rstest]
#[case::broken("{\"a\": 1,\n \"b\" 2}", "2: column 6: expected colon")]
#[case::cut_off("{\"permissions\": {", "1: column 17: unterminated object")]
#[case::no_object("[1]", "1: column 1: expected an object")]
#[case::empty("", "1: column 1: the file is empty")]
#[case::single_quotes("{'a': 1}", "single-quoted strings are not allowed")]
#[case::trailing("{} {}", "more than one json value")]
fn a_broken_file_costs_only_itself(#[case] text: &str, #[case] words: &str) {
    let machine = Machine::trusted(&[
        ("G/settings.json", text),
        ("P/settings.json", r#"{"permissions": {"deny": ["Read"]}}"#),
    ]);
    let loaded = machine.load();
    assert_eq!(rules(&loaded), ["deny Read settings.json:1"]);
    let [only] = &complaints(&loaded)[..] else { panic!("{:?}", complaints(&loaded)) };
    assert!(only.starts_with("error: project settings, ") && only.contains(words), "{only}");
}

#[test]
fn files_that_are_no_text_or_no_files() {
    let machine = Machine::trusted(&[("P/settings.json", r#"{"permissions": {"deny": ["Read"]}}"#)]);
    machine.write("G/settings.json", b"{\n\"a\": \"\xff\"}");
    machine.write("G/settings.local.json", format!("{{\"a\": \"{}\"}}", "x".repeat(10 << 20)));
    machine.write("G/hooks.json", format!("{}1{}", "{\"a\":".repeat(5_000), "}".repeat(5_000)));
    machine.write("H/settings.json", "\u{feff}{\"permissions\": {\"deny\": [\"Grep\"]}}");
    fs::create_dir(machine.path("H/permissions.json")).unwrap();
    std::os::unix::fs::symlink("settings.local.json", machine.path("P/settings.local.json")).unwrap();
    std::os::unix::fs::symlink("none.json", machine.path("P/hooks.json")).unwrap();
    let loaded = machine.load();
    assert_eq!(rules(&loaded), ["deny Grep settings.json:1", "deny Read settings.json:1"]);
    let found = complaints(&loaded).join("\n");
    for words in [
        ".gripper/settings.json:2: column 7: it is not UTF-8 text",
        ".gripper/settings.local.json:1: column 1: it is larger than 1 MB",
        ": maximum nesting depth exceeded; nothing in it counts",
        ".claude/permissions.json:1: column 1: it is not a plain file",
        ".claude/settings.local.json:1: column 1: it cannot be read: ",
        ".claude/hooks.json:1: column 1: the link leads nowhere",
    ] {
        assert!(found.contains(words), "{words} is missing in\n{found}");
    }
}

#[test]
fn a_bad_entry_costs_only_itself() {
    let machine = Machine::trusted(&[(
        "P/settings.json",
        "{\n\"permissions\": {\"allow\": [\n\"Read\",\n5,\n\"Re ad\",\n{\"rule\": 1},\n\"Grep\"],\n\"defaultMode\": \"wild\",\n\"alow\": [\"Glob\"]},
\"permision\": 1, \"statusLine\": {}, \"model\": [1],\n\"hooks\": {\"Stop\": [{\"matcher\": \"x\"}, {\"hooks\": []}]},\n\"env\": {\"A\": 1, \"B\": \"2\"}, \"env2\": null, \"theme\": \"a\",\n\"theme\": \"b\"}",
    )]);
    let loaded = machine.load();
    assert_eq!(rules(&loaded), ["allow Grep settings.json:7", "allow Read settings.json:3"]);
    assert_eq!((loaded.env.len(), loaded.policy.mode), (1, Mode::Default));
    assert_eq!(loaded.hooks[0].1, json!({"Stop": [{"hooks": []}]}));
    assert_eq!(loaded.effective.at("theme").unwrap().text(), Some("b"));
    let found = complaints(&loaded).join("\n");
    for words in [
        "settings.json:4: /permissions/allow/1 does not count: expected",
        "settings.json:5: this allow rule does not count: \"Re ad\" is not a tool name",
        "settings.json:6: /permissions/allow/3",
        "settings.json:8: permissions.defaultMode is \"wild\", which this version does not know",
        "settings.json:9: \"alow\" is not a known key and does nothing here; did you mean \"allow\"?",
        "settings.json:10: \"permision\" is not a known key and does nothing here; did you mean \"permissions\"?",
        "settings.json:10: /model does not count: expected string",
        "settings.json:11: /hooks/Stop/0/hooks does not count: required field \"hooks\" is missing",
        "settings.json:12: /env/A does not count",
        "settings.json:12: \"theme\" is written twice, and only the last one counts; join the two",
    ] {
        assert!(found.contains(words), "{words} is missing in\n{found}");
    }
    assert!(!found.contains("statusLine"), "{found}");
    assert_eq!(loaded.diagnostics.iter().filter(|found| found.weight == Weight::Note).count(), 0);
}

/// A line for each key, so that a change of one is a change of one line.
fn shipped(schema: &Value) -> String {
    let text = |value: &Value| {
        value.as_object().unwrap().iter().map(|(key, value)| format!("{key:?}: {value}")).collect::<Vec<_>>()
    };
    let mut outer = schema.clone();
    let Some(properties) = outer.as_object_mut().unwrap().shift_remove("properties") else {
        return format!("{{\n{}\n}}\n", text(&outer).join(",\n"));
    };
    format!(
        "{{\n{},\n\"properties\": {{\n{}\n}}\n}}\n",
        text(&outer).join(",\n"),
        text(&properties).join(",\n")
    )
}

#[test]
fn schemas_are_shipped() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../schemas");
    for kind in Kind::ALL {
        let schema = keys::schema(kind);
        schema.verify().unwrap();
        let file = folder.join(format!("{}.json", kind.name()));
        let text = shipped(schema.value());
        if std::env::var_os("UPDATE").is_some() {
            fs::create_dir_all(&folder).unwrap();
            fs::write(&file, &text).unwrap();
        }
        assert!(
            fs::read_to_string(&file).unwrap_or_default() == text,
            "{}: run with UPDATE=1",
            file.display()
        );
    }
}

#[rstest]
#[case::rule("{}", r#"{"permissions": {"allow": ["Bash(npm *)"]}}"#, "adds allow Bash(npm *)")]
#[case::removed(r#"{"permissions": {"deny": ["Read(.env)"]}}"#, "{}", "removes deny Read(.env)")]
#[case::mode(
    "{}",
    r#"{"permissions": {"defaultMode": "bypassPermissions"}}"#,
    "sets defaultMode to bypassPermissions"
)]
#[case::hook(
    "{}",
    r#"{"hooks": {"PreToolUse": [{"matcher": "Edit", "hooks": [{"type": "command", "command": "./x"}]}]}}"#,
    "adds a PreToolUse hook for Edit running ./x"
)]
#[case::env(r#"{"env": {"A": "1"}}"#, r#"{"env": {"A": "2"}}"#, "sets env.A to 2")]
#[case::folder(
    "{}",
    r#"{"permissions": {"additionalDirectories": ["/"]}}"#,
    "adds / in permissions.additionalDirectories"
)]
#[case::comment("{}", "{} // words", "changes nothing in effect")]
#[case::broken_before("{", "{}", "expected the current content to be JSON")]
#[case::broken_after("{}", "{", "expected to be JSON, given line 1, column 1: ")]
#[case::misfit("{}", r#"{"permissions": {"allow": [5]}}"#, "/permissions/allow/0 expected")]
#[case::bad_choice(
    "{}",
    r#"{"permissions": {"defaultMode": "wild"}}"#,
    "/permissions/defaultMode expected one of"
)]
fn an_edit_is_told_in_words(#[case] before: &str, #[case] after: &str, #[case] words: &str) {
    let told = match check_edit(Kind::Settings, before, after) {
        Ok(change) => change.to_string(),
        Err(problems) => {
            problems.iter().map(|problem| format!("{} {}", problem.path, problem.message)).collect()
        }
    };
    assert!(told.trim_start().starts_with(words), "{told}");
}

#[test]
fn settings_files_are_known_by_place_and_name() {
    let machine = Machine::new(&[("etc/managed-settings.d/a.json", "{}")]);
    let sources = machine.sources();
    for (name, kind) in [
        ("P/settings.json", Some(Kind::Settings)),
        ("G/settings.local.json", Some(Kind::Settings)),
        ("H/permissions.json", Some(Kind::Permissions)),
        ("elsewhere/.claude/hooks.json", Some(Kind::Hooks)),
        ("etc/managed-settings.d/a.json", Some(Kind::Settings)),
        ("home/project/settings.json", None),
        ("P/other.json", None),
    ] {
        assert_eq!(sources.settings_file(&machine.path(name)), kind, "{name}");
    }
    assert!(check_edit(Kind::Hooks, "{}", r#"{"Stop": 5}"#).is_err());
}

const COMMENTED: &str = "// top\r\n{\r\n\t\"model\": \"m\", // kept\r\n\t\"permissions\": {\r\n\t\t/* why */\r\n\t\t\"deny\": [\r\n\t\t\t\"Read\", // secret\r\n\t\t],\r\n\t},\r\n}\r\n";

#[test]
fn adding_a_rule_keeps_everything_else() {
    let machine =
        Machine::new(&[("P/settings.json", COMMENTED), ("P/hooks.json", "{\"permissions\": {\"deny\": 5}}")]);
    let file = machine.path("P/settings.json");
    fs::set_permissions(&file, std::os::unix::fs::PermissionsExt::from_mode(0o640)).unwrap();
    std::os::unix::fs::symlink(&file, machine.path("link.json")).unwrap();
    let add = |name: &str, rule: &str| add_rule(&machine.path(name), Kind::Settings, RuleList::Deny, rule);
    assert!(add("link.json", "Grep").unwrap());
    assert!(!add("P/settings.json", "Grep").unwrap(), "twice changes nothing");
    let expected = COMMENTED.replace("// secret\r\n", "// secret\r\n\t\t\t\"Grep\",\r\n");
    assert_eq!(fs::read_to_string(&file).unwrap(), expected);
    assert!(machine.path("link.json").is_symlink());
    assert_eq!(
        std::os::unix::fs::PermissionsExt::mode(&fs::metadata(&file).unwrap().permissions()) & 0o777,
        0o640
    );
    assert!(add("new/.gripper/settings.json", "Read").unwrap());
    let made = fs::read_to_string(machine.path("new/.gripper/settings.json")).unwrap();
    assert_eq!(made, "{\n  \"permissions\": {\n    \"deny\": [\n      \"Read\"\n    ]\n  }\n}\n");
    let refused = add("P/hooks.json", "Read").unwrap_err().to_string();
    assert!(refused.ends_with("\"deny\" holds something other than a list"), "{refused}");
    machine.write("P/settings.json", "{\n\"a\"");
    let refused = add("P/settings.json", "Read").unwrap_err().to_string();
    assert!(refused.contains("line 2, column"), "{refused}");
    assert_eq!(fs::read_to_string(&file).unwrap(), "{\n\"a\"");
    let left: Vec<_> =
        fs::read_dir(machine.path("P/")).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left.len(), 2, "nothing is left behind: {left:?}");
}

#[test]
fn nobody_loses_a_rule_and_no_reader_sees_half_a_file() {
    let machine = Machine::trusted(&[("P/settings.json", "{\"permissions\": {\"deny\": []}}")]);
    let file = machine.path("P/settings.json");
    std::thread::scope(|scope| {
        for writer in 0..4 {
            let file = &file;
            scope.spawn(move || {
                for n in 0..10 {
                    add_rule(file, Kind::Settings, RuleList::Deny, &format!("mcp__s{writer}__t{n}")).unwrap();
                }
            });
        }
        scope.spawn(|| {
            let mut most = 0;
            while most < 40 {
                let loaded = machine.load();
                assert_eq!(complaints(&loaded), Vec::<String>::new());
                assert!(rules(&loaded).len() >= most, "rules only come");
                most = rules(&loaded).len();
            }
        });
    });
    assert_eq!(rules(&machine.load()).len(), 40);
}

#[test]
fn changes_are_seen_at_the_next_look() {
    let machine = Machine::trusted(&[("P/settings.json", r#"{"permissions": {"deny": ["Read"]}}"#)]);
    let age = |name: &str| {
        let file = fs::File::options().append(true).open(machine.path(name)).unwrap();
        file.set_modified(SystemTime::now() - Duration::from_secs(60)).unwrap();
    };
    age("P/settings.json");
    age("home/.gripper/trust.json");
    let (mut watch, _) = Watch::start(machine.sources());
    assert!(watch.changed().is_none());
    machine.write("etc/managed-settings.d/a.json", r#"{"permissions": {"deny": ["Glob"]}}"#);
    assert_eq!(rules(&watch.changed().unwrap()).len(), 2, "a file that was not there before");
    machine.write("P/settings.json", r#"{"permissions": {"deny": ["Grep"]}}"#);
    assert!(rules(&watch.changed().unwrap()).contains(&"deny Grep settings.json:1".to_owned()));
    machine.write("P/settings.json", r#"{"permissions": {"deny": ["Edit"]}}"#);
    assert!(
        rules(&watch.changed().unwrap()).contains(&"deny Edit settings.json:1".to_owned()),
        "same length, same moment"
    );
    machine.write("P/settings.json", "{\"permissions\": ");
    machine.write("etc/managed-settings.d/a.json", "{");
    let loaded = watch.changed().unwrap();
    assert_eq!((rules(&loaded).len(), loaded.locked), (2, false), "what stood there before stays");
    assert!(complaints(&loaded).join("\n").contains("what it held before stays in force"));
    fs::remove_file(machine.path("P/settings.json")).unwrap();
    assert_eq!(rules(&watch.changed().unwrap()), ["deny Glob a.json:1"], "removing a file is meant");
    fs::remove_file(machine.path("home/.gripper/trust.json")).unwrap();
    assert!(!watch.changed().unwrap().policy.trusted);
}
