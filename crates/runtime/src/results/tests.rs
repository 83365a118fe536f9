use std::fs;
use std::time::{Duration, SystemTime};

use proptest::prelude::{
    Just, Strategy as Generator, any, prop_assert, prop_assert_eq, prop_oneof, proptest,
};
use rstest::rstest;
use tempfile::TempDir;

use super::window::{NOTE_CHARS, cut};
use super::{Bounded, MIN_WINDOW, ResultsStore, StoreLimits, Strategy, safe_name, share};

fn store() -> (TempDir, ResultsStore) {
    let dir = TempDir::new().unwrap();
    let store = ResultsStore::new(dir.path().join("s1").join("results"), StoreLimits::default());
    (dir, store)
}

fn numbered(lines: usize) -> String {
    (1..=lines).map(|n| format!("line {n}\n")).collect()
}

#[rstest]
#[case::start(Strategy::KeepStart, "line 1\nline 2\nline 3\n[left out: lines 4-9 of 9, 42 characters. ", "]")]
#[case::end(Strategy::KeepEnd, "[left out: lines 1-6 of 9, 42 characters. ", "]\nline 7\nline 8\nline 9\n")]
#[case::both(Strategy::KeepBoth, "line 1\n[left out: lines 2-8 of 9, 49 characters. ", "]\nline 9\n")]
fn windows_by_strategy(#[case] strategy: Strategy, #[case] begins: &str, #[case] ends: &str) {
    let (_dir, store) = store();
    let text = numbered(9);
    let bounded = store.bound("call_1", &text, 26, strategy).unwrap();
    assert!(bounded.text.starts_with(begins), "{}", bounded.text);
    assert!(bounded.text.ends_with(ends), "{}", bounded.text);
    let path = bounded.stored.unwrap();
    assert!(bounded.text.contains(&path.display().to_string()));
    assert!(bounded.text.contains("Read it with offset"));
    assert_eq!(fs::read_to_string(path).unwrap(), text);
    assert_eq!(bounded.total_chars, 63);
}

#[rstest]
#[case::shorter("abc", 4)]
#[case::exact("abcd", 4)]
#[case::exact_in_wide_characters("äöüß", 4)]
#[case::empty("", 0)]
fn what_fits_is_left_alone(#[case] text: &str, #[case] max: usize) {
    let (dir, store) = store();
    assert_eq!(store.bound("x", text, max, Strategy::KeepBoth), None);
    assert!(!dir.path().join("s1").exists(), "the folder is created only when something is stored");
}

#[rstest]
#[case::one_huge_line(&"ä".repeat(100), "äääää\n[left out: 90 characters of line 1 (of 1). ", "]\näääää", (1, 1))]
#[case::short_line_before_huge_one(&format!("a\n{}", "b".repeat(50)), "a\nbbb\n[left out: 42 characters of line 2 (of 2). ", "]\nbbbbb", (2, 2))]
fn a_huge_line_is_cut_on_a_character(
    #[case] text: &str,
    #[case] begins: &str,
    #[case] ends: &str,
    #[case] omitted: (u64, u64),
) {
    let (_dir, store) = store();
    let bounded = store.bound("x", text, 10, Strategy::KeepBoth).unwrap();
    assert!(bounded.text.starts_with(begins), "{}", bounded.text);
    assert!(bounded.text.ends_with(ends), "{}", bounded.text);
    assert_eq!(bounded.omitted_lines, Some(omitted));
}

#[rstest]
#[case::plain("toolu_01AB", "toolu_01AB")]
#[case::separators("../../etc/passwd", "_.._etc_passwd")]
#[case::hidden(".bashrc", "bashrc")]
#[case::option("--help", "help")]
#[case::control("a\nb\0c", "a_b_c")]
#[case::wide("ключ", "____")]
#[case::nothing("", "result")]
#[case::dots("..", "result")]
fn untrusted_names_become_file_names(#[case] name: &str, #[case] expected: &str) {
    assert_eq!(safe_name(name), expected);
    assert!(safe_name(&name.repeat(500)).len() <= 80);
}

#[test]
fn an_existing_file_or_link_is_never_written() {
    let (dir, store) = store();
    let folder = dir.path().join("s1/results");
    fs::create_dir_all(&folder).unwrap();
    let outside = dir.path().join("outside");
    #[cfg(unix)]
    std::os::unix::fs::symlink(&outside, folder.join("x.txt")).unwrap();
    fs::write(folder.join("x-2.txt"), "earlier").unwrap();
    let bounded = store.bound("x", "0123456789", 4, Strategy::KeepStart).unwrap();
    assert_eq!(bounded.stored.unwrap(), folder.join("x-3.txt"));
    assert!(!outside.exists());
    assert_eq!(fs::read_to_string(folder.join("x-2.txt")).unwrap(), "earlier");
}

#[cfg(unix)]
#[test]
fn stored_texts_are_private() {
    use std::os::unix::fs::PermissionsExt;
    let (dir, store) = store();
    let path = store.bound("x", "0123456789", 4, Strategy::KeepStart).unwrap().stored.unwrap();
    let mode = |path: &std::path::Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&path), 0o600);
    assert_eq!(mode(path.parent().unwrap()), 0o700);
    assert_eq!(mode(&dir.path().join("s1")), 0o700);
}

#[rstest]
#[case::one_file(StoreLimits { max_file_bytes: 9, ..StoreLimits::default() }, "limit of 9 bytes")]
#[case::quota(StoreLimits { quota_bytes: 9, ..StoreLimits::default() }, "quota of 9 bytes")]
fn limits_degrade_to_a_window(#[case] limits: StoreLimits, #[case] why: &str) {
    let dir = TempDir::new().unwrap();
    let store = ResultsStore::new(dir.path().join("results"), limits);
    let bounded = store.bound("x", "0123456789", 4, Strategy::KeepEnd).unwrap();
    assert_eq!((bounded.stored, bounded.omitted_lines), (None, Some((1, 1))));
    assert!(bounded.text.contains("could not be stored"), "{}", bounded.text);
    assert!(bounded.text.contains(why) && bounded.text.ends_with("\n6789"), "{}", bounded.text);
}

#[test]
fn the_quota_counts_what_an_earlier_process_stored() {
    let dir = TempDir::new().unwrap();
    let limits = StoreLimits { quota_bytes: 25, ..StoreLimits::default() };
    let stored = |name| {
        ResultsStore::new(dir.path().to_owned(), limits.clone())
            .bound(name, "0123456789", 4, Strategy::KeepEnd)
            .unwrap()
            .stored
            .is_some()
    };
    assert_eq!([stored("a"), stored("b"), stored("c")], [true, true, false]);
}

#[test]
fn an_unusable_folder_degrades_to_a_window() {
    let dir = TempDir::new().unwrap();
    let blocked = dir.path().join("file");
    fs::write(&blocked, "").unwrap();
    let store = ResultsStore::new(blocked.join("results"), StoreLimits::default());
    let bounded = store.bound("x", "0123456789", 4, Strategy::KeepStart).unwrap();
    assert_eq!(bounded.stored, None);
    assert!(bounded.text.starts_with("0123\n[left out: 6 characters of line 1"), "{}", bounded.text);
}

const CHILD_FOLDER: &str = "RESULTS_TEST_FOLDER";

/// Does its work in a process that may not write files over a few KiB, where a write stops half way as on a
/// full disk. Started there by `a_half_written_file_is_removed`, which checks that it passed.
#[test]
fn child_with_a_small_file_limit() {
    let Some(folder) = std::env::var_os(CHILD_FOLDER) else { return };
    let store = ResultsStore::new(folder.into(), StoreLimits::default());
    let bounded = store.bound("x", &"0123456789".repeat(10_000), 4, Strategy::KeepEnd).unwrap();
    assert!(bounded.text.contains("could not be stored"), "{}", bounded.text);
    assert!(bounded.stored.is_none() && bounded.text.ends_with("\n6789"));
}

#[cfg(unix)]
#[test]
fn a_half_written_file_is_removed() {
    let dir = TempDir::new().unwrap();
    let name = format!("{}::child_with_a_small_file_limit", module_path!().split_once("::").unwrap().1);
    let child = std::process::Command::new("sh")
        .args(["-c", "trap '' XFSZ; ulimit -f 8; exec \"$0\" \"$@\""])
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", &name])
        .env(CHILD_FOLDER, dir.path())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&child.stdout);
    assert!(child.status.success() && said.contains("1 passed"), "{said}");
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
}

/// Stored files of two sessions: name, bytes, age in seconds.
fn swept(quota: u64, max_age: u64) -> (Vec<String>, super::SweepReport) {
    let root = TempDir::new().unwrap();
    let now = SystemTime::now();
    for (name, bytes, age) in
        [("one/results/old", 10, 500), ("one/results/mid", 20, 300), ("two/results/new", 30, 100)]
    {
        let path = root.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, "x".repeat(bytes)).unwrap();
        let file = fs::File::options().write(true).open(&path).unwrap();
        file.set_modified(now - Duration::from_secs(age)).unwrap();
    }
    fs::write(root.path().join("one/transcript"), "stays").unwrap();
    fs::write(root.path().join("stray"), "stays").unwrap();
    let limits =
        StoreLimits { quota_bytes: quota, max_age: Duration::from_secs(max_age), ..StoreLimits::default() };
    let report = ResultsStore::sweep(root.path(), &limits, now);
    assert!(root.path().join("one/transcript").exists() && root.path().join("stray").exists());
    let left = ["one/results/old", "one/results/mid", "two/results/new"]
        .into_iter()
        .filter(|name| root.path().join(name).exists())
        .map(|name| name.rsplit('/').next().unwrap().to_owned())
        .collect();
    (left, report)
}

#[rstest]
#[case::nothing(60, 500, &["old", "mid", "new"], (0, 0, 3, 60))]
#[case::by_age(60, 499, &["mid", "new"], (1, 10, 2, 50))]
#[case::by_quota_oldest_first(59, 9999, &["mid", "new"], (1, 10, 2, 50))]
#[case::until_it_fits(49, 9999, &["new"], (2, 30, 1, 30))]
#[case::age_counts_towards_quota(50, 400, &["mid", "new"], (1, 10, 2, 50))]
#[case::all(0, 9999, &[], (3, 60, 0, 0))]
fn sweeping(
    #[case] quota: u64,
    #[case] max_age: u64,
    #[case] left: &[&str],
    #[case] counts: (u64, u64, u64, u64),
) {
    let (found, report) = swept(quota, max_age);
    assert_eq!(found, left);
    let got = (report.removed_files, report.removed_bytes, report.kept_files, report.kept_bytes);
    assert_eq!((got, report.failed), (counts, 0));
}

#[cfg(unix)]
#[test]
fn sweeping_follows_no_links() {
    let outside = TempDir::new().unwrap();
    fs::create_dir_all(outside.path().join("results")).unwrap();
    fs::write(outside.path().join("results/precious"), "x").unwrap();
    let root = TempDir::new().unwrap();
    fs::create_dir_all(root.path().join("s/results")).unwrap();
    fs::create_dir_all(root.path().join("t")).unwrap();
    let precious = outside.path().join("results/precious");
    std::os::unix::fs::symlink(outside.path(), root.path().join("linked-session")).unwrap();
    std::os::unix::fs::symlink(outside.path().join("results"), root.path().join("t/results")).unwrap();
    std::os::unix::fs::symlink(&precious, root.path().join("s/results/link")).unwrap();
    let limits = StoreLimits { quota_bytes: 0, max_age: Duration::ZERO, ..StoreLimits::default() };
    let later = SystemTime::now() + Duration::from_secs(60);
    assert_eq!(ResultsStore::sweep(root.path(), &limits, later).removed_files, 0);
    assert!(precious.exists());
}

#[test]
fn sweeping_a_missing_root_is_fine() {
    let report = ResultsStore::sweep("/no/such/folder".as_ref(), &StoreLimits::default(), SystemTime::now());
    assert_eq!(report, super::SweepReport::default());
}

#[rstest]
#[case::all_fit(10_000, 0, &[3_000, 4_000], &[3_000, 4_000])]
#[case::largest_first(10_000, 0, &[2_000, 9_000, 3_000], &[2_000, 5_000, 3_000])]
#[case::down_to_one_level(10_000, 0, &[9_000, 2_000, 8_000], &[4_000, 2_000, 4_000])]
#[case::already_spent(10_000, 6_000, &[1_500, 9_000], &[1_500, 2_500])]
#[case::never_below_the_minimum(1_000, 1_000, &[5_000, 400], &[1_000, 400])]
#[case::overspent(1_000, 9_000, &[5_000], &[1_000])]
#[case::none(10, 0, &[], &[])]
fn sharing(#[case] budget: usize, #[case] already: usize, #[case] fresh: &[usize], #[case] out: &[usize]) {
    assert_eq!(share(budget, already, fresh), out);
}

fn strategies() -> impl Generator<Value = Strategy> {
    prop_oneof![Just(Strategy::KeepStart), Just(Strategy::KeepEnd), Just(Strategy::KeepBoth)]
}

fn lines_of(text: &str) -> u64 {
    text.split_inclusive('\n').count() as u64
}

proptest! {
    #[test]
    fn a_window_is_bounded_and_true(
        text in "([a-zä€😀 ]{0,40}\r?\n?){0,30}",
        max in 0usize..200,
        strategy in strategies(),
    ) {
        let dir = TempDir::new().unwrap();
        let store = ResultsStore::new(dir.path().to_owned(), StoreLimits::default());
        let Some(Bounded { text: shown, stored, omitted_lines, total_chars }) =
            store.bound("x", &text, max, strategy)
        else {
            prop_assert!(text.chars().count() <= max);
            return Ok(());
        };
        prop_assert!(total_chars > max);
        let path = stored.unwrap().display().to_string();
        prop_assert!(shown.chars().count() <= max + NOTE_CHARS + path.chars().count());

        let cut = cut(&text, max, strategy);
        let (head, tail) = (&text[..cut.head], &text[cut.tail..]);
        prop_assert!(head.chars().count() + tail.chars().count() <= max);
        let rest = shown.strip_prefix(head).unwrap().strip_suffix(tail).unwrap();
        prop_assert!(rest.trim_matches('\n').starts_with("[left out: "));
        prop_assert_eq!(rest.trim_matches('\n').lines().count(), 1);

        // Lines shown whole and lines left out are together all lines, without overlap.
        let (first, last) = omitted_lines.unwrap();
        let whole_in_head = head.matches('\n').count() as u64;
        let whole_in_tail = if cut.tail == 0 || text[..cut.tail].ends_with('\n') {
            lines_of(tail)
        } else {
            lines_of(tail).saturating_sub(1)
        };
        prop_assert_eq!(first, whole_in_head + 1);
        prop_assert_eq!(whole_in_head + (last - first + 1) + whole_in_tail, lines_of(&text));
        // The omitted range of the stored file holds everything that is not shown.
        let omitted: String =
            text.split_inclusive('\n').skip(first as usize - 1).take((last - first + 1) as usize).collect();
        prop_assert!(omitted.contains(&text[cut.head..cut.tail]));
    }

    #[test]
    fn sharing_fits_and_cuts_the_largest_first(
        budget in 0usize..100_000,
        already in 0usize..50_000,
        fresh in proptest::collection::vec(0usize..60_000, 0..12),
        pick in any::<proptest::sample::Index>(),
    ) {
        let shares = share(budget, already, &fresh);
        prop_assert_eq!(shares.len(), fresh.len());
        let sum: usize = shares.iter().sum();
        let floor: usize = fresh.iter().map(|size| *size.min(&MIN_WINDOW)).sum();
        prop_assert!(sum <= budget.saturating_sub(already).max(floor));
        for (size, given) in fresh.iter().zip(&shares) {
            prop_assert!(given <= size);
            prop_assert!(given == size || *given >= MIN_WINDOW);
            if given < size {
                prop_assert!(shares.iter().all(|other| other <= given));
            }
        }
        // Nothing is cut without need: one more character for a cut result would not fit.
        if !fresh.is_empty() {
            let at = pick.index(fresh.len());
            if shares[at] < fresh[at] {
                let cut = fresh.iter().zip(&shares).filter(|(size, given)| given < size).count();
                prop_assert!(sum + cut > budget.saturating_sub(already));
            }
        }
    }
}

#[test]
fn a_store_without_a_folder_writes_nothing() {
    let store = ResultsStore::new(std::path::PathBuf::new(), StoreLimits::default());
    let bounded = store.bound("a-store-that-keeps-nothing", "0123456789", 4, Strategy::KeepStart).unwrap();
    let stray = std::path::Path::new("a-store-that-keeps-nothing.txt");
    let wrote_here = stray.exists();
    let _ = fs::remove_file(stray);
    assert!(!wrote_here, "written to the current folder");
    assert_eq!(bounded.stored, None);
    assert!(bounded.text.contains("could not be stored"), "{}", bounded.text);
}
