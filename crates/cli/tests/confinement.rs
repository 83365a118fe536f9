//! Confinement through the binary: the network by a list of hosts, machines that cannot confine, hooks,
//! limits, and commands that mean harm or mean nothing.
#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a failed expectation is how tests fail"
)]

use std::{
    fs,
    io::{Read, Write},
    net::TcpListener,
    os::unix::fs::PermissionsExt,
    process::Command,
};

use gripper_testkit::{Binary, Workspace};
use rstest::rstest;
use serde_json::{Value, json};

const GRIPPER: &str = env!("CARGO_BIN_EXE_gripper");
/// Turns back ends off, as a person would.
const BACKENDS: &str = "GRIPPER_SANDBOX_BACKENDS";

/// A call of Bash; `flags` are those of `gripper tool`.
fn bash<'a>(workspace: &'a Workspace, input: &Value, settings: &Value, flags: &[&str]) -> Binary<'a> {
    let binary = Binary::new(GRIPPER, workspace).args(["tool", "Bash", "-", "--settings"]);
    binary.arg(settings.to_string()).args(flags).input(input.to_string())
}

fn line(command: &str) -> Value {
    json!({ "command": command })
}

/// Whether this test can say anything here; if not, why.
#[allow(clippy::print_stderr, reason = "a skipped test says so")]
fn lacks(layers: &[&str], programs: &[&str]) -> bool {
    let workspace = Workspace::new();
    let told: Value =
        serde_json::from_str(&Binary::new(GRIPPER, &workspace).args(["doctor", "--json"]).run().stdout)
            .unwrap();
    let works = |name: &&&str| {
        let found = told["findings"].as_array().unwrap().iter().find(|finding| finding["name"] == **name);
        found.is_some_and(|finding| finding["works"] == true)
    };
    let there = |name: &&&str| Command::new(name).arg("--version").output().is_ok();
    let missing: Vec<&&str> = layers
        .iter()
        .filter(|name| !works(name))
        .chain(programs.iter().filter(|name| !there(name)))
        .collect();
    if !missing.is_empty() {
        eprintln!("not tested: this machine lacks {missing:?}");
    }
    !missing.is_empty()
}

/// Answers every request.
fn server() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for mut peer in listener.incoming().flatten() {
            let _ = peer.read(&mut [0; 4096]);
            peer.write_all(b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nserved\n").ok();
        }
    });
    port
}

#[test]
fn the_sandbox_reaches_what_the_settings_or_a_person_allow() {
    if lacks(&["user namespaces"], &["curl"]) {
        return;
    }
    let (workspace, port) = (Workspace::new(), server());
    let here = format!("127.0.0.1:{port}");
    let hosts = |allow: &[&str], deny: &[&str]| json!({"sandbox": {"enabled": true, "network": {"allowedDomains": allow, "deniedDomains": deny}}});
    let command = line(&format!("curl -sS http://{here}/ http://other.invalid/; touch made"));
    let ran = bash(&workspace, &command, &hosts(&[&here], &[]), &["--allow", "Bash", "--json"]).run();
    let result = ran.json_lines().remove(0);
    let refused = "to reach other.invalid:80: no rule allows this host";
    assert_eq!(result["structured"]["denied"], json!([refused]), "{}", ran.transcript());
    assert!(ran.stdout.contains("served") && ran.stdout.contains(&format!("(the cage refused {refused})")));
    assert!(workspace.project().join("made").exists(), "{}", ran.transcript());

    let command = line(&format!("curl -sS http://{here}/"));
    let approved = bash(&workspace, &command, &hosts(&[], &[]), &["--yes"]).run();
    assert_eq!(approved.stdout, "served\n", "what a person agreed to is open: {}", approved.transcript());
    for (settings, flag) in [(hosts(&[], &[]), "--allow=Bash"), (hosts(&[&here], &["127.0.0.1"]), "--yes")] {
        let ran = bash(&workspace, &command, &settings, &[flag]).run();
        assert!(!ran.stdout.contains("served"), "{flag}: {}", ran.transcript());
    }
    let bad = bash(&workspace, &line("touch x"), &hosts(&["no host"], &[]), &["--yes"]).run();
    assert!(
        bad.stderr.contains("sandbox.network in the settings: \"no host\" names no host"),
        "{}",
        bad.stderr
    );
}

#[test]
fn where_nothing_can_confine_nothing_is_run_unasked() {
    let workspace = Workspace::new();
    workspace.write("a.txt", "one\n");
    let run = |command: &str, sandbox: Value, flags: &[&str]| {
        let settings = json!({ "sandbox": sandbox });
        bash(&workspace, &line(command), &settings, flags).env(BACKENDS, "none").run()
    };
    let must = json!({"enabled": true, "failIfUnavailable": true});
    for (command, flags) in
        [("cat a.txt", vec![]), ("touch made", vec!["--yes"]), ("touch made", vec!["--allow=Bash"])]
    {
        let ran = run(command, must.clone(), &flags);
        assert_eq!((ran.code != 0, ran.stdout.as_str()), (true, ""), "{command}: {}", ran.transcript());
        for words in ["sandbox.failIfUnavailable", "bubblewrap: switched off", "landlock: ", "gripper doctor"]
        {
            assert!(ran.stderr.contains(words), "{words}: {}", ran.stderr);
        }
    }
    // Without the setting a person is asked, also where a rule would have been enough in the sandbox.
    for (command, sandbox, flag) in
        [("cat a.txt", json!({}), "--mode=default"), ("touch made", json!({"enabled": true}), "--allow=Bash")]
    {
        let ran = run(command, sandbox.clone(), &[flag]);
        assert!(ran.stderr.contains("commands cannot be confined: bubblewrap"), "{}", ran.transcript());
        assert!(!workspace.project().join("made").exists());
        let agreed = run(command, sandbox, &["--yes"]);
        assert!(agreed.stdout.contains("nothing confined this command"), "{}", agreed.transcript());
    }
    let doctor = Binary::new(GRIPPER, &workspace).args(["doctor"]).env(BACKENDS, "none").run();
    assert_eq!(doctor.code, 1);
    for words in
        ["missing  bubblewrap: switched off by GRIPPER_", "missing  landlock: ", "cannot be confined"]
    {
        assert!(doctor.stdout.contains(words), "{}", doctor.transcript());
    }
}

#[test]
fn where_namespaces_are_forbidden_landlock_is_taken_and_told() {
    if lacks(&["bubblewrap", "landlock"], &[]) {
        return;
    }
    // A cage forbids namespaces, so a Gripper in one is on such a machine.
    let workspace = Workspace::new();
    workspace.write("src/file", "");
    let inside = |args: &[&str]| {
        let outer = Binary::new(GRIPPER, &workspace).args(["sandbox", "--write", "."]);
        outer.args(["--", GRIPPER]).args(args).run()
    };
    let doctor = inside(&["doctor"]);
    assert!(doctor.stdout.contains("missing  bubblewrap: ") && doctor.stdout.contains("with landlock."));
    let settings = json!({"sandbox": {"enabled": true}}).to_string();
    let command = line("touch src/made; touch $HOME/out").to_string();
    let ran = inside(&["tool", "Bash", &command, "--json", "--allow=Bash", "--settings", &settings]);
    let result: Value = serde_json::from_str(ran.stdout.lines().last().unwrap()).unwrap();
    let told = result["structured"]["confinement"].as_str().unwrap();
    assert!(told.contains("(landlock, but "), "{told}");
    assert_eq!(result["structured"]["exitCode"], 1, "{}", ran.transcript());
    assert!(workspace.project().join("src/made").exists() && !workspace.home().join("out").exists());
}

#[rstest]
#[case::bubblewrap("bubblewrap")]
#[case::landlock("landlock")]
fn what_makes_others_run_things_is_held_in_folders_below_too(#[case] backend: &str) {
    if lacks(&[backend], &[]) {
        return;
    }
    let workspace = Workspace::new();
    let held = ["one/.git/config", "one/.git/hooks/pre-push", "two/.claude/settings.json", "three/.git"];
    for name in
        held.iter().copied().chain(["one/src/file", "one/.git/refs/file", "node_modules/p/.vscode/file"])
    {
        workspace.write(&format!("libs/{name}"), "before\n");
    }
    // What is held within something held must not open it again.
    workspace.write("libs/two/.claude/inner/.git/config", "before\n");
    let settings = json!({"sandbox": {"enabled": true}});
    let run = |command: &str| {
        bash(&workspace, &line(command), &settings, &["--yes", "--json"]).env(BACKENDS, backend).run()
    };
    for command in held.map(|name| format!("echo x > libs/{name}")).iter().map(String::as_str).chain([
        "rm -rf libs/one/.git/config libs/one/.git/hooks libs/two/.claude",
        "mv libs/one libs/1; mkdir -p libs/one/.git/hooks; echo x > libs/one/.git/config",
        "mv libs away; mv libs/one/.git libs/one/old; mv libs/two/.claude libs/two/old",
        "echo x > libs/two/.claude/inner/new; echo x > libs/two/.claude/inner/.git/config",
    ]) {
        let ran =
            run(&format!("{command}; echo after > libs/one/src/file; echo after > libs/one/.git/refs/file"));
        for name in held.iter().copied().chain(["two/.claude/inner/.git/config"]) {
            let there = fs::read_to_string(workspace.project().join("libs").join(name));
            assert_eq!(there.ok().as_deref(), Some("before\n"), "{command}: {name}: {}", ran.transcript());
        }
        assert!(!workspace.project().join("libs/two/.claude/inner/new").exists(), "{command}");
        for name in ["one/src/file", "one/.git/refs/file"] {
            let there = fs::read_to_string(workspace.project().join("libs").join(name)).unwrap();
            assert_eq!(there, "after\n", "{command}: {}", ran.transcript());
        }
    }
    let _ = run("echo after > libs/node_modules/p/.vscode/file");
    let package = fs::read_to_string(workspace.project().join("libs/node_modules/p/.vscode/file")).unwrap();
    assert_eq!(package, "after\n");
    let words = ["sandbox", "--write", ".", "--", "sh", "-c", "echo x > libs/one/.git/config"];
    let ran = Binary::new(GRIPPER, &workspace).args(words).env(BACKENDS, backend).run();
    assert!(ran.code != 0 && ran.stderr.contains("libs/one/.git/config"), "{}", ran.transcript());

    // Many repositories are held whole, and more than can be held are not run with.
    for number in 0..40 {
        workspace.write(&format!("many/{number}/.git/config"), "before\n");
    }
    let _ = run("touch many/39/.git/new; touch made; echo x > many/39/.git/config");
    let there = |name: &str| workspace.project().join(name).exists();
    assert_eq!((there("many/39/.git/new"), there("made")), (false, backend == "bubblewrap"));
    for number in 0..121 {
        workspace.write(&format!("many/{number}/.envrc"), "before\n");
    }
    let ran = run("touch again");
    assert!(ran.stdout.contains("at most 120 can be held") && !there("again"), "{}", ran.transcript());
}

#[test]
fn a_confined_hook_changes_what_it_may() {
    if lacks(&["landlock"], &[]) {
        return;
    }
    let workspace = Workspace::new();
    workspace.write("a.txt", "one\n");
    let home = workspace.home().join("made");
    let run = |confine: Value, backends: &str| {
        let command = "touch made; touch $HOME/made; exit 0";
        let hook = json!({"type": "command", "command": command, "confine": confine, "onFailure": "block"});
        let settings = json!({"hooks": {"PreToolUse": [{"hooks": [hook]}]}}).to_string();
        let args = ["tool", "Read", r#"{"file_path": "a.txt"}"#, "--settings", &settings];
        let ran = Binary::new(GRIPPER, &workspace).args(args).env(BACKENDS, backends).run();
        let made = |path: &std::path::Path| fs::remove_file(path).is_ok();
        (ran, made(&workspace.project().join("made")), made(&home))
    };
    for (confine, project, outside) in
        [(json!("read-only"), false, false), (json!("project"), true, false), (Value::Null, true, true)]
    {
        let (ran, in_project, in_home) = run(confine.clone(), "bubblewrap,landlock");
        assert_eq!((ran.code, in_project, in_home), (0, project, outside), "{confine}: {}", ran.transcript());
    }
    for (confine, backends, why) in [
        (json!("read-only"), "none", "cannot be confined here"),
        (json!("tight"), "landlock", "unknown variant"),
    ] {
        let (ran, in_project, in_home) = run(confine, backends);
        assert!(ran.transcript().contains(why) && ran.code != 0, "{}", ran.transcript());
        assert!(!in_project && !in_home, "it was not run");
    }
}

#[rstest]
#[case::disk("head -c 5000000 /dev/zero > big", "limit of 1 MB in one file")]
#[case::time("while :; do :; done", "of processor time")]
fn limits_are_held_and_told(#[case] command: &str, #[case] told: &str) {
    let workspace = Workspace::new();
    let settings = json!({"sandbox": {"limits": {"fileSizeMb": 1, "cpuSeconds": 1}}});
    let ran = bash(&workspace, &line(command), &settings, &["--yes"]).run();
    assert!(ran.code != 0 && ran.stderr.contains(told), "{}", ran.transcript());
    let length = fs::metadata(workspace.project().join("big")).map_or(0, |meta| meta.len());
    assert!(length <= 1 << 20, "{length}");
}

/// Only where the number of processes is surely held: root is not bound by it, so root runs it as nobody.
#[test]
fn a_fork_bomb_stays_small() {
    let root = rustix::process::geteuid().is_root();
    if lacks(&["bubblewrap"], if root { &["setpriv"] } else { &[] }) {
        return;
    }
    let workspace = Workspace::new();
    for folder in [workspace.home(), workspace.project()] {
        fs::set_permissions(folder, fs::Permissions::from_mode(0o777)).unwrap();
    }
    let settings = json!({"sandbox": {"enabled": true, "limits": {"processes": 50, "cpuSeconds": 20}}});
    let mut command = Command::new(if root { "setpriv" } else { GRIPPER });
    if root {
        command.args(["--reuid=65534", "--regid=65534", "--clear-groups", GRIPPER]);
    }
    let bomb = line("b() { b | b & }; b; sleep 1");
    command.args(["tool", "Bash", &bomb.to_string(), "--allow=Bash", "--settings", &settings.to_string()]);
    command.env("HOME", workspace.home()).current_dir(workspace.project());
    let ran = command.output().unwrap();
    let told = String::from_utf8_lossy(&ran.stdout).into_owned() + &String::from_utf8_lossy(&ran.stderr);
    if told.contains("setpriv: failed to execute") {
        lacks(&["a place where nobody can run the binary"], &[]);
        return;
    }
    assert!(told.contains("it came to the limit of 50 processes"), "{told}");
}

#[rstest]
#[case::own_folder_gone("mkdir gone && cd gone && rmdir ../gone; echo after", &["after"])]
#[case::binary("head -c 3000 /dev/urandom; printf '\\0\\1\\377'; echo; echo end", &["end"])]
#[case::silent("exec 1>&- 2>&-; touch made; sleep 0.2", &["no output"])]
#[case::deaf("trap '' TERM; (trap '' TERM; sleep 1000) & echo told", &["told"])]
#[case::daemon("setsid -f sh -c 'trap \"\" HUP TERM; sleep 1000' >/dev/null 2>&1; echo left", &["left"])]
#[case::endless("yes | head -c 300000000 | tail -c 2000000; echo done", &["done", "left out"])]
#[case::no_such("nosuchprogram", &["exit code 127", "not found"])]
fn odd_commands_end_with_one_result(#[case] command: &str, #[case] told: &[&str]) {
    let workspace = Workspace::new();
    let mark = format!("MARK_{}", uuid::Uuid::now_v7().simple());
    let ran = bash(&workspace, &line(command), &json!({}), &["--yes"]).env(&mark, "1").run();
    for words in told {
        assert!(ran.transcript().contains(words), "{words}: {}", ran.transcript());
    }
    assert!(ran.stdout.chars().all(|c| !c.is_control() || c == '\n' || c == '\t'), "{:?}", ran.stdout);
    let alive = fs::read_dir("/proc").unwrap().flatten().filter(|process| {
        fs::read(process.path().join("environ"))
            .is_ok_and(|environ| environ.windows(mark.len()).any(|at| at == mark.as_bytes()))
            && fs::read(process.path().join("cmdline")).is_ok_and(|line| !line.is_empty())
    });
    assert_eq!(alive.count(), 0, "nothing is left of it");
}

#[rstest]
#[case::nul(line("echo a\u{0}b"), "no NUL characters")]
#[case::too_long(line(&"x".repeat(1_000_000)), "write a script")]
#[case::password(json!({"command": "printf 'Password: '; sleep 1000", "timeout": 300}), "waits for an answer")]
#[case::deaf_in_time(json!({"command": "sleep 1000 & trap '' TERM; wait", "timeout": 300}), "it was ended")]
fn what_cannot_be_done_is_one_error(#[case] input: Value, #[case] told: &str) {
    let workspace = Workspace::new();
    let ran = bash(&workspace, &input, &json!({"bash": {"killOnTimeout": true}}), &["--yes"]).run();
    assert!(ran.code != 0 && ran.stdout.is_empty() && ran.stderr.contains(told), "{}", ran.transcript());
}

#[test]
fn settings_say_how_commands_run() {
    let workspace = Workspace::new();
    let show = line("echo [$MY_TOKEN]");
    let secret =
        |settings: &Value| bash(&workspace, &show, settings, &["--yes"]).env("MY_TOKEN", "t").run().stdout;
    assert_eq!(secret(&json!({})), "[]\n");
    assert_eq!(secret(&json!({"bash": {"keepSecrets": true}})), "[t]\n");
    let slow = line("while :; do sleep 0.05; done");
    for settings in [json!({"defaultTimeoutMs": 200}), json!({"maxTimeoutMs": 200})] {
        let settings = json!({ "bash": settings });
        let ran = bash(&workspace, &slow, &settings, &["--yes"]).run();
        assert!(ran.stdout.contains("not done after"), "{}", ran.transcript());
    }
    let bare = bash(&workspace, &line("echo hi"), &json!({}), &["--yes"]).env("PATH", "/nowhere").run();
    assert!(
        bare.code != 0 && bare.stderr.contains("there is no program bash: install it"),
        "{}",
        bare.transcript()
    );
}

#[test]
fn a_query_of_the_network_runs_nothing_of_the_repository() {
    if lacks(&["bubblewrap"], &["git"]) {
        return;
    }
    let workspace = Workspace::new();
    let script = "#!/bin/sh\necho EVIL >&2\n";
    fs::write(workspace.path("evil.sh"), script).unwrap();
    fs::set_permissions(workspace.path("evil.sh"), fs::Permissions::from_mode(0o755)).unwrap();
    let git = |args: &[&str]| {
        let ran = Command::new("git").args(args).current_dir(workspace.project()).output().unwrap();
        assert!(ran.status.success(), "{ran:?}");
    };
    git(&["init", "-q"]);
    git(&["remote", "add", "origin", "ssh://git@127.0.0.1:1/x"]);
    git(&["remote", "add", "other", "ext::./evil.sh"]);
    git(&["config", "core.sshCommand", "./evil.sh"]);
    git(&["config", "protocol.ext.allow", "always"]);
    // What git is asked about itself it answers as ever; beside anything else that uses it, it does not.
    let told = bash(&workspace, &line("git config --get core.sshCommand | cat"), &json!({}), &[]).run();
    assert_eq!(told.stdout.trim(), "./evil.sh", "{}", told.transcript());
    let told = line("git config --get core.sshCommand; git status");
    let told = bash(&workspace, &told, &json!({}), &[]).run();
    assert!(told.stdout.starts_with("false"), "{}", told.transcript());
    let settings = json!({ "permissions": { "networkReads": "allow" } });
    for remote in ["origin", "other"] {
        let ran = bash(&workspace, &line(&format!("git ls-remote {remote}")), &settings, &["--json"]).run();
        assert!(ran.stdout.contains("writes nothing, the network as allowed"), "{}", ran.stdout);
        assert!(!ran.stdout.contains("EVIL"), "{}", ran.stdout);
    }
}

#[rstest]
#[case::external("diff.external", "f", "git diff", "was not run")]
#[case::external_is_left_out("diff.external", "f", "git diff --no-ext-diff", "+two")]
#[case::driver("diff.x.command", "f diff=x", "git diff", "was not run")]
#[case::converter("diff.x.textconv", "f diff=x", "git log -p -1", "+one")]
#[case::filter("filter.x.clean", "f filter=x", "git diff", "+two")]
#[case::filter_process("filter.x.process", "f filter=x", "git status --short", " M f")]
#[case::below("diff.x.textconv", "f diff=x", "cd sub/deep && git diff", "+two")]
#[case::included("include.path", "f diff=x", "git -C sub/deep diff", "+two")]
fn git_that_nobody_was_asked_about_runs_no_program_of_the_repository(
    #[case] key: &str,
    #[case] attributes: &str,
    #[case] command: &str,
    #[case] shown: &str,
) {
    let workspace = Workspace::new();
    let at = if command.contains("sub/deep") { "sub/" } else { "" };
    workspace.write(&format!("{at}f"), "one\n");
    workspace.write(&format!("{at}deep/empty"), "");
    workspace.write(&format!("{at}.gitattributes"), attributes);
    workspace.write(&format!("{at}evil"), "#!/bin/sh\necho EVIL\n");
    workspace.write(&format!("{at}more"), "[diff \"x\"]\n\ttextconv = ./evil\n");
    let root = workspace.project().join(at);
    fs::set_permissions(root.join("evil"), fs::Permissions::from_mode(0o755)).unwrap();
    let git = |args: &[&str]| {
        let ran = Command::new("git").args(args).current_dir(&root).output().unwrap();
        assert!(ran.status.success(), "{ran:?}");
        String::from_utf8_lossy(&ran.stdout).into_owned()
    };
    git(&["init", "-q"]);
    git(&["add", "f"]);
    git(&["-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "first"]);
    workspace.write(&format!("{at}f"), "two\n");
    let value = if key == "include.path" { root.join("more") } else { root.join("evil") };
    git(&["config", key, value.to_str().unwrap()]);
    let ran = bash(&workspace, &line(command), &json!({}), &[]).run();
    assert!(!ran.transcript().contains("EVIL") && ran.transcript().contains(shown), "{}", ran.transcript());
    // A repository that lies there as plain files says nothing.
    git(&["clone", "-q", "--bare", ".", "bare"]);
    fs::copy(root.join(".git/config"), root.join("bare/config")).unwrap();
    fs::write(root.join("bare/info/attributes"), attributes).unwrap();
    let ran = bash(&workspace, &line(&format!("cd {at}bare && git log -p -1")), &json!({}), &[]).run();
    assert!(!ran.transcript().contains("EVIL") && ran.code != 0, "{}", ran.transcript());
}
