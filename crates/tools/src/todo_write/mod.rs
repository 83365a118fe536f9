//! TodoWrite: the session's to-do list, replaced as a whole.

use std::sync::{Arc, Mutex, PoisonError};

use gripper_runtime::{
    Access, Block, Call, Facts, Place, Resource, Tool, ToolError, Use,
    permissions::Opinion,
    schema::Problem,
    tool::{Background, Done, Hints},
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Words that show an item to be a check of the work.
const CHECKING: [&str; 9] =
    ["verif", "test", "check", "review", "lint", "validat", "try out", "confirm", "inspect"];
/// So many finished items without a check deserve a hint.
const FINISHED_WITHOUT_CHECK: usize = 3;

/// The list, shared by the tool and whoever shows it.
#[derive(Debug, Clone, Default)]
pub struct TodoList(Arc<Mutex<Vec<Todo>>>);

impl TodoList {
    /// The items now.
    pub fn items(&self) -> Vec<Todo> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Puts a new list in place and gives the old one back.
    fn replace(&self, items: Vec<Todo>) -> Vec<Todo> {
        std::mem::replace(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner), items)
    }
}

/// One item.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Todo {
    /// What is to be done, in the imperative.
    #[schemars(length(min = 1))]
    pub content: String,
    /// How far it is.
    pub status: Status,
    /// The same in progress, shown while it is being done.
    #[serde(rename = "activeForm", default, skip_serializing_if = "Option::is_none")]
    pub active_form: Option<String>,
}

/// How far an item is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// Not begun.
    Pending,
    /// Being done now.
    InProgress,
    /// Done.
    Completed,
}

impl Status {
    /// Its name in calls and results.
    pub fn name(self) -> &'static str {
        match self {
            Status::Pending => "pending",
            Status::InProgress => "in_progress",
            Status::Completed => "completed",
        }
    }
}

/// What a call carries.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// The whole new list; an empty one clears it.
    pub todos: Vec<Todo>,
}

/// The structured result.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Output {
    /// The list before.
    pub old_todos: Vec<Todo>,
    /// The list now.
    pub new_todos: Vec<Todo>,
    /// Whether a step that checks the work is missing.
    pub check_suggested: bool,
}

/// The tool.
pub struct TodoWrite {
    list: TodoList,
}

impl TodoWrite {
    /// Works on this list.
    pub fn new(list: TodoList) -> Self {
        Self { list }
    }
}

impl Tool for TodoWrite {
    const NAME: &'static str = "TodoWrite";
    const DESCRIPTION: &'static str = include_str!("description.md");
    const FACTS: Facts = Facts {
        title: "Update to-dos",
        search_hint: "to-do list plan steps progress tasks",
        background: Background::Always,
        hints: Hints { destructive: false, idempotent: true, ..Hints::CHANGES },
        ..Facts::DEFAULT
    };

    type Input = Input;
    type Output = Output;

    fn check(&self, input: &Input) -> Vec<Problem> {
        let mut problems = Vec::new();
        for (at, todo) in input.todos.iter().enumerate() {
            if todo.content.trim().is_empty() {
                problems.push(Problem::found(
                    format!("/todos/{at}/content"),
                    "blank",
                    "words that say what is to be done",
                    "only white space",
                ));
            }
        }
        let busy: Vec<usize> = input
            .todos
            .iter()
            .enumerate()
            .filter(|(_, todo)| todo.status == Status::InProgress)
            .map(|(at, _)| at)
            .collect();
        for at in busy.iter().skip(1) {
            problems.push(Problem::found(
                format!("/todos/{at}/status"),
                "second_in_progress",
                "at most one item in_progress",
                format!("item {} is in_progress already", busy[0]),
            ));
        }
        problems
    }

    fn access(&self, _input: &Input, _place: &Place) -> Access {
        Access::nothing().uses(Resource::Session("todo".into()), Use::Write)
    }

    fn opinion(&self, _input: &Input) -> Opinion {
        Opinion::Allow("only changes the session's own list".into())
    }

    fn summary(&self, input: &Input) -> String {
        format!("set {} to-dos", input.todos.len())
    }

    async fn run(&self, input: &Input, _call: &Call) -> Result<Done<Output>, ToolError> {
        let old_todos = self.list.replace(input.todos.clone());
        Ok(Output { old_todos, check_suggested: lacks_check(&input.todos), new_todos: input.todos.clone() }
            .into())
    }

    fn map(&self, output: &Output) -> Vec<Block> {
        let mut text = match output.new_todos.len() {
            0 => "The to-do list is empty now.".to_owned(),
            count => {
                let done = output.new_todos.iter().filter(|todo| todo.status == Status::Completed).count();
                format!("The to-do list is set, {done} of {count} done:")
            }
        };
        for todo in &output.new_todos {
            let mark = match todo.status {
                Status::Pending => ' ',
                Status::InProgress => '>',
                Status::Completed => 'x',
            };
            text.push_str(&format!("\n[{mark}] {}", todo.content));
        }
        if output.check_suggested {
            text.push_str("\n\nNothing on the list checks the work. Consider adding a step that does: run the tests, or try it out.");
        }
        vec![Block::text(text)]
    }
}

/// Several things are done and nothing, done or planned, looks like a check.
fn lacks_check(todos: &[Todo]) -> bool {
    let finished = todos.iter().filter(|todo| todo.status == Status::Completed).count();
    let checks = |todo: &Todo| {
        let words = todo.content.to_lowercase();
        CHECKING.iter().any(|stem| words.contains(stem))
    };
    finished >= FINISHED_WITHOUT_CHECK && !todos.iter().any(checks)
}

#[cfg(test)]
mod tests;
