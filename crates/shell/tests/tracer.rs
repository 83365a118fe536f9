//! Commands that are judged read-only really only read: each is run under strace, and everything that it opens,
//! connects to or starts is held against the judgement.
//!
//! Programs that are not installed are skipped. Git is run in the hardened form in which Gripper runs it, because only
//! that form is judged read-only.
#![cfg(target_os = "linux")]
#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a failed expectation is how tests fail"
)]

#[path = "tracer/events.rs"]
mod events;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use events::Event;
use gripper_shell::{Analysis, Surroundings, Verdict, analyze};
use tempfile::TempDir;

/// So few would mean that the machine lacks what the list is about, and the test proves nothing.
const ENOUGH: usize = 80;

const PATH: &str = "/usr/local/bin:/usr/bin:/bin:/usr/local/sbin:/usr/sbin:/sbin";

/// The hardened form: nothing a repository says can start a program or write a file.
const GIT: &[(&str, &str)] = &[
    ("GIT_OPTIONAL_LOCKS", "0"),
    ("GIT_PAGER", "cat"),
    ("GIT_CONFIG_NOSYSTEM", "1"),
    ("GIT_TERMINAL_PROMPT", "0"),
    ("GIT_CONFIG_COUNT", "2"),
    ("GIT_CONFIG_KEY_0", "core.fsmonitor"),
    ("GIT_CONFIG_VALUE_0", ""),
    ("GIT_CONFIG_KEY_1", "core.hooksPath"),
    ("GIT_CONFIG_VALUE_1", "/dev/null"),
];

/// Programs that are made of others, none of which can do more than they.
const HELPERS: &[(&str, &[&str])] = &[("tar", &["gzip"]), ("zcat", &["gzip"])];

/// A project with a small repository in it, and room for the tracer.
struct Scratch {
    folder: TempDir,
}

impl Scratch {
    fn new() -> Self {
        let scratch = Self { folder: tempfile::tempdir().expect("a scratch folder") };
        let project = scratch.project();
        for folder in ["src", "docs", "../home", "../traces"] {
            fs::create_dir_all(project.join(folder)).expect("a folder");
        }
        for (name, text) in [
            ("README.md", "# Sample\n\nA project to read.\n"),
            ("notes.txt", "one first\ntwo second\nthree third\nfour fourth\n"),
            ("numbers.txt", "10\n20\n20\n30\n"),
            ("table.csv", "name,size\nleft,3\nright,1\n"),
            ("data.json", "{\"items\": [{\"name\": \"left\"}, {\"name\": \"right\"}]}\n"),
            ("src/main.c", "int main(void) {\n\treturn 0;\n}\n"),
            ("src/lib.c", "int twice(int x) {\n\treturn x * 2;\n}\n"),
            ("docs/guide.md", "Read the README.\n"),
        ] {
            fs::write(project.join(name), text).expect("a file");
        }
        scratch.prepare(
            "git init -q . && git add . && git commit -qm first && git tag v1 && echo more >> README.md \
             && git commit -qam second && echo yet more >> README.md && git branch other",
        );
        scratch.prepare("tar -cf archive.tar docs && tar -czf archive.tar.gz docs");
        scratch
    }

    fn project(&self) -> PathBuf {
        self.folder.path().join("project")
    }

    fn home(&self) -> PathBuf {
        self.folder.path().join("home")
    }

    fn environment(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        command.env_clear().env("PATH", PATH).env("HOME", self.home()).env("LC_ALL", "C.UTF-8");
        command.current_dir(self.project()).stdin(Stdio::null()).stdout(Stdio::null());
        command
    }

    fn prepare(&self, script: &str) {
        let mut command = self.environment("bash");
        for role in ["AUTHOR", "COMMITTER"] {
            command
                .env(format!("GIT_{role}_NAME"), "Dev")
                .env(format!("GIT_{role}_EMAIL"), "dev@example.org");
        }
        let done = command.args(["-c", script]).output().expect("bash");
        assert!(done.status.success(), "{script}: {}", String::from_utf8_lossy(&done.stderr));
    }

    fn analysis(&self, line: &str) -> Analysis {
        let name = |path: PathBuf| path.to_str().expect("a plain path").to_owned();
        analyze(line, &Surroundings::new(name(self.project()), name(self.home())))
    }

    /// Runs `line` under the tracer and returns what it did.
    fn trace(&self, line: &str) -> Vec<Event> {
        let traces = self.folder.path().join("traces");
        fs::remove_dir_all(&traces).expect("the old traces");
        fs::create_dir(&traces).expect("a folder for traces");
        let mut command = self.environment("strace");
        command.envs(GIT.iter().copied());
        // One file for each process: no line is cut in two by another process.
        command.args([
            "-ff",
            "-qq",
            "-s",
            "4096",
            "-e",
            "trace=%file,%network,%process",
            "-e",
            "signal=none",
            "-o",
        ]);
        command.arg(traces.join("t")).args(["bash", "--norc", "--noprofile", "-c", line]);
        let done = command.stderr(Stdio::piped()).output().expect("strace is needed: install it");
        let mut lines = Vec::new();
        for entry in fs::read_dir(&traces).expect("the traces") {
            let text = fs::read(entry.expect("a trace").path()).expect("a trace");
            lines.extend(String::from_utf8_lossy(&text).lines().map(str::to_owned));
        }
        assert!(!lines.is_empty(), "strace traced nothing: {}", String::from_utf8_lossy(&done.stderr));
        lines.iter().filter_map(|line| events::event(line)).collect()
    }
}

fn commands() -> impl Iterator<Item = &'static str> {
    include_str!("tracer/commands.txt").lines().filter(|line| !line.is_empty() && !line.starts_with("# "))
}

/// The names of the programs the analysis found in a line.
fn programs(analysis: &Analysis) -> Vec<String> {
    let names = analysis.parts().iter().filter_map(|part| part.argv.first()?.literal());
    names.map(|name| name.rsplit('/').next().unwrap_or(name).to_owned()).collect()
}

/// Whether `path` is one of the programs in `named`, or belongs to one.
fn expected(path: &str, named: &[String]) -> bool {
    let program = path.rsplit('/').next().unwrap_or(path);
    let helps =
        |name: &String| HELPERS.iter().any(|(whole, parts)| whole == name && parts.contains(&program));
    named.iter().any(|name| name == program || helps(name))
}

fn installed(name: &str) -> bool {
    const BUILTINS: &[&str] =
        &["cd", "command", "echo", "false", "printf", "pwd", "read", "test", "true", "type", "["];
    BUILTINS.contains(&name) || PATH.split(':').any(|folder| Path::new(folder).join(name).exists())
}

/// Where git keeps the programs that it is made of.
fn git_helpers() -> String {
    let said = Command::new("git").arg("--exec-path").output().expect("git");
    String::from_utf8_lossy(&said.stdout).trim().to_owned()
}

#[test]
fn what_is_judged_read_only_only_reads() {
    let scratch = Scratch::new();
    let helpers = git_helpers();
    let mut problems = Vec::new();
    let mut ran = 0;
    for line in commands() {
        let analysis = scratch.analysis(line);
        if analysis.verdict() == Verdict::NotReadOnly {
            problems.push(format!("{line}: not judged read-only"));
            continue;
        }
        let named = programs(&analysis);
        if !named.iter().all(|name| installed(name)) {
            continue;
        }
        ran += 1;
        let mut events = scratch.trace(line);
        // The first start is that of bash itself.
        let shell =
            events.iter().position(|event| matches!(event, Event::Ran(path) if path.ends_with("/bash")));
        shell.map(|at| events.remove(at));
        for event in events {
            match event {
                Event::Ran(path) if path.starts_with(&helpers) => {}
                Event::Ran(path) if expected(&path, &named) => {}
                Event::Ran(path) => {
                    problems.push(format!("{line}: runs {path}, which the analysis did not name"))
                }
                Event::Changed(call) | Event::Connected(call) => problems.push(format!("{line}: {call}")),
            }
        }
    }
    assert!(problems.is_empty(), "{}", problems.join("\n"));
    assert!(ran >= ENOUGH, "only {ran} commands could be run");
}

/// The tracer itself: it must see what commands do that are not read-only.
#[test]
fn the_tracer_sees_writing_connecting_and_starting() {
    let scratch = Scratch::new();
    let changes = |event: &Event| matches!(event, Event::Changed(_));
    for line in [
        "echo x > made",
        "sort -o sorted notes.txt",
        "touch README.md",
        "mkdir folder",
        "mv notes.txt moved.txt",
        "chmod +x moved.txt",
        "ln -s moved.txt linked",
        "sed -i s/one/two/ moved.txt",
        "rm moved.txt",
        "git add README.md",
        "cat < README.md & echo x >> made & wait",
    ] {
        let events = scratch.trace(line);
        assert!(events.iter().any(changes), "{line}: {events:?}");
    }
    let events = scratch.trace("exec 3<>/dev/tcp/127.0.0.1/1");
    assert!(events.iter().any(|event| matches!(event, Event::Connected(_))), "{events:?}");
    let events = scratch.trace("(ls; find . -exec id \\;)");
    for name in ["ls", "find", "id"] {
        let runs = |event: &Event| matches!(event, Event::Ran(path) if path.rsplit('/').next() == Some(name));
        assert!(events.iter().any(runs), "{name}: {events:?}");
    }
    let events = scratch.trace("cat README.md >/dev/null");
    assert!(!events.iter().any(changes), "{events:?}");
}
