#![allow(clippy::unwrap_used, clippy::panic, reason = "a failed expectation is how tests fail")]

use std::{
    collections::VecDeque,
    path::Path,
    sync::{Arc, Mutex},
    time::Duration,
};

use futures::{FutureExt, future::BoxFuture};
use gripper_permissions::{
    Behavior, By, Check, Decision, HookOpinion, Mode, PathUse, Policy, Request, Rule, RuleList, Source,
    Subject, decide,
};
use rstest::rstest;
use serde_json::json;
use tokio::time::Instant;

use super::{
    Answer, Approver, Ask, Checks, Classifier, Coordinator, FirstWord, Grant, Grants, Opinion, Pending,
    Reply, Worker,
};

/// Keeps what it is asked, and a log of it.
#[derive(Default)]
struct Person(Mutex<(Vec<String>, VecDeque<Reply>)>);

impl Person {
    fn log(&self, words: String) {
        self.0.lock().unwrap().0.push(words);
    }

    fn seen(&self) -> Vec<String> {
        self.0.lock().unwrap().0.clone()
    }

    fn answer(&self, answer: Answer) -> bool {
        let reply = self.0.lock().unwrap().1.pop_front();
        reply.unwrap().answer(answer)
    }
}

impl Approver for Person {
    fn push(&self, ask: Ask, reply: Reply) {
        self.log(format!("push {}", ask.id));
        self.0.lock().unwrap().1.push_back(reply);
    }

    fn update(&self, ask: &Ask) {
        self.log(format!("update {}", ask.id));
    }

    fn tell(&self, _id: &str, words: &str) {
        self.log(format!("tell {words}"));
    }

    fn remove(&self, id: &str) {
        self.log(format!("remove {id}"));
    }
}

/// Answers by its script; `None` never answers.
struct Scripted(Mutex<VecDeque<Option<Opinion>>>);

impl Scripted {
    fn left(&self) -> usize {
        self.0.lock().unwrap().len()
    }
}

impl Classifier for Scripted {
    fn judge<'a>(&'a self, _ask: &'a Ask) -> BoxFuture<'a, Opinion> {
        let next = self.0.lock().unwrap().pop_front().flatten();
        async move {
            match next {
                Some(Opinion::Failed(why)) if why == "panic" => panic!("the classifier fell over"),
                Some(opinion) => opinion,
                None => std::future::pending().await,
            }
        }
        .boxed()
    }
}

struct Hook(Option<Answer>);

impl FirstWord for Hook {
    fn answer<'a>(&'a self, _ask: &'a Ask) -> BoxFuture<'a, Option<Answer>> {
        async { self.0.clone() }.boxed()
    }
}

fn ask(id: &str) -> Ask {
    let policy = Policy::new("/project");
    Ask {
        preview: None,
        id: id.into(),
        call_id: id.into(),
        tool: "Deploy".into(),
        agent: "main".into(),
        mode: Mode::Auto,
        summary: "deploy".into(),
        input: json!({}),
        subjects: Vec::new(),
        decision: decide(&policy, &Request::new("Deploy")),
    }
}

/// A coordinator with a classifier that plays a script, after a hook if there is one.
fn coordinator(
    script: impl IntoIterator<Item = Option<Opinion>>,
    shape: impl FnOnce(&mut Checks),
) -> (Arc<Person>, Arc<Scripted>, Coordinator) {
    let person = Arc::new(Person::default());
    let classifier = Arc::new(Scripted(Mutex::new(script.into_iter().collect())));
    let mut checks = Checks { classifier: Some(classifier.clone()), ..Checks::default() };
    shape(&mut checks);
    (person.clone(), classifier, Coordinator::new(person, checks))
}

fn allow(why: &str) -> Option<Opinion> {
    Some(Opinion::Allow(why.into()))
}

fn deny() -> Option<Opinion> {
    Some(Opinion::Deny("no".into()))
}

fn put(approver: &dyn Approver, ask: Ask) -> Pending {
    let (pending, reply) = Reply::open();
    approver.push(ask, reply);
    pending
}

/// Lets tasks run until nothing moves; time stands still.
async fn quiet() {
    for _ in 0..16 {
        tokio::task::yield_now().await;
    }
}

fn words(answer: &Answer) -> &str {
    match answer {
        Answer::Allow { reason, .. } => reason.as_deref().unwrap_or("yes"),
        Answer::Deny { feedback } => feedback.as_deref().unwrap_or("no"),
    }
}

const REFUSED: &str = "the classifier refused it: no";

#[tokio::test(start_paused = true)]
async fn checks_come_before_the_person() {
    let hook = |answer| move |checks: &mut Checks| checks.first = Some(Arc::new(Hook(answer)));
    let (person, classifier, hooked) = coordinator([deny()], hook(Some(Answer::deny("says the hook"))));
    assert_eq!(words(&put(&hooked, ask("a")).wait().await), "says the hook");
    assert_eq!(classifier.left(), 1, "a hook that answers spares the classifier");
    assert!(person.seen().is_empty());
    let (person, _, passing) = coordinator([deny(), allow("a dry run"), Some(Opinion::Ask)], hook(None));
    assert_eq!(words(&put(&passing, ask("b")).wait().await), REFUSED);
    assert_eq!(words(&put(&passing, ask("c")).wait().await), "cleared by the classifier: a dry run");
    assert!(person.seen().is_empty(), "no dialog was opened");
    let pending = put(&passing, ask("d"));
    quiet().await;
    assert!(person.answer(Answer::once()));
    assert_eq!(pending.wait().await, Answer::once());
    passing.remove("d");
    assert_eq!(person.seen(), ["push d", "remove d"]);
}

#[rstest]
#[case::says_so(Some(Opinion::Failed("no network".into())), "no network")]
#[case::panics(Some(Opinion::Failed("panic".into())), "it has a bug and stopped")]
#[case::never_answers(None, "no answer within 60 s")]
#[tokio::test(start_paused = true)]
async fn a_classifier_that_fails_is_an_ask(#[case] opinion: Option<Opinion>, #[case] why: &str) {
    let (person, _, coordinator) = coordinator([opinion], |_| {});
    let _pending = put(&coordinator, ask("a"));
    tokio::time::sleep(Duration::from_secs(61)).await;
    assert_eq!(person.seen(), [&*format!("tell the classifier failed ({why}), so you are asked"), "push a"]);
}

/// What stands behind an ask decides whether a classifier may say anything about it.
#[rstest]
#[case::other_mode(Mode::Default, By::Check(Check::Unsettled))]
#[case::secrets(Mode::Auto, By::Check(Check::SensitivePath))]
#[case::outside(Mode::Auto, By::Check(Check::OutsideDirectories))]
#[case::deceptive(Mode::Auto, By::Check(Check::DeceptiveCommand))]
#[case::hook(Mode::Auto, By::Hook)]
#[case::tool(Mode::Auto, By::Tool)]
#[tokio::test]
async fn firm_asks_and_other_modes_go_to_the_person(#[case] mode: Mode, #[case] by: By) {
    let (person, classifier, coordinator) = coordinator([allow("fine")], |_| {});
    let decision = Decision { by, ..ask("a").decision };
    let _pending = put(&coordinator, Ask { mode, decision, ..ask("a") });
    assert_eq!((person.seen().len(), classifier.left()), (1, 1));
}

#[tokio::test(start_paused = true)]
async fn a_question_may_change_or_go_while_it_is_checked() {
    let (person, _, coordinator) = coordinator([allow("fine"), None], |_| {});
    let _pending = put(&coordinator, ask("a"));
    let decision = Decision { by: By::Hook, ..ask("a").decision };
    coordinator.update(&Ask { decision, ..ask("a") });
    quiet().await;
    assert_eq!(person.seen(), ["push a"], "an old opinion does not clear it");
    let pending = put(&coordinator, ask("b"));
    assert!(pending.withdraw());
    coordinator.remove("b");
    tokio::time::sleep(Duration::from_secs(120)).await;
    assert_eq!(person.seen(), ["push a"], "no dialog for what is taken back");
}

#[tokio::test(start_paused = true)]
async fn an_open_dialog_races_the_classifier() {
    let (person, _, coordinator) = coordinator([allow("a dry run"), None], |checks| checks.wait = false);
    let pending = put(&coordinator, ask("a"));
    assert_eq!(person.seen(), ["push a"], "the dialog is open at once");
    assert_eq!(words(&pending.wait().await), "cleared by the classifier: a dry run");
    assert!(!person.answer(Answer::deny("too late")));
    let pending = put(&coordinator, ask("b"));
    assert!(person.answer(Answer::deny("not today")));
    assert_eq!(words(&pending.wait().await), "not today");
}

#[tokio::test(start_paused = true)]
async fn after_three_denials_the_person_is_asked_until_they_approve() {
    let (person, classifier, coordinator) = coordinator((0..30).map(|_| deny()), |_| {});
    for _ in 0..3 {
        put(&coordinator, ask("a")).wait().await;
    }
    let other = Ask { agent: "child".into(), ..ask("b") };
    assert_eq!(words(&put(&coordinator, other).wait().await), REFUSED, "each agent has its own count");
    for answer in [Answer::deny("still no"), Answer::once()] {
        let pending = put(&coordinator, ask("c"));
        assert!(person.answer(answer.clone()), "the person was asked");
        assert_eq!(pending.wait().await, answer);
    }
    assert_eq!(words(&put(&coordinator, ask("d")).wait().await), REFUSED);
    assert_eq!(classifier.left(), 25);
}

#[tokio::test(start_paused = true)]
async fn twenty_denials_in_all_are_enough() {
    let rounds = (0..12).flat_map(|_| [deny(), deny(), allow("fine")]);
    let (person, _, coordinator) = coordinator(rounds, |_| {});
    let mut asked = 0;
    while person.seen().is_empty() {
        let _pending = put(&coordinator, ask("a"));
        quiet().await;
        asked += 1;
    }
    assert_eq!(asked, 30, "nine rounds of three, two more denials, and then the person");
}

#[tokio::test]
async fn a_worker_forwards_and_never_decides() {
    let person = Arc::new(Person::default());
    let (worker, inbox) = Worker::new();
    let serving = tokio::spawn(inbox.serve(person.clone()));
    let pending = put(&worker, ask("a"));
    worker.update(&ask("a"));
    worker.tell("a", "hear");
    worker.remove("a");
    quiet().await;
    assert_eq!(person.seen(), ["push a", "update a", "tell hear", "remove a"]);
    assert!(person.answer(Answer::once()));
    assert_eq!(pending.wait().await, Answer::once());
    serving.abort();
    serving.await.ok();
    let late = put(&worker, ask("b")).wait().await;
    assert_eq!(words(&late), "the agent that answers for this one is gone");
}

#[tokio::test]
async fn a_coordinator_that_goes_away_is_a_no() {
    let (worker, inbox) = Worker::new();
    let waiting = put(&worker, ask("a"));
    drop(inbox);
    assert_eq!(words(&waiting.wait().await), "whoever was asked went away without an answer");
}

fn limited(shape: impl FnOnce(&mut Grant)) -> Grants {
    let mut grant = Grant::of(Rule::parse("Deploy").unwrap());
    shape(&mut grant);
    let mut grants = Grants::default();
    grants.add(grant);
    grants
}

fn judge(grants: &mut Grants, request: &Request<'_>, cwd: &str, spend: bool) -> Decision {
    let subjects = request.subjects.clone();
    grants
        .judge(&Policy::new("/project"), (&subjects, Path::new(cwd)), spend, |policy| decide(policy, request))
}

#[tokio::test(start_paused = true)]
async fn a_grant_is_used_up_or_runs_out() {
    let request = Request::new("Deploy");
    let allowed =
        |grants: &mut Grants, spend| judge(grants, &request, "/project", spend).behavior == Behavior::Allow;
    let mut counted = limited(|grant| grant.uses = Some(2));
    assert!(allowed(&mut counted, false), "looking is no use");
    let uses: Vec<bool> = (0..4).map(|_| allowed(&mut counted, true)).collect();
    assert_eq!(uses, [true, true, false, false]);
    let mut timed = limited(|grant| grant.until = Some(Instant::now() + Duration::from_secs(60)));
    assert!(allowed(&mut timed, true));
    tokio::time::advance(Duration::from_secs(60)).await;
    assert!(!allowed(&mut timed, true));
}

#[rstest]
#[case::inside("/tmp/out/a", "/tmp/out/a", "/project", Behavior::Allow)]
#[case::beside("/tmp/outer/a", "/tmp/outer/a", "/project", Behavior::Ask)]
#[case::leads_out("/tmp/out/a", "/srv/data", "/project", Behavior::Ask)]
#[case::works_there("", "", "/tmp/out", Behavior::Allow)]
#[case::works_elsewhere("", "", "/project", Behavior::Ask)]
#[tokio::test]
async fn a_grant_for_a_folder(
    #[case] written: &str,
    #[case] real: &str,
    #[case] cwd: &str,
    #[case] expected: Behavior,
) {
    let mut request = Request::new("Deploy");
    if !written.is_empty() {
        let path = PathUse::new(written, real, false);
        request.subjects.push(Subject::Path(path));
    }
    let mut grants = limited(|grant| grant.folder = Some("/tmp/out".into()));
    assert_eq!(judge(&mut grants, &request, cwd, true).behavior, expected);
}

#[tokio::test]
async fn a_grant_lifts_no_deny_and_no_firm_ask() {
    let mut grants = limited(|grant| grant.uses = Some(1));
    let mut policy = Policy::new("/project");
    policy.rules.add(RuleList::Deny, Rule::parse("Deploy").unwrap(), Source::command_line());
    let plain = Request::new("Deploy");
    let decision = grants.judge(&policy, (&[], Path::new("/project")), true, |policy| decide(policy, &plain));
    assert_eq!(decision.behavior, Behavior::Deny);
    let hooked = Request { hook: Some(HookOpinion::Ask("look".into())), ..Request::new("Deploy") };
    assert_eq!(judge(&mut grants, &hooked, "/project", true).behavior, Behavior::Ask);
    assert_eq!(judge(&mut grants, &plain, "/project", true).behavior, Behavior::Allow, "it was not used up");
}
