//! The `gripper` binary: one file per subcommand, wiring, exit codes.

mod ask;
mod audit;
mod basis;
mod completions;
mod demo;
mod doctor;
mod exit;
mod explain;
mod hooks;
mod interrupt;
mod lines;
mod live;
mod mcp;
mod print;
mod replay;
mod rules;
mod run;
mod sandbox;
mod session;
mod sessions;
mod settings;
mod show;
mod tasks;
mod tool;
mod tools;
mod trust;
mod undo;
mod worker;

use std::{
    io::Write,
    panic::{AssertUnwindSafe, catch_unwind},
    process::ExitCode,
};

use clap::{Parser, Subcommand};
use gripper_runtime::environment::{BACKENDS_NAME, Environment, own_program};

use exit::Exit;

/// Why this one: `docs/decisions/0019-allocator.md`.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// The tool runtime of a coding agent: checks, schedules, runs and accounts for tool calls.
#[derive(Parser)]
#[command(name = "gripper", version, arg_required_else_help = true, max_term_width = 100)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
struct Cli {
    #[command(subcommand)]
    command: Option<Command>,
    #[command(flatten)]
    print: Box<print::Args>,
}

#[derive(Subcommand)]
enum Command {
    /// List the tools, or print them with their schemas
    Tools(tools::Args),
    /// Run one call and print its result
    Tool(tool::Args),
    /// Run the calls of a file as one turn
    Run(run::Args),
    /// Show what a command would do and what the policy says to it
    Explain(explain::Args),
    /// List hooks with what is wrong with them, or fire them by hand
    Hooks(hooks::Args),
    /// List the rules in force, say what is wrong with them, or check the examples they carry
    Rules(rules::Args),
    /// Show the settings in force and where each comes from, or check and change a file
    Settings(settings::Args),
    /// Trust the settings of a project
    Trust(trust::Args),
    /// List sessions, show what was said and done in one, or delete some
    Sessions(sessions::Args),
    /// Take back what calls changed in this project
    Undo(undo::Args),
    /// Run the calls of a recorded session once more, against the files as they are now
    Replay(replay::Args),
    /// List the background tasks of running sessions, show the output of one, or stop it
    Tasks(tasks::Args),
    /// Run a command that can write nothing and reach nobody
    Sandbox(sandbox::Args),
    /// Show what works on this machine and what is missing
    Doctor(doctor::Args),
    /// Serve the tools to any client of the Model Context Protocol
    Mcp(Box<mcp::Args>),
    /// Look after the audit log
    Audit(audit::Args),
    /// Show a scripted turn on a temporary project
    Demo(demo::Args),
    /// Print a completion script for a shell
    Completions(completions::Args),
    /// Parse foreign bytes from standard input, for the process that asks for it
    #[command(hide = true)]
    Worker,
    /// Wait for the process that started it to be gone, then end what it left running
    #[command(hide = true)]
    Watchdog {
        /// Whose children
        owner: String,
    },
}

fn main() -> ExitCode {
    // A panic is our bug: the person gets one line, not a backtrace in the middle of the screen.
    std::panic::set_hook(Box::new(|_| {}));
    let cli = Cli::try_parse().unwrap_or_else(|error| {
        // A word that is no command, or stands behind options, is taken for a prompt, and what follows is in the way.
        if error.kind() == clap::error::ErrorKind::ArgumentConflict
            && let Some(word) = misplaced(&arguments())
        {
            show::error(&no_command(&word));
            std::process::exit(2);
        }
        if error.use_stderr() {
            last_line(&error.render().to_string());
        }
        error.exit()
    });
    let outcome = catch_unwind(AssertUnwindSafe(|| dispatch(cli)));
    let code = match outcome {
        Ok(Ok(exit)) => exit,
        Ok(Err(error)) => exit::report(&error),
        Err(panic) => {
            last_line("gripper has a bug and stopped");
            exit::report_panic(panic.as_ref())
        }
    };
    // A reader that went away is not an error worth words.
    anstream::stdout().flush().ok();
    code.into()
}

const SAY_WHAT: &str =
    "say what to do: gripper -p \"PROMPT\" works on a prompt, gripper --help lists the commands";

/// The word that should be a command and is none, or the command that stands behind options.
fn misplaced(arguments: &[String]) -> Option<String> {
    let is_command = |word: &&String| command_line().find_subcommand(word).is_some();
    match arguments.get(1)? {
        first if first.starts_with('-') => arguments.iter().skip(2).find(is_command).cloned(),
        first => Some(first.clone()).filter(|first| !is_command(&first)),
    }
}

/// What to say to a word that stands where a command should.
fn no_command(word: &str) -> String {
    let line = command_line();
    if line.find_subcommand(word).is_some() {
        return format!("{word} is a command, and its options follow it: gripper {word} --help shows them");
    }
    let names = line.get_subcommands().filter(|one| !one.is_hide_set()).map(clap::Command::get_name);
    let near = names.map(|name| (strsim::damerau_levenshtein(name, word), name)).min();
    let near = near
        .filter(|(far, name)| *far <= name.len() / 3)
        .map(|(_, name)| format!(": did you mean gripper {name}?"));
    format!("there is no command {:?}{}\n{SAY_WHAT}", show::one_line(word, 40), near.unwrap_or_default())
}

fn dispatch(cli: Cli) -> anyhow::Result<Exit> {
    let environment = Environment::from_process();
    for complaint in &environment.complaints {
        show::warn(complaint);
    }
    if let Some(backends) = &environment.backends {
        gripper_process::confine::limit_to(backends.clone(), BACKENDS_NAME);
    }
    let Some(command) = cli.command else {
        if !cli.print.wanted() {
            let words = cli.print.prompt().map_or_else(|| SAY_WHAT.to_owned(), no_command);
            return Err(exit::UsageError(words).into());
        }
        // What this machine has for confinement is found out by starting a program; settings are read meanwhile.
        std::thread::spawn(gripper_process::confine::probe);
        return block_on(print::run(*cli.print, environment));
    };
    match command {
        Command::Tools(args) => block_on(tools::run(args, environment)),
        Command::Tool(args) => block_on(tool::run(args, environment)),
        Command::Run(args) => block_on(run::run(args, environment)),
        Command::Explain(args) => explain::run(&args, &environment),
        Command::Hooks(args) => block_on(hooks::run(args, environment)),
        Command::Rules(args) => rules::run(&args, &environment),
        Command::Settings(args) => settings::run(&args, &environment),
        Command::Trust(args) => trust::run(&args, &environment),
        Command::Sessions(args) => sessions::run(&args, &environment),
        Command::Undo(args) => undo::run(&args, &environment),
        Command::Replay(args) => block_on(replay::run(args, environment)),
        Command::Tasks(args) => tasks::run(args, &environment),
        Command::Sandbox(args) => block_on(sandbox::run(args, environment)),
        Command::Doctor(args) => doctor::run(&args, &environment),
        Command::Mcp(args) => mcp::run(*args, environment),
        Command::Audit(args) => audit::run(&args, &environment),
        Command::Demo(args) => block_on(demo::run(args, environment)),
        Command::Completions(args) => completions::run(&args),
        Command::Worker => worker::run(),
        Command::Watchdog { owner } => {
            gripper_process::watchdog::serve(&owner)?;
            Ok(Exit::Ok)
        }
    }
}

fn block_on(work: impl Future<Output = anyhow::Result<Exit>> + Send + 'static) -> anyhow::Result<Exit> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    if let Some(program) = own_program() {
        gripper_process::watchdog::arm(program, vec!["watchdog".into()]);
    }
    // On a worker of its own: from the outside every small call would wait for a thread to wake.
    let outcome = match runtime.block_on(runtime.spawn(work)) {
        Ok(outcome) => outcome,
        Err(failed) => match failed.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            Err(failed) => Err(failed.into()),
        },
    };
    // A tool stuck in a system call must not keep the process alive.
    runtime.shutdown_background();
    gripper_process::end_all();
    outcome
}

/// The last line for whoever reads JSON of the agent, when something went wrong before or beside its work.
fn last_line(words: &str) {
    print::last_line_for(&arguments(), words);
}

fn arguments() -> Vec<String> {
    std::env::args_os().map(|word| word.to_string_lossy().into_owned()).collect()
}

/// The command line as clap sees it, for completion scripts.
fn command_line() -> clap::Command {
    <Cli as clap::CommandFactory>::command()
}
