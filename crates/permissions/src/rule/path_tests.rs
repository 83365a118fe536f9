use std::path::Path;

use rstest::rstest;

use super::{Anchors, PathPattern, PathSet};

fn anchors() -> Anchors {
    Anchors {
        root: "/home/dev/project".into(),
        home: "/home/dev".into(),
        directories: vec!["/home/dev/project/pkg".into()],
        fold_case: false,
    }
}

fn fits(pattern: &str, path: &str, allow: bool) -> bool {
    let pattern = PathPattern::new(pattern);
    let set = PathSet::new([(7, Some(&pattern), false)].into_iter(), &anchors(), allow, true);
    set.find(Path::new(path), false) == Some(7)
}

#[rstest]
#[case("//srv/x/**", "/srv/x/a/b", true)]
#[case("//srv/x/**", "/srv/xy", false)]
#[case("~/notes/**", "/home/dev/notes/a.md", true)]
#[case("/src/**", "/home/dev/project/src/a", true)]
#[case("/src/**", "/home/dev/project/pkg/src/a", false)]
#[case("src/**", "/home/dev/project/pkg/src/a", true)]
#[case("./src/*.rs", "/home/dev/project/pkg/src/a.rs", true)]
#[case("./src/*.rs", "/home/dev/project/pkg/src/b/a.rs", false)]
#[case("../shared/**", "/home/dev/project/shared/x", true)]
#[case(".env", "/home/dev/project/pkg/deep/.env", true)]
#[case("*.key", "/home/dev/project/pkg/a/b/c.key", true)]
#[case("build/", "/home/dev/project/pkg/build/out", true)]
#[case("src", "/home/dev/project/pkg/src/any/thing", true)]
#[case("private-*/config.json", "/home/dev/project/pkg/private/config.json", false)]
#[case("a\\*", "/home/dev/project/pkg/a*", true)]
#[case("a\\*", "/home/dev/project/pkg/ab", false)]
fn patterns_start_where_their_spelling_says(
    #[case] pattern: &str,
    #[case] path: &str,
    #[case] expected: bool,
) {
    assert_eq!(fits(pattern, path, true), expected);
    assert_eq!(fits(pattern, path, false), expected);
}

#[test]
fn a_mere_name_forbids_anywhere_and_allows_here() {
    assert!(fits(".env", "/elsewhere/.env", false));
    assert!(!fits(".env", "/elsewhere/.env", true));
}

#[test]
fn folders_with_odd_names_are_taken_as_they_are() {
    let odd = Anchors { directories: vec!["/w/[a] *b".into()], ..anchors() };
    let pattern = PathPattern::new("x/*.rs");
    let set = PathSet::new([(0, Some(&pattern), false)].into_iter(), &odd, true, true);
    assert!(set.find(Path::new("/w/[a] *b/x/y.rs"), false).is_some());
    assert!(set.find(Path::new("/w/a b/x/y.rs"), false).is_none());
}
