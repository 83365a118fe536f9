//! The keys of settings files as types. The schemas that are shipped and checked against are made from them,
//! and the comments here are the texts of those schemas.

use std::{collections::BTreeMap, sync::LazyLock};

use gripper_permissions::Mode;
use schemars::{JsonSchema, generate::SchemaSettings};
use serde_json::{Map, Value};

use super::Kind;
use crate::schema::InputSchema;

/// A settings file. Keys that are not listed are kept and ignored.
#[derive(Debug, JsonSchema)]
#[schemars(rename_all = "camelCase")]
pub struct SettingsFile {
    /// Where this schema lives, for editors.
    #[schemars(rename = "$schema")]
    pub schema: Option<String>,
    /// What calls may do.
    pub permissions: Option<PermissionKeys>,
    /// What runs around calls, by event.
    pub hooks: Option<HookKeys>,
    /// Runs no hooks. Those of managed policy stay unless managed policy says this itself.
    pub disable_all_hooks: Option<bool>,
    /// Environment variables for commands.
    pub env: Option<BTreeMap<String, String>>,
    /// How calls are run.
    pub executor: Option<ExecutorKeys>,
    /// How much of results is shown and kept.
    pub results: Option<ResultKeys>,
    /// Changes to the table of paths that may hold secrets.
    pub sensitive_paths: Option<SensitiveKeys>,
    /// The language model to use: NAME or PROVIDER/NAME.
    pub model: Option<String>,
    /// The look of the terminal.
    pub theme: Option<String>,
    /// Settings of parts with keys of their own.
    #[schemars(flatten)]
    pub parts: PartKeys,
}

/// Settings of parts with keys of their own.
#[derive(Debug, JsonSchema)]
#[schemars(rename_all = "camelCase")]
pub struct PartKeys {
    /// Models by use.
    pub models: Option<ModelKeys>,
    /// Whom models are asked of, by name; anthropic and openai are known and can be changed.
    pub providers: Option<BTreeMap<String, ProviderKeys>>,
    /// What models cost, by name or PROVIDER/NAME.
    pub prices: Option<BTreeMap<String, PriceKeys>>,
    /// Agents that agents start.
    pub agents: Option<AgentKeys>,
    /// Interpreters that models may run code in.
    pub repl: Option<ReplKeys>,
    /// Confinement of commands.
    pub sandbox: Option<SandboxKeys>,
    /// How commands are run.
    pub bash: Option<BashKeys>,
    /// Fetching of pages.
    pub web_fetch: Option<Map<String, Value>>,
    /// Searching the web.
    pub web_search: Option<Map<String, Value>>,
    /// Servers of further tools, by name.
    pub mcp_servers: Option<BTreeMap<String, ServerKeys>>,
    /// Servers of a project's .mcp.json that may be started although the project is not trusted.
    pub enabled_mcpjson_servers: Option<Vec<String>>,
    /// Servers of a project's .mcp.json that are never started.
    pub disabled_mcpjson_servers: Option<Vec<String>>,
    /// Starts every server of a project's .mcp.json, also where the project is not trusted.
    pub enable_all_project_mcp_servers: Option<bool>,
    /// When tools are announced by name only: auto, auto:N, always or never.
    pub tool_search: Option<String>,
}

/// Models by use, each as NAME or PROVIDER/NAME.
#[derive(Debug, JsonSchema)]
pub struct ModelKeys {
    /// For the conversation; counts before model.
    pub main: Option<String>,
    /// For small things on the side; the main one unless given.
    pub fast: Option<String>,
}

/// Whom models are asked of.
#[derive(Debug, JsonSchema)]
#[schemars(rename_all = "camelCase")]
pub struct ProviderKeys {
    /// How it is spoken to: the Messages API, Chat Completions or the Responses API.
    #[schemars(rename = "type", extend("enum" = ["anthropic", "openai", "openai-responses"]))]
    pub kind: Option<String>,
    /// Where its API begins, such as http://localhost:8080/v1.
    pub base_url: Option<String>,
    /// The environment variable that holds its key.
    pub api_key_env: Option<String>,
    /// A command that prints its key: a program and its arguments with blanks between them, without a shell.
    pub api_key_helper: Option<String>,
    /// Further headers of every request.
    pub headers: Option<BTreeMap<String, String>>,
    /// Tokens that its models can look at.
    #[schemars(range(min = 1_000, max = 100_000_000))]
    pub window: Option<u64>,
    /// Tokens of the longest answer.
    #[schemars(range(min = 1, max = 10_000_000))]
    pub max_tokens: Option<u32>,
    /// Milliseconds for which nothing may come; 90000 unless given.
    #[schemars(range(min = 1, max = 86_400_000))]
    pub idle_timeout_ms: Option<u64>,
    /// Milliseconds that a connection may take; 10000 unless given.
    #[schemars(range(min = 1, max = 600_000))]
    pub connect_timeout_ms: Option<u64>,
}

/// What a model costs: US dollars for a million tokens.
#[derive(Debug, JsonSchema)]
#[schemars(rename_all = "camelCase")]
pub struct PriceKeys {
    /// Read anew.
    #[schemars(range(min = 0.0))]
    pub input: Option<f64>,
    /// Written.
    #[schemars(range(min = 0.0))]
    pub output: Option<f64>,
    /// Read and kept for next time.
    #[schemars(range(min = 0.0))]
    pub cache_write: Option<f64>,
    /// Known from an earlier request.
    #[schemars(range(min = 0.0))]
    pub cache_read: Option<f64>,
}

/// Agents that agents start.
#[derive(Debug, JsonSchema)]
#[schemars(rename_all = "camelCase")]
pub struct AgentKeys {
    /// How deep agents may start others; 1, which is the main agent only, unless given.
    #[schemars(range(min = 1, max = 3))]
    pub max_depth: Option<u8>,
}

/// Confinement of commands.
#[derive(Debug, JsonSchema)]
#[schemars(rename_all = "camelCase")]
pub struct SandboxKeys {
    /// Confines every command to the working directories and to the hosts under network.
    pub enabled: Option<bool>,
    /// Runs nothing where commands cannot be confined.
    pub fail_if_unavailable: Option<bool>,
    /// Whether a person may agree to a command without a cage; yes unless this is false.
    pub allow_unsandboxed_commands: Option<bool>,
    /// Whom commands in the sandbox may talk to.
    pub network: Option<NetworkKeys>,
    /// How much a command may use.
    pub limits: Option<LimitKeys>,
}

/// Whom commands in the sandbox may talk to.
#[derive(Debug, JsonSchema)]
#[schemars(rename_all = "camelCase")]
pub struct NetworkKeys {
    /// Hosts: a name, all below one (*.example.com) or an address, with :port if only that one is meant.
    pub allowed_domains: Option<Vec<String>>,
    /// Hosts that stay out of reach, whoever allows them.
    pub denied_domains: Option<Vec<String>>,
}

/// How much a command may use.
#[derive(Debug, JsonSchema)]
#[schemars(rename_all = "camelCase")]
pub struct LimitKeys {
    /// Megabytes of memory: of the whole command in a cgroup, else of each process.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub memory_mb: Option<u32>,
    /// Processes and threads at once.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub processes: Option<u32>,
    /// Seconds of processor time of each process.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub cpu_seconds: Option<u32>,
    /// Megabytes of each file it writes.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub file_size_mb: Option<u32>,
}

/// How commands are run.
#[derive(Debug, JsonSchema)]
#[schemars(rename_all = "camelCase")]
pub struct BashKeys {
    /// Milliseconds that a command has when it does not say; 120000 unless given.
    #[schemars(range(min = 1, max = 600_000))]
    pub default_timeout_ms: Option<u32>,
    /// The most milliseconds that a command can ask for; 600000 unless given.
    #[schemars(range(min = 1, max = 600_000))]
    pub max_timeout_ms: Option<u32>,
    /// Ends what is out of time, instead of letting it go on in the background.
    pub kill_on_timeout: Option<bool>,
    /// Hands down variables whose names look like secrets.
    pub keep_secrets: Option<bool>,
    /// Whether commands find what the start files of your shell set; true unless given.
    pub start_files: Option<bool>,
}

/// Interpreters that models may run code in.
#[derive(Debug, JsonSchema)]
pub struct ReplKeys {
    /// Whether there is a tool for them.
    pub enabled: Option<bool>,
}

/// A server of further tools: a program, or an address. In command, args, env, url and headers `${NAME}` and
/// `${NAME:-default}` stand for environment variables.
#[derive(Debug, JsonSchema)]
#[schemars(rename_all = "camelCase")]
pub struct ServerKeys {
    /// stdio (a program; the default with command), http, or sse (the older form of http).
    #[schemars(rename = "type", extend("enum" = ["stdio", "http", "sse", "streamable-http"]))]
    pub kind: Option<String>,
    /// For stdio: the program.
    pub command: Option<String>,
    /// For stdio: its arguments.
    pub args: Option<Vec<String>>,
    /// For stdio: variables beside the few that every server gets.
    pub env: Option<BTreeMap<String, String>>,
    /// For http and sse: the address.
    pub url: Option<String>,
    /// For http and sse: headers of every request.
    pub headers: Option<BTreeMap<String, String>>,
    /// For http and sse: how to sign in, where the server asks for that.
    pub oauth: Option<OAuthKeys>,
    /// How long a call may stay without a word: seconds, or milliseconds from 1000 on.
    #[schemars(range(min = 0.0))]
    pub timeout: Option<f64>,
    /// Sends the schemas of its tools with every request.
    pub always_load: Option<bool>,
    /// Believes what it says about which of its tools only read. Not counted in a project's shared files.
    pub trusted: Option<bool>,
    /// Is not started.
    pub disabled: Option<bool>,
}

/// How to sign in to a server. Most need none of this.
#[derive(Debug, JsonSchema)]
#[schemars(rename_all = "camelCase")]
pub struct OAuthKeys {
    /// The client that was registered with the server beforehand.
    pub client_id: Option<String>,
    /// Its secret, best as `${NAME}`.
    pub client_secret: Option<String>,
    /// Where a description of the client is published, for servers that read it there.
    pub client_metadata_url: Option<String>,
    /// The rights to ask for, instead of those that the server names.
    pub scopes: Option<Vec<String>>,
    /// The port of this machine that the browser comes back to, instead of a free one.
    pub callback_port: Option<u16>,
}

/// What calls may do. A permissions.json holds just this.
#[derive(Debug, JsonSchema)]
#[schemars(rename_all = "camelCase")]
pub struct PermissionKeys {
    /// Rules for what runs without a question.
    pub allow: Option<Vec<RuleEntry>>,
    /// Rules for what is always asked about.
    pub ask: Option<Vec<RuleEntry>>,
    /// Rules for what never runs.
    pub deny: Option<Vec<RuleEntry>>,
    /// The mode to start in.
    #[schemars(extend("enum" = Mode::ALL.map(Mode::name)))]
    pub default_mode: Option<String>,
    /// Further folders that calls may work in; relative ones start at the project's folder.
    pub additional_directories: Option<Vec<String>>,
    /// "disable" takes the mode bypassPermissions away, whichever file says so.
    #[schemars(extend("type" = ["string", "boolean"]))]
    pub disable_bypass_permissions_mode: Option<String>,
    /// What becomes of commands that only query the network.
    #[schemars(extend("enum" = ["ask", "allow"]))]
    pub network_reads: Option<String>,
    /// Older name: tools to allow.
    #[schemars(rename = "allowed_tools")]
    pub allowed_tools: Option<Vec<String>>,
    /// Older name: tools to deny.
    #[schemars(rename = "disabled_tools")]
    pub disabled_tools: Option<Vec<String>>,
    /// Older name: what WebFetch may reach.
    #[schemars(rename = "pre_approval")]
    pub pre_approval: Option<PreApproval>,
}

/// A rule, alone or with examples of what it must cover and what it must not.
#[derive(Debug, JsonSchema)]
#[schemars(untagged)]
pub enum RuleEntry {
    /// The rule.
    Text(String),
    /// The rule with examples.
    WithExamples {
        /// The rule.
        rule: String,
        /// Inputs it must and must not cover.
        examples: Option<ExampleKeys>,
    },
}

/// Inputs that a rule must and must not cover.
#[derive(Debug, JsonSchema)]
pub struct ExampleKeys {
    /// Covered.
    #[schemars(rename = "match")]
    pub matches: Option<Vec<String>>,
    /// Not covered.
    pub not_match: Option<Vec<String>>,
}

/// Older shape of rules for WebFetch.
#[derive(Debug, JsonSchema)]
pub struct PreApproval {
    /// Domains to allow.
    pub allowed_domains: Option<Vec<String>>,
    /// Domains to deny.
    pub blocked_domains: Option<Vec<String>>,
    /// Allow every page; plain http is upgraded.
    pub auto_approve_https: Option<bool>,
}

/// What runs around calls, by event. A hooks.json holds just this.
#[derive(Debug, JsonSchema)]
pub struct HookKeys {
    /// Who may rewrite the input of a call, and whether it is checked again: every hook, and it is; managed
    /// hooks only, and it is; every hook, and it is not.
    #[schemars(rename = "updatedInput", extend("enum" = ["revalidate", "policyOnly", "trust"]))]
    pub updated_input: Option<String>,
    /// Groups of hooks by event.
    #[schemars(flatten)]
    pub events: BTreeMap<String, Vec<HookGroup>>,
}

/// Hooks for the calls that a matcher fits.
#[derive(Debug, JsonSchema)]
pub struct HookGroup {
    /// Names joined by | or a regular expression; all calls without it.
    pub matcher: Option<String>,
    /// What to run.
    pub hooks: Vec<HookEntry>,
}

/// One hook.
#[derive(Debug, JsonSchema)]
#[schemars(rename_all = "camelCase")]
pub struct HookEntry {
    /// command, http, mcp_tool, prompt or agent.
    #[schemars(rename = "type")]
    pub kind: String,
    /// For command: what to run, by a shell unless args are given.
    pub command: Option<String>,
    /// For command: arguments, to run it without a shell.
    pub args: Option<Vec<String>>,
    /// For command: what it may change, nothing or the working directories. Either way it has no network.
    #[schemars(extend("enum" = ["read-only", "project"]))]
    pub confine: Option<String>,
    /// For http: where to send the event.
    pub url: Option<String>,
    /// For mcp_tool: the server.
    pub server: Option<String>,
    /// For mcp_tool: its tool.
    pub tool: Option<String>,
    /// For mcp_tool: what the tool is given, with ${tool_input.name} for parts of the event; without it, the
    /// whole event.
    pub input: Option<Map<String, Value>>,
    /// For prompt and agent: what the model should judge; $ARGUMENTS stands for the event.
    pub prompt: Option<String>,
    /// For prompt and agent: the model; the fast one unless given.
    pub model: Option<String>,
    /// Seconds it may take.
    #[schemars(range(min = 0.0))]
    pub timeout: Option<f64>,
    /// A rule: runs only for the calls it covers.
    #[schemars(rename = "if")]
    pub condition: Option<String>,
    /// What becomes of the call if the hook fails: allow, ask or block.
    pub on_failure: Option<String>,
    /// Runs at most once in a session.
    pub once: Option<bool>,
}

/// How calls are run.
#[derive(Debug, JsonSchema)]
#[schemars(rename_all = "camelCase")]
pub struct ExecutorKeys {
    /// Calls that run at once.
    #[schemars(range(min = 1, max = 256))]
    pub max_concurrency: Option<u32>,
    /// Which calls behind a failing command are given up.
    #[schemars(extend("enum" = ["conflicting", "all", "never"]))]
    pub sibling_cancel: Option<String>,
}

/// How much of results is shown and kept.
#[derive(Debug, JsonSchema)]
#[schemars(rename_all = "camelCase")]
pub struct ResultKeys {
    /// Characters that the results of one turn may have together.
    #[schemars(range(min = 1_000, max = 10_000_000))]
    pub turn_budget: Option<u32>,
    /// Days after which stored results are removed.
    #[schemars(range(min = 1, max = 3_650))]
    pub keep_days: Option<u32>,
    /// Megabytes of stored results, of all sessions together.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub store_megabytes: Option<u32>,
}

/// Changes to the table of paths that may hold secrets.
#[derive(Debug, JsonSchema)]
pub struct SensitiveKeys {
    /// Patterns to add.
    pub add: Option<Vec<String>>,
    /// Patterns to take out.
    pub remove: Option<Vec<String>>,
}

/// The schema of one kind of file.
pub fn schema(kind: Kind) -> &'static InputSchema {
    static SCHEMAS: LazyLock<[InputSchema; 4]> = LazyLock::new(|| {
        let servers = made::<BTreeMap<String, ServerKeys>>();
        [made::<SettingsFile>(), made::<PermissionKeys>(), made::<HookKeys>(), servers]
    });
    &SCHEMAS[kind as usize]
}

fn made<T: JsonSchema>() -> InputSchema {
    let settings = SchemaSettings::draft2020_12().with(|settings| settings.inline_subschemas = true);
    InputSchema::trusted(settings.into_generator().into_root_schema_for::<T>().to_value())
}

/// The names that the schema of `kind` knows at `place`, a JSON pointer into it.
pub(super) fn known(kind: Kind, place: &str) -> impl Iterator<Item = &'static str> {
    let properties = schema(kind).value().pointer(&format!("{place}/properties")).and_then(Value::as_object);
    properties.into_iter().flat_map(Map::keys).map(String::as_str)
}
