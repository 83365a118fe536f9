use std::os::unix::fs::PermissionsExt;

use serde_json::json;

use crate::bash::tests::{call, toolbox};

#[tokio::test]
async fn it_is_there_only_with_its_program_and_no_rule_for_bash_allows_it() {
    let folder = tempfile::tempdir().unwrap();
    let input = json!({"command": "echo hello"});
    let none = toolbox(folder.path(), |settings| settings.env = vec![("PATH".into(), "/nowhere".into())]);
    let absent = call(&none, "PowerShell", input.clone()).await;
    assert!(absent.to_string().contains("no pwsh on the PATH"), "{absent}");
    let program = folder.path().join("pwsh");
    std::fs::write(&program, "#!/bin/sh\necho ran\n").unwrap();
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
    let path = folder.path().as_os_str().to_owned();
    let there = toolbox(folder.path(), |settings| settings.env = vec![("PATH".into(), path)]);
    // The rule `Bash` of this toolbox allows every command, and `echo` only reads.
    let asked = call(&there, "PowerShell", input).await;
    assert_eq!(asked.error_code.unwrap().name(), "denied", "{asked}");
}
