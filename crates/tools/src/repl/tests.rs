use std::sync::Arc;

use gripper_runtime::{CallResult, Toolbox};
use rstest::rstest;
use serde_json::json;

use crate::bash::tests::{call, toolbox};

async fn eval(toolbox: &Arc<Toolbox>, language: &str, code: &str) -> Arc<CallResult> {
    call(toolbox, "REPL", json!({"language": language, "code": code, "timeout": 20_000})).await
}

#[rstest]
#[case::python("python", "def double(x): return 2 * x\nprint('out')", "double(21)", "=> 42")]
#[case::javascript("javascript", "const double = (x) => 2 * x; console.log('out')", "double(21)", "=> 42")]
#[tokio::test]
async fn variables_stay(
    #[case] language: &str,
    #[case] first: &str,
    #[case] then: &str,
    #[case] value: &str,
) {
    let folder = tempfile::tempdir().unwrap();
    let toolbox = toolbox(folder.path(), |_| {});
    assert_eq!(eval(&toolbox, language, first).await.to_string(), "out");
    assert_eq!(eval(&toolbox, language, then).await.to_string(), value);
    let other = json!({"language": language, "code": then, "session": "other"});
    let unknown = call(&toolbox, "REPL", other).await;
    assert!(unknown.is_error && unknown.to_string().contains("double"), "{unknown}");
}

#[rstest]
#[case::raised("python", "x = 1\n1 / 0", "ZeroDivisionError: division by zero", true)]
#[case::place("python", "\n\nraise ValueError('no')", "line 3", true)]
#[case::syntax("python", "def", "SyntaxError", true)]
#[case::nothing("python", "x = 1", "(no output)", false)]
#[case::no_input("python", "import sys; sys.stdin.read()", "=> ''", false)]
#[case::order(
    "python",
    "import os, sys\nprint(1); os.system('echo 2'); print(3, file=sys.stderr)",
    "1\n2\n3",
    false
)]
#[case::flood("python", "print('y\\n' * 2_000_000)", "are left out", false)]
#[case::thrown("javascript", "throw new TypeError('no')", "TypeError: no", true)]
#[case::syntax_too("javascript", "let = ;", "SyntaxError", true)]
#[case::awaits("javascript", "await Promise.resolve({ a: 1 })", "=> { a: 1 }", false)]
#[case::required("javascript", "require('path').basename('/a/b')", "=> 'b'", false)]
#[case::parallel(
    "javascript",
    "setTimeout(() => console.log('late'), 1); await new Promise((r) => setTimeout(r, 50)); return 7",
    "late\n=> 7",
    false
)]
#[tokio::test]
async fn code_is_answered(
    #[case] language: &str,
    #[case] code: &str,
    #[case] said: &str,
    #[case] failed: bool,
) {
    let folder = tempfile::tempdir().unwrap();
    let told = eval(&toolbox(folder.path(), |_| {}), language, code).await;
    assert!(told.to_string().contains(said), "{told}");
    assert_eq!(told.is_error, failed, "{told}");
    assert!(told.to_string().chars().count() < 32_000);
}

#[rstest]
#[case::loops("python", "while True: pass", true)]
#[case::sleeps("python", "import time; time.sleep(600)", true)]
#[case::stubborn(
    "python",
    "import signal\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\nwhile True: pass",
    false
)]
#[case::loops_too("javascript", "while (true) {}", true)]
#[case::awaits("javascript", "await new Promise(() => setTimeout(() => {}, 1e6))", true)]
#[tokio::test]
async fn what_takes_too_long_is_interrupted(#[case] language: &str, #[case] code: &str, #[case] kept: bool) {
    let folder = tempfile::tempdir().unwrap();
    let toolbox = toolbox(folder.path(), |_| {});
    eval(&toolbox, language, "kept = 5").await;
    let late = call(&toolbox, "REPL", json!({"language": language, "code": code, "timeout": 500})).await;
    assert_eq!(late.error_code.unwrap().name(), "timeout", "{late}");
    let words = if kept { "its variables are kept" } else { "its variables are gone" };
    assert!(late.to_string().contains(words), "{late}");
    let after = eval(&toolbox, language, "kept").await;
    assert_eq!(after.is_error, !kept, "{after}");
}

#[rstest]
#[case::python("python", "import os; os._exit(3)", "1 + 1")]
#[case::leaves("python", "exit()", "1 + 1")]
#[case::javascript("javascript", "process.exit(3)", "1 + 1")]
#[tokio::test]
async fn one_that_dies_is_replaced(#[case] language: &str, #[case] dies: &str, #[case] next: &str) {
    let folder = tempfile::tempdir().unwrap();
    let toolbox = toolbox(folder.path(), |_| {});
    let dead = eval(&toolbox, language, dies).await;
    assert!(dead.is_error && dead.to_string().contains("the interpreter has ended"), "{dead}");
    assert_eq!(eval(&toolbox, language, next).await.to_string(), "=> 2");
}

#[tokio::test]
async fn there_are_not_too_many_and_a_missing_one_is_said() {
    let folder = tempfile::tempdir().unwrap();
    let here = toolbox(folder.path(), |_| {});
    let named = |name: usize| json!({"language": "python", "code": "1", "session": name.to_string()});
    for name in 0..8 {
        assert_eq!(call(&here, "REPL", named(name)).await.to_string(), "=> 1");
    }
    let ninth = call(&here, "REPL", named(8)).await;
    assert!(ninth.is_error && ninth.to_string().contains("there are 8 interpreters already"), "{ninth}");
    let bare = toolbox(folder.path(), |settings| settings.env = vec![("PATH".into(), "/nowhere".into())]);
    let missing = eval(&bare, "javascript", "1").await;
    assert!(missing.is_error && missing.to_string().contains("there is no program node"), "{missing}");
}
