//! From the lines of a transcript back to a conversation.

use std::{
    collections::{HashMap, HashSet},
    path::Path,
    sync::Arc,
};

use super::{
    Dated, Entry, Header, Log, Parent, SessionError, Transcript, check::result_of, entry::now, find::find,
    lock, open,
};
use crate::{
    message::{Content, Message, Role},
    model::Usage,
};

/// What the model reads in place of a result that was never written.
const NO_RESULT: &str = "No result of this call was recorded: the session was cut off while the call ran or waited. \
    It may or may not have taken effect. Look at how things stand before you do it again.";

/// What stands for a beginning that is lost.
const NO_BEGINNING: &str = "[The beginning of this conversation was not recorded.]";

/// A session as its transcript tells it.
#[derive(Debug, Clone, PartialEq)]
pub struct Recovered {
    /// What it is.
    pub header: Header,
    /// The conversation. [`super::check`] holds for it.
    pub history: Vec<Arc<Message>>,
    /// Tokens of all answers.
    pub usage: Usage,
    /// US dollars of all answers, as far as prices were known.
    pub cost: Option<f64>,
    /// Complete answers.
    pub turns: u64,
    /// Calls that had no result, and their tools. They have one now, which says so.
    pub interrupted: Vec<(String, String)>,
    /// What was wrong with the transcript.
    pub complaints: Vec<String>,
}

/// Opens a session, by its id or a unique beginning of it, to go on.
pub fn resume(root: &Path, id: &str) -> Result<(Transcript, Recovered), SessionError> {
    let id = find(root, id)?;
    let (file, path) = open(root, &id, true)?;
    lock(&file, &id, &path)?;
    let log = Log::of(&file).map_err(|error| SessionError::io(&path, error))?;
    let transcript = Transcript { file, path, id, totals: log.totals, torn: log.torn };
    recover(transcript, log)
}

/// Copies a session, which may be running, and opens the copy to go on. It has an id of its own and names the
/// session it comes from.
pub fn fork(root: &Path, id: &str) -> Result<(Transcript, Recovered), SessionError> {
    let id = find(root, id)?;
    let mut log = super::read(root, &id)?;
    let parent = Parent { id, entries: log.entries.len() as u64 };
    let old = header(&log).unwrap_or_default();
    let new = Header { parent: Some(parent), started: now(), id: uuid::Uuid::now_v7().to_string(), ..old };
    let path = root.join(&new.id);
    let failed = |error| SessionError::io(&path, error);
    let mut copy = Transcript::create(root, &new).map_err(failed)?;
    log.entries.retain(|line| !matches!(line.entry, Entry::Session(_) | Entry::Ended { .. }));
    for Dated { at, entry } in &log.entries {
        copy.append_dated(entry, at.clone()).map_err(failed)?;
    }
    log.entries.insert(0, Dated { at: String::new(), entry: Entry::Session(new) });
    recover(copy, log)
}

fn header(log: &Log) -> Option<Header> {
    log.entries.iter().find_map(|line| match &line.entry {
        Entry::Session(header) => Some(header.clone()),
        _ => None,
    })
}

fn recover(mut transcript: Transcript, log: Log) -> Result<(Transcript, Recovered), SessionError> {
    let mut complaints = log.complaints.clone();
    let header = header(&log).unwrap_or_else(|| {
        complaints
            .push("the transcript has no readable first line: where the session began is not known".into());
        Header { id: transcript.id.clone(), ..Header::default() }
    });
    let (mut conversation, mut usage) = (Conversation::default(), Usage::default());
    for Dated { entry, .. } in log.entries {
        if let Entry::AnswerEnd { usage: more, .. } = &entry {
            usage += *more;
        }
        conversation.take(entry);
    }
    let (history, interrupted) = conversation.finish();
    // Written down, so that whoever opens the session next finds the same.
    for (id, _) in &interrupted {
        let result = Entry::Result { content: no_result(id) };
        transcript.append(&result).map_err(|error| SessionError::io(&transcript.path, error))?;
    }
    let (cost, turns) = (log.totals.cost, log.totals.turns);
    Ok((transcript, Recovered { header, history, usage, cost, turns, interrupted, complaints }))
}

fn no_result(id: &str) -> Content {
    let content = vec![Content::text(NO_RESULT)];
    Content::ToolResult { tool_use_id: id.to_owned(), content, is_error: true }
}

/// A conversation while it is put together.
#[derive(Default)]
struct Conversation(Vec<Item>);

enum Item {
    User(Vec<Content>),
    Answer {
        id: String,
        blocks: Vec<Content>,
        /// By call. Results come while the answer still does, and in any order.
        results: HashMap<String, Content>,
        ended: bool,
    },
}

impl Conversation {
    fn take(&mut self, entry: Entry) {
        match entry {
            Entry::User { message, .. } => self.user(message.content),
            Entry::Block { answer, content, .. } => match self.0.last_mut() {
                Some(Item::Answer { id, blocks, ended: false, .. }) if *id == answer => blocks.push(content),
                _ => self.answer(answer, vec![content], false),
            },
            Entry::AnswerEnd { answer, .. } => {
                if let Some(Item::Answer { ended, .. }) = self.find(&answer).map(|at| &mut self.0[at]) {
                    *ended = true;
                }
            }
            Entry::Discarded { answer } => {
                self.find(&answer).map(|at| self.0.remove(at));
            }
            Entry::Result { content } => self.result(content),
            Entry::Compacted { messages, .. } => {
                self.0.clear();
                for message in messages {
                    match message.role {
                        Role::Assistant => self.answer(String::new(), message.content.clone(), true),
                        Role::User => {
                            let (results, rest) =
                                message.content.iter().cloned().partition(|block| result_of(block).is_some());
                            let results: Vec<Content> = results;
                            results.into_iter().for_each(|result| self.result(result));
                            self.user(rest);
                        }
                    }
                }
            }
            Entry::Session(_) | Entry::Ended { .. } | Entry::Unknown => {}
        }
    }

    fn user(&mut self, mut content: Vec<Content>) {
        content.retain(|block| says_something(block, Role::User));
        if !content.is_empty() {
            self.0.push(Item::User(content));
        }
    }

    fn answer(&mut self, id: String, blocks: Vec<Content>, ended: bool) {
        self.0.push(Item::Answer { id, blocks, results: HashMap::new(), ended });
    }

    fn find(&self, answer: &str) -> Option<usize> {
        self.0.iter().rposition(|item| matches!(item, Item::Answer { id, .. } if id == answer))
    }

    /// Puts a result to the last answer that waits for it. One that nobody waits for is dropped.
    fn result(&mut self, result: Content) {
        let Some(call) = result_of(&result).map(str::to_owned) else { return };
        let waiting = self.0.iter_mut().rev().find_map(|item| match item {
            Item::Answer { blocks, results, .. }
                if has_call(blocks, &call) && !results.contains_key(&call) =>
            {
                Some(results)
            }
            _ => None,
        });
        if let Some(results) = waiting {
            results.insert(call, result);
        }
    }

    /// The conversation, and the calls without results.
    fn finish(self) -> (Vec<Arc<Message>>, Vec<(String, String)>) {
        let (mut history, mut missing, mut used) = (Vec::new(), Vec::new(), HashSet::new());
        for item in self.0 {
            match item {
                Item::User(content) => say(&mut history, Role::User, content),
                Item::Answer { mut blocks, mut results, .. } => {
                    blocks.retain(|block| {
                        says_something(block, Role::Assistant)
                            && !matches!(block, Content::ToolUse { id, .. } if !used.insert(id.clone()))
                    });
                    // A thought must be followed by what was thought of; providers refuse it alone.
                    while blocks.last().is_some_and(Content::is_thought) {
                        blocks.pop();
                    }
                    let mut answers = Vec::new();
                    for block in &blocks {
                        if let Content::ToolUse { id, name, .. } = block {
                            answers.push(results.remove(id).unwrap_or_else(|| {
                                missing.push((id.clone(), name.clone()));
                                no_result(id)
                            }));
                        }
                    }
                    say(&mut history, Role::Assistant, blocks);
                    say(&mut history, Role::User, answers);
                }
            }
        }
        (history.into_iter().map(Arc::new).collect(), missing)
    }
}

/// Adds to what the same speaker said last, or begins a message.
fn say(history: &mut Vec<Message>, role: Role, content: Vec<Content>) {
    if content.is_empty() {
        return;
    }
    match history.last_mut() {
        Some(last) if last.role == role => return last.content.extend(content),
        None if role == Role::Assistant => history.push(Message::user(NO_BEGINNING)),
        _ => {}
    }
    history.push(Message { role, content });
}

/// Whether a provider takes the block from this speaker. Results are put where they belong on their own.
fn says_something(block: &Content, role: Role) -> bool {
    match block {
        Content::Text { text } => !text.trim().is_empty(),
        Content::Thinking { .. } => role == Role::Assistant,
        Content::ToolUse { input, .. } => role == Role::Assistant && input.is_object(),
        Content::ToolResult { .. } => false,
        Content::Image { .. } | Content::Document { .. } => role == Role::User,
        Content::Other(value) => value.is_object(),
    }
}

fn has_call(blocks: &[Content], call: &str) -> bool {
    blocks.iter().any(|block| matches!(block, Content::ToolUse { id, .. } if id == call))
}
