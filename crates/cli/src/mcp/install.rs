//! `gripper mcp install`: what makes a client use Gripper.

use std::path::{Path, PathBuf};

use anyhow::Context;
use gripper_runtime::environment::{Environment, inherited, own_path};
use serde_json::{Map, Value, json};

use crate::{
    exit::{Exit, UsageError},
    show,
};

#[derive(clap::Args)]
pub(crate) struct Args {
    /// The client
    #[arg(value_parser = clap::builder::PossibleValuesParser::new(CLIENTS.iter().map(|client| client.name)))]
    client: String,
    /// Write it into the client's file instead of printing it
    #[arg(long)]
    write: bool,
}

/// How a client is told of a server.
struct Client {
    name: &'static str,
    /// Its file: below the home directory, or the project's.
    file: &'static str,
    in_home: bool,
    shape: Shape,
}

/// The form of the entry.
enum Shape {
    /// An object under this key: `{"command": …, "args": […]}`.
    Json(&'static str),
    /// The same with `"type": "stdio"`.
    TypedJson(&'static str),
    /// Program and arguments in one list.
    ListJson(&'static str),
    Toml,
    Yaml,
}

const CLIENTS: &[Client] = &[
    Client { name: "claude-code", file: ".mcp.json", in_home: false, shape: Shape::Json("mcpServers") },
    Client { name: "claude-desktop", file: DESKTOP, in_home: true, shape: Shape::Json("mcpServers") },
    Client { name: "codex", file: ".codex/config.toml", in_home: true, shape: Shape::Toml },
    Client { name: "cursor", file: ".cursor/mcp.json", in_home: false, shape: Shape::Json("mcpServers") },
    Client { name: "gemini", file: ".gemini/settings.json", in_home: true, shape: Shape::Json("mcpServers") },
    Client { name: "goose", file: ".config/goose/config.yaml", in_home: true, shape: Shape::Yaml },
    Client { name: "opencode", file: "opencode.json", in_home: false, shape: Shape::ListJson("mcp") },
    Client { name: "vscode", file: ".vscode/mcp.json", in_home: false, shape: Shape::TypedJson("servers") },
    Client {
        name: "windsurf",
        file: ".codeium/windsurf/mcp_config.json",
        in_home: true,
        shape: Shape::Json("mcpServers"),
    },
    Client {
        name: "zed",
        file: ".config/zed/settings.json",
        in_home: true,
        shape: Shape::Json("context_servers"),
    },
];

const DESKTOP: &str = if cfg!(target_os = "macos") {
    "Library/Application Support/Claude/claude_desktop_config.json"
} else {
    ".config/Claude/claude_desktop_config.json"
};

pub(crate) fn run(args: &Args, environment: &Environment) -> anyhow::Result<Exit> {
    let client = CLIENTS.iter().find(|client| client.name == args.client);
    let client = client.context("the client is one of those that clap lets through")?;
    let base = if client.in_home { &environment.home } else { &environment.cwd };
    let base = base.as_ref().ok_or_else(|| UsageError("HOME is not set, so there is no such file".into()))?;
    let (file, program) = (base.join(client.file), program());
    if args.write {
        return write(&file, client, &program);
    }
    show::note(&format!("for {}, into {}:", client.name, file.display()));
    show::line(&text(client, &program))?;
    Ok(Exit::Ok)
}

/// What a client starts: the plain name where that leads here, so that the file can be shared.
fn program() -> String {
    let Some(own) = own_path() else { return "gripper".to_owned() };
    let named = own.file_name().and_then(|name| {
        let found = gripper_process::find_program(name, Path::new("/"), &inherited()).ok()?;
        (found.canonicalize().ok() == own.canonicalize().ok()).then_some(name)
    });
    named.unwrap_or(own.as_os_str()).to_string_lossy().into_owned()
}

fn entry(shape: &Shape, program: &str) -> Option<(&'static str, Value)> {
    Some(match shape {
        Shape::Json(key) => (*key, json!({ "command": program, "args": ["mcp"] })),
        Shape::TypedJson(key) => (*key, json!({ "type": "stdio", "command": program, "args": ["mcp"] })),
        Shape::ListJson(key) => {
            (*key, json!({ "type": "local", "command": [program, "mcp"], "enabled": true }))
        }
        Shape::Toml | Shape::Yaml => return None,
    })
}

fn text(client: &Client, program: &str) -> String {
    let quoted = Value::from(program);
    match (&client.shape, entry(&client.shape, program)) {
        (_, Some((key, entry))) => {
            serde_json::to_string_pretty(&json!({ key: { "gripper": entry } })).unwrap_or_default()
        }
        (Shape::Yaml, None) => format!(
            "extensions:\n  gripper:\n    type: stdio\n    name: gripper\n    enabled: true\n    cmd: {quoted}\n    args: [mcp]\n    timeout: 600"
        ),
        (_, None) => format!("[mcp_servers.gripper]\ncommand = {quoted}\nargs = [\"mcp\"]"),
    }
}

fn write(file: &Path, client: &Client, program: &str) -> anyhow::Result<Exit> {
    let Some((key, entry)) = entry(&client.shape, program) else {
        let shown = text(client, program);
        return Err(UsageError(format!(
            "{} is not JSON, and is not rewritten here; add this to it:\n\n{shown}",
            file.display()
        ))
        .into());
    };
    let before = match std::fs::read_to_string(file) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => String::new(),
        Err(error) => return Err(UsageError(format!("{}: {error}", file.display())).into()),
    };
    let mut whole: Map<String, Value> = match before.trim() {
        "" => Map::new(),
        json => serde_json::from_str(json).map_err(|error| {
            let shown = text(client, program);
            UsageError(format!(
                "{} is not plain JSON ({error}), so it was left as it is; add this to it:\n\n{shown}",
                file.display()
            ))
        })?,
    };
    let servers = whole.entry(key).or_insert_with(|| json!({}));
    let servers = servers.as_object_mut().ok_or_else(|| {
        UsageError(format!("{}: \"{key}\" is not an object, so the file was left as it is", file.display()))
    })?;
    servers.insert("gripper".to_owned(), entry);
    replace(file, &format!("{}\n", serde_json::to_string_pretty(&whole)?))?;
    show::note(&format!("{} now has the server gripper: restart {}", file.display(), client.name));
    Ok(Exit::Ok)
}

/// Puts a file in place whole, or not at all.
fn replace(file: &Path, text: &str) -> anyhow::Result<()> {
    let folder: PathBuf = file.parent().context("a file is in a folder")?.to_owned();
    std::fs::create_dir_all(&folder).with_context(|| format!("{} could not be made", folder.display()))?;
    let temporary = tempfile::NamedTempFile::new_in(&folder)?;
    std::fs::write(temporary.path(), text)?;
    temporary.persist(file).with_context(|| format!("{} could not be written", file.display()))?;
    Ok(())
}
