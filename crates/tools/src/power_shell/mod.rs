//! PowerShell: the same as Bash with `pwsh`, where that is installed.

use std::{path::Path, sync::Arc, time::Duration};

use gripper_process::find_program;
use gripper_runtime::{
    Access, Block, Call, Facts, Place, Tool, ToolError, permissions::Opinion, schema::Problem, tool::Done,
};
use serde_json::{Value, json};

use crate::bash::{self, Bash};

/// How a text is given to it.
const SHELL: &[&str] = &["pwsh", "-NoLogo", "-NoProfile", "-NonInteractive", "-Command"];

/// The tool.
pub struct PowerShell {
    bash: Bash,
    settings: Arc<bash::Settings>,
}

impl PowerShell {
    /// The tool of a session; `bash` is how commands are run in it.
    pub fn new(bash: Bash, settings: Arc<bash::Settings>) -> Self {
        Self { bash: bash.with_shell(SHELL), settings }
    }
}

impl Tool for PowerShell {
    const NAME: &'static str = "PowerShell";
    const DESCRIPTION: &'static str = include_str!("description.md");
    const FACTS: Facts = Facts {
        title: "Run PowerShell",
        aliases: &[],
        search_hint: "run execute powershell pwsh cmdlet script",
        ..Bash::FACTS
    };

    type Input = bash::Input;
    type Output = bash::Output;

    fn examples() -> Vec<Value> {
        vec![json!({"command": "Get-ChildItem -Recurse -Filter *.psm1", "description": "List the modules"})]
    }

    fn available(&self) -> Result<(), String> {
        let found = find_program("pwsh".as_ref(), Path::new("/"), &self.settings.env);
        found
            .map(drop)
            .map_err(|_| "there is no pwsh on the PATH: install PowerShell, or use Bash".to_owned())
    }

    fn check(&self, input: &bash::Input) -> Vec<Problem> {
        self.bash.check(input)
    }

    /// Its text is no bash: declared as a command it would be read as one, and rules for Bash would let through
    /// what means something else here.
    fn access(&self, _input: &bash::Input, _place: &Place) -> Access {
        Access::code()
    }

    fn opinion(&self, input: &bash::Input) -> Opinion {
        match self.bash.opinion(input) {
            Opinion::None => Opinion::Ask {
                reason: "what PowerShell would do is not known beforehand".into(),
                firm: false,
            },
            other => other,
        }
    }

    fn time_limit(&self, input: &bash::Input) -> Duration {
        self.bash.time_limit(input)
    }

    fn summary(&self, input: &bash::Input) -> String {
        self.bash.summary(input)
    }

    async fn run(&self, input: &bash::Input, call: &Call) -> Result<Done<bash::Output>, ToolError> {
        self.bash.run(input, call).await
    }

    fn map(&self, output: &bash::Output) -> Vec<Block> {
        self.bash.map(output)
    }
}

#[cfg(test)]
mod tests;
