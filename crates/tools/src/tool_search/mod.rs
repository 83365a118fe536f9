//! ToolSearch: find deferred tools and load them.

use gripper_runtime::{
    Access, Block, Call, Facts, Place, Tool, ToolError,
    tool::{Done, Hints, Kind, Loading, ResultBound, SessionEffect},
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// The tool. Searches the pool its call was advertised with.
pub struct ToolSearch;

/// What a call carries.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// `select:A,B` for exact names, or words to search for; `+word` must be in the name.
    #[schemars(length(min = 1, max = 1000))]
    pub query: String,
    /// The most tools to return.
    #[serde(default = "default_max")]
    #[schemars(range(min = 1, max = 50))]
    pub max_results: usize,
}

fn default_max() -> usize {
    5
}

/// The structured result.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Output {
    /// What was found, best first.
    pub matches: Vec<Match>,
    /// Names of a `select:` that do not exist.
    pub not_found: Vec<String>,
    /// How many tools are announced by name only.
    pub total_deferred_tools: usize,
    /// Servers whose tools are still to come.
    pub connecting_servers: Vec<String>,
}

/// One tool that was found.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Match {
    /// Its name.
    pub name: String,
    /// Its full description.
    pub description: String,
    /// Its input schema.
    pub input_schema: Value,
}

impl Tool for ToolSearch {
    const NAME: &'static str = "ToolSearch";
    const DESCRIPTION: &'static str = include_str!("description.md");
    const FACTS: Facts = Facts {
        title: "Find tools",
        search_hint: "find load deferred tools schemas",
        kind: Kind::Search,
        // A schema cut in half cannot be used; the number of matches keeps it in bounds.
        bound: ResultBound::Chars(200_000, gripper_runtime::results::Strategy::KeepStart),
        hints: Hints::READS,
        ..Facts::DEFAULT
    };

    type Input = Input;
    type Output = Output;

    fn examples() -> Vec<Value> {
        vec![json!({"query": "select:Sleep"}), json!({"query": "+github create issue", "max_results": 3})]
    }

    fn access(&self, _input: &Input, _place: &Place) -> Access {
        Access::nothing()
    }

    fn summary(&self, input: &Input) -> String {
        format!("search tools for \"{}\"", input.query)
    }

    async fn run(&self, input: &Input, call: &Call) -> Result<Done<Output>, ToolError> {
        let (found, not_found) = call.pool.search(&input.query, input.max_results);
        let load = found
            .iter()
            .filter(|tool| tool.spec().facts.loading == Loading::Deferrable)
            .map(|tool| tool.spec().name.to_string())
            .collect();
        let matches = found
            .iter()
            .map(|tool| Match {
                name: tool.spec().name.to_string(),
                description: tool.spec().description.to_string(),
                input_schema: tool.spec().input.value().clone(),
            })
            .collect();
        let value = Output {
            matches,
            not_found,
            total_deferred_tools: call.pool.deferrable().len(),
            connecting_servers: call.pool.connecting().to_vec(),
        };
        Ok(Done::with(value, vec![SessionEffect::LoadTools(load)]))
    }

    fn map(&self, output: &Output) -> Vec<Block> {
        let mut text = match output.matches.len() {
            0 => format!(
                "No tool matches, of {} that are announced by name only.",
                output.total_deferred_tools
            ),
            1 => "Loaded 1 tool; it can be called from now on.".to_owned(),
            count => format!("Loaded {count} tools; they can be called from now on."),
        };
        if !output.not_found.is_empty() {
            text.push_str(&format!("\nThere is no tool called {}.", output.not_found.join(", ")));
        }
        if !output.connecting_servers.is_empty() {
            text.push_str(&format!(
                "\nStill connecting, their tools may come yet: {}.",
                output.connecting_servers.join(", ")
            ));
        }
        for found in &output.matches {
            text.push_str(&format!(
                "\n\n## {}\n{}\nInput schema: {}",
                found.name, found.description, found.input_schema
            ));
        }
        vec![Block::text(text)]
    }
}

#[cfg(test)]
mod tests;
