//! Real children that crash, hang, fork, flood and hide.

use std::{
    fs,
    path::Path,
    time::{Duration, Instant},
};

use tempfile::TempDir;
use tokio_util::sync::CancellationToken;

use crate::{Ended, NotFound, Spec, StartError, Status, find_program, run};

pub(crate) fn spec(line: &str) -> Spec {
    let path = ("PATH".into(), std::env::var_os("PATH").unwrap());
    Spec { grace: Duration::from_millis(100), ..Spec::shell(line, "/", vec![path]) }
}

async fn ended(spec: Spec) -> Ended {
    run(spec, &CancellationToken::new()).await.unwrap()
}

/// Waits until the file holds a whole line, and reads it as a process id.
pub(crate) async fn pid_in(file: &Path) -> i32 {
    let begin = Instant::now();
    loop {
        if let Ok(text) = fs::read_to_string(file)
            && text.ends_with('\n')
        {
            return text.trim().parse().unwrap();
        }
        assert!(begin.elapsed() < Duration::from_secs(60), "the child never wrote its id");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// Neither running nor a zombie that nobody reaped.
pub(crate) fn gone(pid: i32) -> bool {
    !Path::new(&format!("/proc/{pid}")).exists()
}

#[tokio::test]
async fn output_exit_code_and_input() {
    let done = ended(Spec { stdin: b"in\n".to_vec(), ..spec("cat; echo err >&2; exit 3") }).await;
    assert_eq!(done.status, Status::Exited(3));
    assert_eq!((&*done.stdout.text(), &*done.stderr.text()), ("in\n", "err\n"));
}

#[tokio::test]
async fn a_crash_is_told_by_its_signal() {
    assert_eq!(ended(spec("kill -SEGV $$")).await.status, Status::Signalled(11));
}

#[tokio::test]
async fn the_environment_is_what_was_given() {
    let mut only = spec("echo $A-$HOME-${GRIPPER_CHILD:+marked}");
    only.env.push(("A".into(), "1".into()));
    assert_eq!(ended(only).await.stdout.text(), "1--marked\n");
}

#[tokio::test]
async fn without_a_shell_nothing_is_expanded() {
    let mut plain = Spec::exec("echo", vec!["$HOME;".into(), "*".into()], "/");
    plain.env = spec("").env;
    assert_eq!(ended(plain).await.stdout.text(), "$HOME; *\n");
}

#[tokio::test]
async fn a_hang_ends_in_time_also_when_it_ignores_the_request() {
    for line in ["sleep 600", "trap '' TERM; while :; do sleep 0.01; done"] {
        let done = ended(Spec { limit: Duration::from_millis(200), ..spec(line) }).await;
        assert_eq!(done.status, Status::TimedOut, "{line}");
    }
}

#[tokio::test]
async fn one_that_is_asked_to_end_may_say_goodbye() {
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("pid");
    let line = "trap 'echo bye; exit 0' TERM; echo $$ > $1; while :; do sleep 0.01; done";
    let mut polite = spec(line);
    polite.args.push(file.clone().into());
    polite.grace = Duration::from_secs(60);
    let cancel = CancellationToken::new();
    let (done, ()) = tokio::join!(run(polite, &cancel), async {
        pid_in(&file).await;
        cancel.cancel();
    });
    assert_eq!(done.unwrap().stdout.text(), "bye\n");
}

#[tokio::test]
async fn a_cancelled_child_ends() {
    let cancel = CancellationToken::new();
    cancel.cancel();
    assert_eq!(run(spec("sleep 600"), &cancel).await.unwrap().status, Status::Cancelled);
}

#[tokio::test]
async fn a_flood_is_drained_and_only_its_head_kept() {
    let done = ended(Spec { keep: 1000, ..spec("head -c 100000000 /dev/zero; echo x >&2") }).await;
    assert_eq!((done.status, done.stdout.bytes.len()), (Status::Exited(0), 1000));
    assert_eq!(done.stdout.dropped, 100_000_000 - 1000);
    assert!(done.stdout.bytes.capacity() < 100_000, "memory stays flat");
}

#[tokio::test]
async fn input_that_is_never_read_blocks_nothing() {
    let done = ended(Spec { stdin: vec![b'x'; 1 << 20], ..spec("echo done") }).await;
    assert_eq!((done.status, &*done.stdout.text()), (Status::Exited(0), "done\n"));
}

/// Each leaves a process behind in its own way; `$1` is where that process writes its id.
const LEAVERS: [&str; 4] = [
    "sh -c 'echo $$ > $1; exec sleep 600' x $1 &",
    "setsid sh -c 'echo $$ > $1; exec sleep 600' x $1 >/dev/null 2>&1 &",
    "(setsid -f sh -c 'trap \"\" TERM; echo $$ > $1; while :; do sleep 0.05; done' x $1 >/dev/null 2>&1)",
    "env -i PATH=$PATH sh -c 'echo $$ > $1; exec sleep 600' x $1 >/dev/null 2>&1 &",
];

fn leaving(line: &str, file: &Path, then: &str) -> Spec {
    let file = file.display();
    spec(&format!(
        "set -- {file}; {line} while ! [ -s {file} ]; do sleep 0.01; done; {then}",
        line = match line {
            background if background.ends_with('&') => background.to_owned(),
            other => format!("{other};"),
        }
    ))
}

#[tokio::test]
async fn what_stays_behind_is_ended() {
    for line in LEAVERS {
        let folder = TempDir::new().unwrap();
        let file = folder.path().join("pid");
        let done = ended(leaving(line, &file, "exit 0")).await;
        assert_eq!(done.status, Status::Exited(0), "{line}");
        assert!(gone(pid_in(&file).await), "{line}");
    }
}

#[tokio::test]
async fn a_dropped_call_leaves_nothing() {
    for line in LEAVERS {
        let folder = TempDir::new().unwrap();
        let file = folder.path().join("pid");
        let hanging = leaving(line, &file, "sleep 600");
        let task = tokio::spawn(async move { ended(hanging).await });
        let pid = pid_in(&file).await;
        task.abort();
        assert!(task.await.unwrap_err().is_cancelled());
        assert!(gone(pid), "{line}");
    }
}

#[tokio::test]
async fn programs_that_cannot_run_are_named() {
    let folder = TempDir::new().unwrap();
    fs::write(folder.path().join("plain.sh"), "#!/bin/sh\n").unwrap();
    let find = |name: &str| find_program(name.as_ref(), folder.path(), &spec("").env);
    assert_eq!(find("no-such-thing"), Err(NotFound::Missing("no-such-thing".into())));
    assert_eq!(find("./no.sh"), Err(NotFound::Missing("./no.sh".into())));
    assert_eq!(find("./plain.sh"), Err(NotFound::NotExecutable("./plain.sh".into())));
    assert_eq!(find(""), Err(NotFound::Missing("".into())));
    assert!(find("sh").unwrap().is_absolute());
    let nowhere = Spec { cwd: "/no/such/folder".into(), ..spec("true") };
    let error = run(nowhere, &CancellationToken::new()).await.unwrap_err();
    assert!(matches!(error, StartError::Program(NotFound::NoFolder(_))), "{error}");
}
