use std::fs::File;

use rstest::rstest;
use tempfile::TempDir;

use super::similar_names;

#[rstest]
#[case::case_before_extension_before_slip("main.rs", &["Main.rs", "main.py", "mian.rs"], &["Main.rs", "main.py", "mian.rs"])]
#[case::extension("config.yaml", &["config.toml", "other.yaml"], &["config.toml"])]
#[case::slip("pipelnie.rs", &["pipeline.rs", "lib.rs"], &["pipeline.rs"])]
#[case::at_most_three("a1", &["a1.a", "a1.b", "a1.c", "a1.d"], &["a1.a", "a1.b", "a1.c"])]
#[case::nothing_alike("main.rs", &["README", "LICENSE"], &[])]
#[case::empty_folder("main.rs", &[], &[])]
#[case::beyond_ascii("grüsse.txt", &["grüße.txt"], &["grüße.txt"])]
fn names_alike(#[case] wanted: &str, #[case] present: &[&str], #[case] expected: &[&str]) {
    let folder = TempDir::new().unwrap();
    for name in present {
        File::create(folder.path().join(name)).unwrap();
    }
    assert_eq!(similar_names(&folder.path().join(wanted)), expected);
}

#[test]
fn folders_are_not_offered() {
    let folder = TempDir::new().unwrap();
    std::fs::create_dir(folder.path().join("main.d")).unwrap();
    assert_eq!(similar_names(&folder.path().join("main.rs")), Vec::<String>::new());
}

#[test]
fn a_missing_folder_has_no_names() {
    assert_eq!(similar_names("/no/such/folder/main.rs".as_ref()), Vec::<String>::new());
}

#[test]
fn long_names_count_only_when_equal_but_for_case_or_extension() {
    let folder = TempDir::new().unwrap();
    let long = "n".repeat(100);
    for name in [format!("{long}x"), format!("{long}.rs")] {
        File::create(folder.path().join(name)).unwrap();
    }
    assert_eq!(similar_names(&folder.path().join(format!("{long}.py"))), [format!("{long}.rs")]);
}
