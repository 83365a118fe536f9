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

use super::{after_summary, shorten, summary_request, with_stubs};
use crate::{
    message::{Content, Message, Role, Source},
    model::scripted::Scripted,
    session::check,
};

fn call(id: usize) -> Content {
    Content::ToolUse { id: format!("c{id}"), name: "Read".to_owned(), input: json!({"file_path": "/a"}) }
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
    let folder = tempfile::tempdir().unwrap();
    let toolbox = Toolbox::builder(Registry::default(), Policy::new(folder.path())).build();
    let model = Scripted::of([vec![Content::text("# Goal\nship it")]]);
    let path = Place { cwd: folder.path().into() }.locate("f".as_ref());
    fs::write(&path.real, "text\n").unwrap();
    let file = Snapshot::take(&path, 100).unwrap();
    let (stamp, content) = (file.stamp, Known::of(&file.bytes));
    let seen = Seen { path: path.real, stamp, content, lines: None, evidence: Evidence::Read };
    toolbox.files().ledger.note(seen, &"t".into());
    let stored =
        format!("{}\n[left out: … The whole text is in /s/r.txt; Read it with offset 1]", "z".repeat(9_000));
    let mut history = conversation(&[(1, 9_000, false); 12], true);
    Arc::make_mut(&mut history[2]).content = vec![result(0, &stored)];
    let shorter = shorten(&model, "m", history, &toolbox).await.unwrap();
    let shown = |at: usize| serde_json::to_string(&*shorter[at]).unwrap();
    let stub = format!("the result of Read, {} bytes; stored whole in /s/r.txt]", stored.len());
    assert!(shown(2).contains(&stub), "{}", shown(2));
    assert!(shown(4).contains("call again if you need it") && shown(4).contains("image/png, 3 KiB]"));
    assert!(shown(14).contains("save room") && !shown(16).contains("save room"));
    assert_eq!(with_stubs(&shorter), shorter);
    assert_eq!(toolbox.files().ledger.standing(&file), Standing::Unread);
    let recent = conversation(&[(1, 9_000, false); 3], true);
    let shorter = shorten(&model, "m", recent.clone(), &toolbox).await.unwrap();
    assert!(shorter[0].text().contains("ship it"));
    assert!(shorter.iter().any(|message| message.text() == "the last wish"));
    assert!(shorten(&model, "m", recent, &toolbox).await.is_err(), "the script is over");
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
