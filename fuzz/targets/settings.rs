//! Any text as the settings of a project that nobody vouches for: no panic, and it lets nothing more through. The same
//! text as a change of a file, and given on the command line.
#![no_main]

use std::{fs, path::PathBuf, sync::LazyLock};

use gripper_permissions::{Mode, RuleList, Scope};
use gripper_runtime::{
    environment::Environment,
    settings::{Given, Kind, Sources, check_edit, load},
};
use libfuzzer_sys::fuzz_target;

static PROJECT: LazyLock<PathBuf> = LazyLock::new(|| {
    let folder = std::env::temp_dir().join(format!("gripper-fuzz-{}", std::process::id()));
    fs::create_dir_all(folder.join(".gripper")).expect("a folder");
    folder
});

// The first byte says what kind of file it is.
fuzz_target!(|text: &str| {
    let first = usize::from(text.bytes().next().unwrap_or_default()) % Kind::ALL.len();
    let (kind, text) = (Kind::ALL[first], text.get(1..).unwrap_or_default());
    let file = PROJECT.join(
        [".gripper/settings.json", ".gripper/permissions.json", ".gripper/hooks.json", ".mcp.json"][first],
    );
    fs::write(&file, text).expect("a file");
    let mut sources = Sources::discover(&Environment::default(), &PROJECT, None);
    let loaded = load(&sources);
    fs::remove_file(&file).expect("it was there");
    let shared = |scope: Scope| matches!(scope, Scope::Project | Scope::Local);
    let allowed = loaded.policy.rules.list(RuleList::Allow).iter().find(|rule| shared(rule.source.scope));
    assert!(allowed.is_none(), "{text:?} allows {allowed:?}");
    assert!(
        !matches!(loaded.policy.mode, Mode::BypassPermissions | Mode::AcceptEdits),
        "{:?}",
        loaded.policy.mode
    );
    check_edit(kind, "{}", text).ok();
    sources.given = Some(Given::Text(text.to_owned()));
    load(&sources);
});
