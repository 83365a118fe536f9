use std::{fs, sync::Arc};

use gripper_runtime::{
    Place, Registry, Toolbox,
    files::{
        Snapshot,
        ledger::{Content as Known, Evidence, Seen, Standing},
    },
    permissions::Policy,
};
use proptest::prelude::{any, prop, prop_assert, prop_assert_eq, proptest};
use serde_json::json;

use super::{Ran, after_summary, shorten, summary_request, with_stubs};
use crate::{
    message::{Content, Message, Role, Source},
    model::scripted::Scripted,
    session::check,
};

fn call(id: usize) -> Content {
    Content::ToolUse {
        id: format!("c{id}"),
        name: "Read".to_owned(),
        input: json!({"file_path": "/a"}).into(),
    }
}

fn result(id: usize, text: &str) -> Content {
    let picture = Source::Base64 { media_type: "image/png".to_owned(), data: "x".repeat(4096).into() };
    let content = vec![Content::text(text), Content::Image { source: picture }];
    Content::ToolResult { tool_use_id: format!("c{id}"), content, is_error: false }
}

/// A conversation of answers with so many calls each, whose results are so long, and a prompt before some.
fn conversation(answers: &[(usize, usize, bool)], prompted: bool) -> Vec<Arc<Message>> {
    let mut history = vec![Message::user("begin")];
    let mut ids = 0;
    for (calls, length, prompt) in answers {
        let here = ids..ids + calls;
        ids += calls;
        let content = std::iter::once(Content::text("so")).chain(here.clone().map(call)).collect();
        history.push(Message { role: Role::Assistant, content });
        let mut content: Vec<Content> = here.map(|id| result(id, &"y".repeat(*length))).collect();
        if *prompt || content.is_empty() {
            content.push(Content::text("go on"));
        }
        history.push(Message { role: Role::User, content });
    }
    if prompted {
        history.push(Message { role: Role::Assistant, content: vec![Content::text("done")] });
        history.push(Message::user("the last wish"));
    }
    history.into_iter().map(Arc::new).collect()
}

#[tokio::test]
async fn old_results_become_stubs_and_if_that_is_not_enough_a_summary() {
    let model = Scripted::of([vec![Content::text("# Goal\nship it")]]);
    let stored =
        format!("{}\n[left out: … The whole text is in /s/r.txt; Read it with offset 1]", "z".repeat(9_000));
    let mut history = conversation(&[(1, 9_000, false); 12], true);
    Arc::make_mut(&mut history[2]).content = vec![result(0, &stored)];
    let shorter = shorten(&model, "m", &history).await.unwrap();
    assert!(!shorter.summary);
    let shown = |at: usize| serde_json::to_string(&*shorter.messages[at]).unwrap();
    let stub = format!("the result of Read, {} bytes; stored whole in /s/r.txt]", stored.len());
    assert!(shown(2).contains(&stub), "{}", shown(2));
    assert!(shown(4).contains("call again if you need it") && shown(4).contains("image/png, 3 KiB]"));
    assert!(shown(14).contains("save room") && !shown(16).contains("save room"));
    assert_eq!(with_stubs(&shorter.messages), shorter.messages);
    let recent = conversation(&[(1, 9_000, false); 3], true);
    let shorter = shorten(&model, "m", &recent).await.unwrap();
    assert!(shorter.summary && shorter.messages[0].text().contains("ship it"));
    assert!(shorter.messages.iter().any(|message| message.text() == "the last wish"));
    assert!(shorten(&model, "m", &recent).await.is_err(), "the script is over");
}

#[test]
fn what_left_the_conversation_counts_as_unseen() {
    let folder = tempfile::tempdir().unwrap();
    let toolbox = Toolbox::builder(Registry::default(), Policy::new(folder.path())).build();
    let place = Place { cwd: folder.path().into() };
    let (ledger, mut ran) = (&toolbox.files().ledger, Ran::default());
    let history = conversation(&[(1, 9_000, false); 7], false);
    let mut files = Vec::new();
    for (id, turn) in ["t0", "t1", "t6", "t6"].into_iter().enumerate() {
        let path = place.locate(format!("f{id}").as_ref());
        fs::write(&path.real, "text\n").unwrap();
        let file = Snapshot::take(&path, 100).unwrap();
        let (path, stamp, content) = (path.real, file.stamp, Known::of(&file.bytes));
        let seen = |lines| Seen {
            path: path.clone(),
            stamp,
            content: content.clone(),
            lines,
            evidence: Evidence::Read,
        };
        // The first turn has shown all of the last file, too.
        if id == 3 {
            ledger.note(seen(None), &"t0".into());
        }
        ledger.note(seen((id > 1).then_some((1, 1))), &turn.into());
        files.push(file);
    }
    [(0, "t0"), (1, "t1"), (6, "t6")].iter().for_each(|(id, turn)| ran.note(&format!("c{id}"), turn));
    ran.forget(&history, &toolbox);
    assert_eq!(ledger.standing(&files[0]), Standing::Known { partly: false }, "nothing has left");
    ran.forget(&with_stubs(&history), &toolbox);
    assert_eq!(
        [&files[0], &files[1]].map(|file| ledger.standing(file)),
        [Standing::Unread, Standing::Unread]
    );
    for file in &files[2..] {
        assert_eq!(ledger.standing(file), Standing::Known { partly: true });
        assert!(!ledger.has_shown(&file.path.real, &file.stamp, (1, 5), "t7"));
        assert!(ledger.has_shown(&file.path.real, &file.stamp, (1, 1), "t7"));
    }
}

proptest! {
    #[test]
    fn whatever_is_made_shorter_stays_a_conversation(
        answers in prop::collection::vec((0..4_usize, 0..3_000_usize, any::<bool>()), 0..12),
        prompted: bool,
        window in 100..100_000_u64,
    ) {
        let history = conversation(&answers, prompted);
        prop_assert_eq!(check(&history), Ok(()));
        let stubbed = with_stubs(&history);
        prop_assert_eq!(check(&stubbed), Ok(()));
        prop_assert_eq!(stubbed.len(), history.len());
        let shorter = after_summary(&stubbed, "s", window / 10);
        prop_assert_eq!(check(&shorter), Ok(()));
        prop_assert!(shorter.len() <= history.len().max(1) && shorter[0].text().contains("for them:\n\ns"));
        let last = history.last().unwrap();
        prop_assert!(shorter.last().unwrap().text().ends_with(&last.text()));
        let request = summary_request("m", &history, window);
        prop_assert!(request.messages[0].text().len() as u64 <= window * 3 / 2 + 100);
    }
}
