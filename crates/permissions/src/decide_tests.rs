use proptest::prelude::{any, prop, prop_assert, prop_assert_eq, proptest};
use rstest::rstest;

use super::{Behavior, By, Check, Sieve, decide};
use crate::{
    CommandPlace, Deceptive, HookOpinion, Mode, Opinion, PathUse, Policy, Request, Rule, RuleList, Source,
    Subject,
};

/// A policy from a short text: `mode; list Rule; list Rule`.
fn policy(text: &str) -> Policy {
    let mut parts = text.split(';').map(str::trim);
    let mode: Mode = parts.next().unwrap().parse().unwrap();
    let mut policy = Policy::new("/project").with_mode(mode);
    for part in parts {
        let (list, rule) = part.split_once(' ').unwrap();
        let list = match list {
            "allow" => RuleList::Allow,
            "ask" => RuleList::Ask,
            _ => RuleList::Deny,
        };
        policy.rules.add(list, Rule::parse(rule).unwrap(), Source::command_line());
    }
    policy
}

fn path(written: &str, real: &str, write: bool) -> Subject {
    Subject::Path(PathUse::new(written, real, write))
}

fn request(kind: &str) -> Request<'static> {
    let mut request = Request::new("T");
    match kind {
        "read inside" => {
            request.read_only = true;
            request.subjects.push(path("/project/a", "/project/a", false));
        }
        "read outside" => {
            request.read_only = true;
            request.subjects.push(path("/etc/a", "/etc/a", false));
        }
        "read through link" => {
            request.read_only = true;
            request.subjects.push(path("/project/l", "/etc/a", false));
        }
        "read sibling" => {
            request.read_only = true;
            request.subjects.push(path("/project-2/a", "/project-2/a", false));
        }
        "edit inside" => {
            request.edits_files = true;
            request.subjects.push(path("/project/a", "/project/a", true));
        }
        "edit outside" => {
            request.edits_files = true;
            request.subjects.push(path("/etc/a", "/etc/a", true));
        }
        "edit nothing known" => request.edits_files = true,
        "session only" => {
            request.read_only = true;
            request.opinion = Opinion::Allow("keeps a list".into());
        }
        "question" => {
            request.read_only = true;
            request.needs_person = true;
        }
        "firm ask" => request.opinion = Opinion::Ask { reason: "sensitive".into(), firm: true },
        "soft ask" => request.opinion = Opinion::Ask { reason: "big".into(), firm: false },
        "tool denies" => request.opinion = Opinion::Deny("impossible".into()),
        "hidden command" => request = command("ls \u{202e}x"),
        "hook denies" => request.hook = Some(HookOpinion::Deny("no".into())),
        "hook asks" => request.hook = Some(HookOpinion::Ask("hm".into())),
        "hook allows" => request.hook = Some(HookOpinion::Allow("fine".into())),
        _ => {}
    }
    request
}

/// A request to run `text` in the project, where no link leads anywhere else.
fn command(text: &str) -> Request<'static> {
    let place = CommandPlace { cwd: "/project", home: "/home/dev", real: &|path| path.into() };
    Request::command("T", text, &Policy::new("/project"), place)
}

#[rstest]
#[case::reads("ls -la src", true, Behavior::Allow)]
#[case::reads_outside("ls /etc", true, Behavior::Ask)]
#[case::reads_a_secret("cat .env", true, Behavior::Ask)]
#[case::lists_a_secret("ls -la .env", true, Behavior::Allow)]
#[case::reads_the_example("cat .env.example", true, Behavior::Allow)]
#[case::reads_by_pattern("cat *.md", true, Behavior::Allow)]
#[case::reads_by_pattern_unconfined("cat *.md", false, Behavior::Ask)]
#[case::pattern_reaches_secrets("cat .e*", true, Behavior::Ask)]
#[case::looks_for_secrets("ls -a | grep netrc | xargs cat", true, Behavior::Ask)]
#[case::writes("touch a", true, Behavior::Ask)]
#[case::deceives("$'\\x72m' a", true, Behavior::Deny)]
#[case::unknown("frobnicate", true, Behavior::Ask)]
#[case::malformed("ls '", true, Behavior::Ask)]
fn commands_are_judged_by_what_they_do(
    #[case] text: &str,
    #[case] confined: bool,
    #[case] expected: Behavior,
) {
    let mut policy = Policy::new("/project");
    policy.flags.confined = confined;
    let decision = decide(&policy, &command(text));
    assert_eq!(decision.behavior, expected, "{decision:?}");
}

#[test]
fn deceptive_commands_can_be_asked_about_instead() {
    let mut policy = Policy::new("/project");
    policy.flags.deceptive = Deceptive::Ask;
    let decision = decide(&policy, &command("x=r; ${x}m a"));
    assert_eq!(decision.behavior, Behavior::Ask);
    assert_eq!(decision.by, By::Check(Check::DeceptiveCommand));
    assert!(decision.risks.iter().any(|risk| risk.name == "ObfuscatedFlags"), "{:?}", decision.risks);
}

#[rstest]
#[case::read_inside("default", "read inside", Behavior::Allow)]
#[case::read_outside("default", "read outside", Behavior::Ask)]
#[case::read_outside_dont_ask("dontAsk", "read outside", Behavior::Deny)]
#[case::link_out("default", "read through link", Behavior::Ask)]
#[case::prefix_is_not_inside("default", "read sibling", Behavior::Ask)]
#[case::edit_asks("default", "edit inside", Behavior::Ask)]
#[case::edit_accepted("acceptEdits", "edit inside", Behavior::Allow)]
#[case::edit_outside_not_accepted("acceptEdits", "edit outside", Behavior::Ask)]
#[case::edit_of_unknown_path_not_accepted("acceptEdits", "edit nothing known", Behavior::Ask)]
#[case::unknown("default", "unknown", Behavior::Ask)]
#[case::unknown_auto("auto", "unknown", Behavior::Ask)]
#[case::unknown_dont_ask("dontAsk", "unknown", Behavior::Deny)]
#[case::bypass("bypassPermissions", "unknown", Behavior::Allow)]
#[case::allow_rule("default; allow T", "unknown", Behavior::Allow)]
#[case::allow_star("default; allow T(*)", "unknown", Behavior::Allow)]
#[case::other_rule("default; allow U", "unknown", Behavior::Ask)]
#[case::deny_beats_allow("default; allow T; deny T", "read inside", Behavior::Deny)]
#[case::deny_beats_bypass("bypassPermissions; deny T", "unknown", Behavior::Deny)]
#[case::ask_beats_allow("default; allow T; ask T", "read inside", Behavior::Ask)]
#[case::ask_beats_bypass("bypassPermissions; ask T", "unknown", Behavior::Ask)]
#[case::plan_reads("plan", "read inside", Behavior::Allow)]
#[case::plan_edits("plan; allow T", "edit inside", Behavior::Deny)]
#[case::plan_not_asked("plan; ask T", "edit inside", Behavior::Deny)]
#[case::plan_question("plan", "question", Behavior::Ask)]
#[case::plan_session("plan", "session only", Behavior::Allow)]
#[case::session("default", "session only", Behavior::Allow)]
#[case::question_bypass("bypassPermissions", "question", Behavior::Ask)]
#[case::firm_ask_bypass("bypassPermissions; allow T", "firm ask", Behavior::Ask)]
#[case::soft_ask_bypass("bypassPermissions", "soft ask", Behavior::Allow)]
#[case::soft_ask_allowed("default; allow T", "soft ask", Behavior::Allow)]
#[case::tool_denies("bypassPermissions; allow T", "tool denies", Behavior::Deny)]
#[case::hidden("bypassPermissions; allow T", "hidden command", Behavior::Deny)]
#[case::hook_denies("bypassPermissions; allow T", "hook denies", Behavior::Deny)]
#[case::hook_asks("bypassPermissions; allow T", "hook asks", Behavior::Ask)]
#[case::hook_allows("default", "hook allows", Behavior::Allow)]
#[case::hook_cannot_lift_deny("default; deny T", "hook allows", Behavior::Deny)]
#[case::hook_cannot_lift_ask("default; ask T", "hook allows", Behavior::Ask)]
#[case::hook_cannot_lift_plan("plan", "hook allows", Behavior::Deny)]
#[case::hook_ask_cannot_soften_plan("plan", "hook asks", Behavior::Deny)]
fn table(#[case] policy_text: &str, #[case] kind: &str, #[case] expected: Behavior) {
    let decision = decide(&policy(policy_text), &request(kind));
    assert_eq!(decision.behavior, expected, "{decision:?}");
    assert!(!decision.reason.is_empty());
}

#[test]
fn bypass_that_is_not_available_asks() {
    let mut policy = policy("bypassPermissions");
    policy.flags.bypass_unavailable = true;
    assert_eq!(decide(&policy, &request("unknown")).behavior, Behavior::Ask);
}

#[test]
fn an_ask_says_what_rule_would_change_it() {
    let decision = decide(&policy("default"), &request("unknown"));
    assert_eq!(decision.by, By::Check(Check::Unsettled));
    assert_eq!(decision.suggestions[0].rule, "T");
}

#[test]
fn hidden_characters_in_a_path_are_shown_in_the_reason() {
    let mut request = Request::new("T");
    request.read_only = true;
    request.subjects.push(path("/etc/a\u{202e}b", "/etc/a\u{202e}b", false));
    let decision = decide(&policy("default"), &request);
    assert_eq!(decision.reason, r"/etc/a\u{202e}b is outside the working directories");
}

#[test]
fn plan_remembers_the_mode_before() {
    let plan = policy("acceptEdits").with_mode(Mode::Plan).with_mode(Mode::Plan);
    assert_eq!(plan.mode_before_plan, Some(Mode::AcceptEdits));
    assert_eq!(plan.with_mode(Mode::Default).mode_before_plan, None);
}

#[rstest]
#[case::tool("Sleep", "Sleep", true)]
#[case::case_matters("sleep", "Sleep", false)]
#[case::any_server("mcp__*__issue", "mcp__github__issue", true)]
#[case::all("*", "Sleep", true)]
#[case::server("mcp__github", "mcp__github__issue", true)]
#[case::server_star("mcp__github__*", "mcp__github__issue", true)]
#[case::server_tool("mcp__github__issue", "mcp__github__issue", true)]
#[case::server_other_tool("mcp__github__issue", "mcp__github__issues", false)]
#[case::server_name_is_whole("mcp__git", "mcp__github__issue", false)]
#[case::tool_with_underscores("mcp__s__a__b", "mcp__s__a__b", true)]
fn rules_cover(#[case] rule: &str, #[case] tool: &str, #[case] expected: bool) {
    let matches = Rule::parse(rule).unwrap().matches(RuleList::Deny, &policy("default"), &Request::new(tool));
    assert_eq!(matches, expected);
}

#[rstest]
#[case::empty("", "a rule is empty")]
#[case::blank("  ", "a rule is empty")]
#[case::unclosed("Read(", "without a closing one")]
#[case::specifier("TodoWrite(git *)", "takes no specifier")]
#[case::nothing_in_brackets("Bash()", "brackets are empty")]
#[case::exception("Read(!x)", "no exceptions")]
#[case::page("WebFetch(https://example.com)", "behind domain:")]
#[case::bad_name("Read it", "not a tool name")]
#[case::only_a_server_may_end_in_star("Read__*", "not a tool name")]
fn bad_rules(#[case] rule: &str, #[case] message: &str) {
    let error = Rule::parse(rule).unwrap_err().to_string();
    assert!(error.contains(message), "{error}");
}

const KINDS: [&str; 17] = [
    "read inside",
    "read outside",
    "read through link",
    "edit inside",
    "edit outside",
    "session only",
    "question",
    "firm ask",
    "soft ask",
    "tool denies",
    "hidden command",
    "hook denies",
    "hook asks",
    "hook allows",
    "unknown",
    "edit nothing known",
    "read sibling",
];

#[rstest]
#[case::plain("default", "/project/a", "/project", Behavior::Allow)]
#[case::denied("default; deny Read(a)", "/project/a", "/project", Behavior::Deny)]
#[case::denied_below("default; deny Read(x/**)", "/project/x/y/a", "/project", Behavior::Deny)]
#[case::denied_whatever_the_mode("bypassPermissions; deny Read(a)", "/project/a", "/project", Behavior::Deny)]
#[case::asked("default; ask Read(a)", "/project/a", "/project", Behavior::Ask)]
#[case::asked_about_the_folder("default; ask Read(x/**)", "/project/x/a", "/project/x", Behavior::Allow)]
#[case::asked_about_every_read("default; ask Read", "/project/a", "/project", Behavior::Allow)]
#[case::secret("default", "/project/.env", "/project", Behavior::Ask)]
#[case::secret_in_bypass("bypassPermissions", "/project/.env", "/project", Behavior::Ask)]
#[case::secret_that_a_rule_names("default; allow Read(.env)", "/project/.env", "/project", Behavior::Allow)]
#[case::secret_folder("default", "/project/.aws/x", "/project/.aws", Behavior::Allow)]
#[case::secret_after_another_question(
    "default; ask Read(x/**)",
    "/project/x/.env",
    "/project/x",
    Behavior::Ask
)]
fn files_found(#[case] rules: &str, #[case] file: &str, #[case] within: &str, #[case] expected: Behavior) {
    let policy = policy(rules);
    let (file, within) = (PathUse::new(file, file, false), PathUse::new(within, within, false));
    let sieve = Sieve::new(&policy, within);
    assert_eq!(sieve.judge(&file), expected);
    let name = PathUse { names_only: true, ..file };
    let shown = if expected == Behavior::Deny { Behavior::Deny } else { Behavior::Allow };
    assert_eq!(sieve.judge(&name), shown, "its name alone");
}

proptest! {
    /// Adding a deny or an ask never weakens a decision; the order of rules never matters.
    #[test]
    fn stricter_rules_never_weaken(
        mode in 0..6usize,
        kind in 0..KINDS.len(),
        lists in prop::collection::vec((0..3usize, any::<bool>()), 0..5),
        extra in 0..2usize,
    ) {
        let build = |rules: &[(usize, bool)]| {
            let mut policy = Policy::new("/project").with_mode(Mode::ALL[mode]);
            for (list, matching) in rules {
                let list = [RuleList::Deny, RuleList::Ask, RuleList::Allow][*list];
                let rule = Rule::parse(if *matching { "T" } else { "U" }).unwrap();
                policy.rules.add(list, rule, Source::command_line());
            }
            policy
        };
        let request = request(KINDS[kind]);
        let before = decide(&build(&lists), &request);
        let mut reversed = lists.clone();
        reversed.reverse();
        prop_assert_eq!(&before, &decide(&build(&reversed), &request));
        if request.hook.is_none() {
            let mut objected = request.clone();
            objected.hook = Some(HookOpinion::Ask("hm".into()));
            prop_assert!(decide(&build(&lists), &objected).behavior >= before.behavior);
        }
        let mut stricter = lists;
        stricter.push((extra, true));
        prop_assert!(decide(&build(&stricter), &request).behavior >= before.behavior);
    }
}
