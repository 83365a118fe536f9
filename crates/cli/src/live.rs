//! Shows a turn as it happens: JSON Lines for machines; for people, finished calls in order and,
//! on a terminal, running ones below with their progress.

use std::{
    collections::BTreeMap,
    fs::File,
    io::{IsTerminal, Write},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use gripper_runtime::{
    Event, FinishedTask,
    files::{ChangedFile, FileChange},
};
use tokio::time::Instant;

use crate::show::{self, BAD, BOLD, DIM, GOOD, NOTE};

/// Running calls shown at most; the others are counted.
const LIVE_ROWS: usize = 8;
const SPINNER: [char; 8] = ['⠋', '⠙', '⠸', '⠴', '⠦', '⠇', '⠏', '⠹'];

/// Where a turn is shown.
pub(crate) struct Screen {
    human: bool,
    terminal: bool,
    stage: Arc<Stage>,
    /// In the order they were queued.
    calls: BTreeMap<usize, Row>,
    numbers: std::collections::HashMap<Arc<str>, usize>,
    queued: usize,
    frame: usize,
}

/// Who has the terminal: the turn, or a question to the person.
#[derive(Default)]
pub(crate) struct Stage(Mutex<Shown>);

#[derive(Default)]
struct Shown {
    /// Rows of the live part now on the terminal.
    rows: usize,
    /// A question is open.
    asking: bool,
    /// What waits for it to be answered.
    held: Vec<String>,
}

impl Stage {
    /// Takes the live rows away and keeps everything else off until the stage is given back.
    pub(crate) fn take(&self, mut tty: &File) {
        let mut shown = self.lock();
        shown.asking = true;
        if shown.rows > 0 {
            write!(tty, "\x1b[{}A\x1b[J", shown.rows).ok();
            shown.rows = 0;
        }
    }

    /// The turn may be shown again.
    pub(crate) fn give_back(&self) {
        self.lock().asking = false;
    }

    fn lock(&self) -> MutexGuard<'_, Shown> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

struct Row {
    call_id: Arc<str>,
    tool: Arc<str>,
    summary: Option<String>,
    started: Option<Instant>,
    progress: Option<String>,
    finished: bool,
}

impl Screen {
    pub(crate) fn new(human: bool, stage: Arc<Stage>) -> Self {
        Self {
            human,
            terminal: std::io::stdout().is_terminal(),
            stage,
            calls: BTreeMap::new(),
            numbers: std::collections::HashMap::new(),
            queued: 0,
            frame: 0,
        }
    }

    /// Whether there is something that moves.
    pub(crate) fn is_live(&self) -> bool {
        self.human && self.terminal
    }

    /// Takes in one event.
    pub(crate) fn event(&mut self, event: &Event) -> anyhow::Result<()> {
        self.event_with(event, &[])
    }

    /// Takes in one event; `stand_ins` replace parts of what is shown of a result.
    pub(crate) fn event_with(&mut self, event: &Event, stand_ins: &[(&str, &str)]) -> anyhow::Result<()> {
        if !self.human {
            return self.print(serde_json::to_string(event)?);
        }
        match event {
            Event::Queued { call_id, tool } => self.queue(call_id, tool),
            Event::Started { call_id, summary } => {
                if let Some(row) = self.row(call_id) {
                    row.summary = Some(summary.clone());
                    row.started = Some(Instant::now());
                }
            }
            Event::Progress { call_id, progress } => {
                if let Some(row) = self.row(call_id) {
                    row.progress = Some(progress.message.clone());
                }
            }
            Event::Finished { call_id, .. } => {
                if let Some(row) = self.row(call_id) {
                    row.finished = true;
                }
            }
            Event::Result(result) => {
                let row = self.numbers.remove(&result.call_id).and_then(|number| self.calls.remove(&number));
                let summary = row.and_then(|row| row.summary);
                let shown = show::result(result, summary.as_deref());
                self.print(stand_ins.iter().fold(shown, |text, (what, by)| text.replace(what, by)))?;
            }
            Event::TurnEnd { calls, errors } => {
                let (style, words) = match errors {
                    0 => (GOOD, "all well".to_owned()),
                    count => (BAD, format!("{count} failed")),
                };
                self.print(format!("{DIM}{},{DIM:#} {style}{words}{style:#}", show::count(*calls, "call")))?;
            }
            Event::Hook { run, .. } => {
                self.flush(&mut self.stage.lock())?;
                show::hook(run);
            }
            Event::ChangedFiles { files } => {
                for file in files {
                    self.print(changed_file(file))?;
                }
            }
            Event::TaskFinished(task) => self.print(finished_task(task))?,
            Event::Decision { .. } | Event::Rewrite { .. } => {}
        }
        self.draw()
    }

    /// Shows words that are about no call.
    pub(crate) fn say(&mut self, text: String) -> anyhow::Result<()> {
        self.print(text)?;
        self.draw()
    }

    /// Moves the spinner.
    pub(crate) fn tick(&mut self) -> anyhow::Result<()> {
        self.frame += 1;
        self.draw()
    }

    /// Takes the live part away.
    pub(crate) fn finish(&mut self) -> anyhow::Result<()> {
        self.flush(&mut self.stage.lock())
    }

    fn queue(&mut self, call_id: &Arc<str>, tool: &Arc<str>) {
        let row = Row {
            call_id: call_id.clone(),
            tool: tool.clone(),
            summary: None,
            started: None,
            progress: None,
            finished: false,
        };
        self.numbers.insert(call_id.clone(), self.queued);
        self.calls.insert(self.queued, row);
        self.queued += 1;
    }

    fn row(&mut self, call_id: &Arc<str>) -> Option<&mut Row> {
        self.calls.get_mut(self.numbers.get(call_id)?)
    }

    /// Prints now, or when the question that is open is answered.
    fn print(&self, text: String) -> anyhow::Result<()> {
        let mut shown = self.stage.lock();
        shown.held.push(text);
        if shown.asking && self.terminal { Ok(()) } else { self.flush(&mut shown) }
    }

    /// Takes the live rows away and prints what was held back.
    fn flush(&self, shown: &mut Shown) -> anyhow::Result<()> {
        // One write a line: a reader never sees half of one, and a closed pipe is seen as that.
        if !self.human {
            let mut out = std::io::stdout().lock();
            for line in shown.held.drain(..) {
                out.write_all((line + "\n").as_bytes())?;
            }
            return Ok(out.flush()?);
        }
        let mut out = anstream::stdout().lock();
        if shown.rows > 0 {
            write!(out, "\x1b[{}A\x1b[J", shown.rows)?;
            shown.rows = 0;
        }
        for text in shown.held.drain(..) {
            writeln!(out, "{text}")?;
        }
        Ok(out.flush()?)
    }

    fn draw(&self) -> anyhow::Result<()> {
        let mut shown = self.stage.lock();
        if !self.is_live() || shown.asking {
            return Ok(());
        }
        let width = terminal_width();
        let mut rows: Vec<String> = Vec::new();
        let busy: Vec<&Row> = self.calls.values().filter(|row| row.started.is_some()).collect();
        for row in busy.iter().take(LIVE_ROWS) {
            let spinner = if row.finished { '·' } else { SPINNER[self.frame % SPINNER.len()] };
            let elapsed = row.started.map(|started| show::duration(started.elapsed())).unwrap_or_default();
            let doing = row.progress.as_ref().or(row.summary.as_ref()).map_or("", String::as_str);
            let text = show::one_line(&format!("{} {doing}", row.tool), width.saturating_sub(24));
            rows.push(format!(
                "{spinner} {DIM}{}{DIM:#} {BOLD}{text}{BOLD:#} {DIM}{elapsed}{DIM:#}",
                show::one_line(&row.call_id, 10)
            ));
        }
        let rest = self.calls.len() - rows.len();
        if rest > 0 {
            rows.push(format!("{DIM}  {rest} waiting{DIM:#}"));
        }
        self.flush(&mut shown)?;
        let mut out = anstream::stdout().lock();
        for row in &rows {
            writeln!(out, "{row}")?;
        }
        shown.rows = rows.len();
        Ok(out.flush()?)
    }
}

fn terminal_width() -> usize {
    rustix::termios::tcgetwinsize(std::io::stdout()).map_or(80, |size| usize::from(size.ws_col).max(40))
}
/// A change by someone else, in a line and its difference.
fn changed_file(file: &ChangedFile) -> String {
    let path = file.path.to_string_lossy();
    let path = show::safe(&path);
    match &file.change {
        FileChange::Deleted => format!("{NOTE}someone else deleted {path}{NOTE:#}"),
        FileChange::Modified { diff, .. } => {
            let diff: String =
                diff.lines().map(|line| format!("\n  {DIM}{}{DIM:#}", show::safe(line))).collect();
            format!("{NOTE}someone else changed {path}{NOTE:#}{diff}")
        }
    }
}

/// A background task that has ended, with how its output ends.
fn finished_task(task: &FinishedTask) -> String {
    let code = task.exit_code.map(|code| format!(", exit code {code}")).unwrap_or_default();
    let what = show::one_line(task.description.as_ref().unwrap_or(&task.command), 60);
    let last: String =
        task.last_lines.lines().map(|line| format!("\n  {DIM}{}{DIM:#}", show::safe(line))).collect();
    format!("{NOTE}{} {}{code}: {what}{NOTE:#}{last}", task.task_id, task.status)
}
