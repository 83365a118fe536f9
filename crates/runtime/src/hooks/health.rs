//! What is wrong with a hook, found without running it.

use std::{ffi::OsString, path::Path};

use gripper_process::find_program;

use super::config::{Action, Entry};

/// Words of the shell itself, for which there is no program.
const SHELL: [&str; 20] = [
    "if", "for", "while", "until", "case", "[[", "{", "cd", "exit", "export", "set", "source", ".", ":",
    "exec", "eval", "trap", "read", "local", "unset",
];

/// What would keep a hook from running here, if anything.
pub fn ailment(entry: &Entry, cwd: &Path, root: &Path, env: &[(OsString, OsString)]) -> Option<String> {
    if let Some(trouble) = &entry.trouble {
        return Some(trouble.clone());
    }
    let Action::Command { command, args, .. } = &entry.action else { return None };
    let program = if args.is_some() { command.as_str() } else { command.split_whitespace().next()? };
    let mut program = program.replace('"', "");
    for name in ["GRIPPER_PROJECT_DIR", "CLAUDE_PROJECT_DIR"] {
        for spelling in [format!("${{{name}}}"), format!("${name}")] {
            program = program.replace(&spelling, &root.to_string_lossy());
        }
    }
    let plain = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | '/' | '+');
    if args.is_none() && (SHELL.contains(&program.as_str()) || !program.chars().all(plain)) {
        return None;
    }
    find_program(program.as_ref(), cwd, env).err().map(|error| error.to_string())
}
