//! What the agent is told of its surroundings.

use std::{
    collections::HashSet,
    path::PathBuf,
    sync::{Arc, Mutex, PoisonError},
};

use gripper_agent::{
    context::{self, Instructions, News},
    turn::Host,
};
use gripper_runtime::{Event, Toolbox};

use crate::{session::Session, show};

/// The session, and what the model was told of the project so far.
pub(super) struct Around(Mutex<Known>);

struct Known {
    session: Session,
    toolbox: Arc<Toolbox>,
    instructions: Instructions,
    /// Files whose folders were looked at.
    looked_at: HashSet<PathBuf>,
}

impl Around {
    pub(super) fn new(session: Session, instructions: Instructions) -> Self {
        let toolbox = session.toolbox.clone();
        Self(Mutex::new(Known { session, toolbox, instructions, looked_at: HashSet::new() }))
    }

    /// The session, to be ended.
    pub(super) fn into_session(self) -> Session {
        self.0.into_inner().unwrap_or_else(PoisonError::into_inner).session
    }
}

impl Host for Around {
    fn refresh(&self) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).session.refresh();
    }

    fn look_around(&self, prompted: bool) -> Option<String> {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.session.refresh();
        let nested = known.nested_instructions();
        let changed = match known.toolbox.changed_files() {
            Some(Event::ChangedFiles { files }) => files,
            _ => Vec::new(),
        };
        let todos = known.session.todos().items();
        let todos = todos.iter().filter(|_| prompted);
        let todos: Vec<_> = todos.map(|todo| (todo.content.clone(), todo.status.name().to_owned())).collect();
        let tasks = known.session.tasks.finished();
        let messages = known.toolbox.take_messages();
        let news = News { changed: &changed, todos: &todos, tasks: &tasks, messages: &messages };
        let told: Vec<String> = nested.into_iter().chain(context::reminders(&news)).collect();
        (!told.is_empty()).then(|| told.join("\n"))
    }
}

impl Known {
    /// Instructions of folders that the model has come to since.
    fn nested_instructions(&mut self) -> Option<String> {
        let files = self.toolbox.files().ledger.known();
        let policy = self.toolbox.policy();
        let (before, complaints) = (self.instructions.files.len(), self.instructions.complaints.len());
        for path in files {
            if self.looked_at.insert(path.clone()) {
                context::nested(&mut self.instructions, &policy, &path);
            }
        }
        self.instructions.complaints[complaints..].iter().for_each(|what| show::warn(what));
        context::told(&self.instructions.files[before..])
    }
}
