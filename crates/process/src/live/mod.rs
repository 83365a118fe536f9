//! A child that runs while others look at it.

mod prompt;

use std::{
    io,
    os::fd::AsFd,
    path::PathBuf,
    pin::pin,
    process::Stdio,
    sync::{Arc, OnceLock},
    time::{Duration, Instant},
};

use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWriteExt},
    process::{ChildStdin, ChildStdout},
    sync::watch,
    task::AbortHandle,
};

pub use prompt::looks_like_prompt;

use crate::{
    Spec, StartError, Status,
    confine::{Bars, Confined},
    output::{Output, Shown, Source},
    tree::{self, Pipes, Root, Tree},
};

/// Descendants that hold the pipes open may finish their last line before they are ended.
const SETTLE: Duration = Duration::from_millis(100);
/// How often something more may come after the end.
const ROUNDS: usize = 50;
/// What one read may bring. Pages that are never filled cost nothing.
const READ: usize = 256 * 1024;
/// So much is written to disk at once, in a flood.
const WRITE: usize = 1024 * 1024;
/// So late is anything on disk at the latest.
const LATEST: Duration = Duration::from_millis(50);
/// A pipe holds this much unless told otherwise; a read that empties a full one means a flood.
const PIPE: usize = 64 * 1024;
/// How much the pipe of a flood is made to hold. Only floods get it: the system counts such pipes
/// for each user, and shrinks those that come later when there are too many.
const WIDE_PIPE: usize = 1024 * 1024;

/// What is kept of the output.
#[derive(Debug, Clone)]
pub struct Keep {
    /// Bytes kept in memory of the beginning: of all output, and of each stream alone.
    pub head: usize,
    /// Bytes kept in memory of the end, likewise.
    pub tail: usize,
    /// Where all output goes, made with the first byte. What was there before is replaced.
    pub file: Option<PathBuf>,
    /// How many bytes may lie on disk; beyond that the oldest go.
    pub quota: u64,
}

impl Default for Keep {
    fn default() -> Self {
        Self { head: 64 * 1024, tail: 64 * 1024, file: None, quota: 64 * 1024 * 1024 }
    }
}

/// A child that was started, and what it printed so far. The last one who drops it ends the tree.
pub struct Live {
    root: Arc<Root>,
    output: Arc<Output>,
    begin: Instant,
    /// How it ended and how long it took.
    ended: watch::Receiver<Option<(Status, Duration)>>,
    /// Holds the time to tidy up, once somebody wants it to end.
    ask: watch::Sender<Option<Duration>>,
    task: AbortHandle,
    /// What it was confined to, and where it started.
    bars: Option<(Arc<Bars>, PathBuf)>,
    limits_hit: Arc<OnceLock<Vec<String>>>,
}

impl std::fmt::Debug for Live {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Live").field("pid", &self.pid()).field("status", &self.status()).finish()
    }
}

impl Live {
    /// Starts a child. Must be called inside a tokio runtime, whose end is the end of the child.
    ///
    /// The time limit of `spec` is not applied: what it means is for the caller to say.
    pub fn start(spec: Spec, keep: Keep) -> Result<Arc<Self>, StartError> {
        let input = if spec.stdin.is_empty() { Stdio::null() } else { Stdio::piped() };
        let (kept, mut tree) = crate::start(&spec, input)?;
        let pipes = tree.take_pipes();
        Ok(Self::attended(spec, keep, kept, tree, pipes))
    }

    /// Starts a child to talk with: the caller has both ends of the conversation, and only what it
    /// prints on standard error is kept.
    pub fn converse(spec: Spec, keep: Keep) -> Result<(Arc<Self>, ChildStdin, ChildStdout), StartError> {
        let (kept, mut tree) = crate::start(&spec, Stdio::piped())?;
        let mut pipes = tree.take_pipes();
        let (Some(input), Some(output)) = (pipes.stdin.take(), pipes.stdout.take()) else {
            let program = spec.program.to_string_lossy().into_owned();
            return Err(StartError::System { program, why: io::Error::other("it has no pipes") });
        };
        Ok((Self::attended(spec, keep, kept, tree, pipes), input, output))
    }

    fn attended(spec: Spec, keep: Keep, kept: crate::Kept, tree: Tree, pipes: Pipes) -> Arc<Self> {
        let begin = Instant::now();
        let bars = kept.cage.as_ref().map(|held| (held.bars.clone(), spec.cwd.clone()));
        let root = tree.root();
        let output = Arc::new(Output::new(keep));
        let (ask, asked) = watch::channel(None);
        let (done, ended) = watch::channel(None);
        let (to, hit) = (output.clone(), Arc::<OnceLock<Vec<String>>>::default());
        let limits_hit = hit.clone();
        let task = tokio::spawn(async move {
            let limits = spec.limits;
            let status = attend(tree, pipes, spec, &to, asked).await;
            hit.set(limits.hit(kept.group.as_ref(), status, &said(&to))).ok();
            // The tree went first, so nothing runs any more when its cage is tidied up.
            drop(kept);
            flush(&to).await;
            to.close();
            done.send_replace(Some((status, begin.elapsed())));
        });
        Arc::new(Self { root, output, begin, ended, ask, task: task.abort_handle(), bars, limits_hit })
    }

    /// Ends several at once, without a wait for their manners. Blocks for some milliseconds.
    pub fn end_together(all: &[Arc<Self>]) {
        let running = all.iter().filter(|live| live.status().is_none());
        let roots: Vec<Arc<Root>> = running.map(|live| live.root.clone()).collect();
        if !roots.is_empty() {
            tree::end_together(&roots);
        }
    }

    /// What it printed so far.
    pub fn output(&self) -> &Output {
        &self.output
    }

    /// How it is confined, and what it was refused so far.
    pub fn confined(&self) -> Option<Confined> {
        let (bars, cwd) = self.bars.as_ref()?;
        Some(bars.report(cwd, &said(&self.output)))
    }

    /// The limits that it came to, in words; known when it has ended.
    pub fn limits_hit(&self) -> &[String] {
        self.limits_hit.get().map(Vec::as_slice).unwrap_or_default()
    }

    /// The number of the process, which is also that of its group and session.
    pub fn pid(&self) -> u32 {
        self.root.pid.as_raw_pid().unsigned_abs()
    }

    /// How it ended; nothing while it runs, or while anything of it is still being ended.
    pub fn status(&self) -> Option<Status> {
        match *self.ended.borrow() {
            Some((status, _)) => Some(status),
            // The runtime went, and took the child with it.
            None => self.ended.has_changed().is_err().then_some(Status::Cancelled),
        }
    }

    /// How long it ran, or has been running.
    pub fn elapsed(&self) -> Duration {
        self.ended.borrow().map_or_else(|| self.begin.elapsed(), |(_, took)| took)
    }

    /// Waits until nothing of it is left.
    pub async fn wait(&self) -> Status {
        self.ended.clone().wait_for(Option::is_some).await.ok();
        self.status().unwrap_or(Status::Cancelled)
    }

    /// Asks the whole tree to end, and after `grace` makes it. It ends too when this call is
    /// dropped half way; a second call may set another `grace`.
    pub async fn end(&self, grace: Duration) {
        if self.status().is_none() {
            self.ask.send_replace(Some(grace));
            self.wait().await;
        }
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        if self.status().is_none() {
            // At once and here: the task may never be polled again.
            self.root.kill();
            self.task.abort();
        }
    }
}

/// What was printed on standard error, as far as it is kept.
fn said(output: &Output) -> String {
    let Shown { mut head, tail, .. } = output.stderr();
    head.extend(tail);
    String::from_utf8_lossy(&head).into_owned()
}

async fn attend(
    mut tree: Tree,
    pipes: Pipes,
    spec: Spec,
    output: &Arc<Output>,
    mut asked: watch::Receiver<Option<Duration>>,
) -> Status {
    let feed = async {
        if let Some(mut pipe) = pipes.stdin {
            // A child that does not read its input may close the pipe; that is its right.
            pipe.write_all(&spec.stdin).await.ok();
        }
    };
    let [stdout, stderr] = [Source::Stdout, Source::Stderr];
    let mut traffic = pin!(async {
        tokio::join!(feed, drain(pipes.stdout, output, stdout), drain(pipes.stderr, output, stderr))
    });
    let mut silent = false;
    let status = loop {
        tokio::select! {
            biased;
            _ = asked.wait_for(Option::is_some) => break Status::Cancelled,
            status = tree.wait() => break status,
            _ = &mut traffic, if !silent => silent = true,
        }
    };
    if status != Status::Cancelled && !silent {
        silent = tokio::time::timeout(SETTLE, &mut traffic).await.is_ok();
    }
    let mut again = true;
    while again {
        let mut ending = pin!(tree.end(asked.borrow_and_update().unwrap_or(spec.grace)));
        again = loop {
            tokio::select! {
                () = &mut ending => break false,
                Ok(()) = asked.changed() => break true,
                // While it tidies up it may still print.
                _ = &mut traffic, if !silent => silent = true,
            }
        };
    }
    // The writers are gone, but what they wrote may still wait for us; one that got away may be quiet.
    for _ in 0..ROUNDS {
        let before = output.bytes();
        silent = silent || tokio::time::timeout(SETTLE, &mut traffic).await.is_ok();
        if silent || output.bytes() == before {
            break;
        }
    }
    status
}

async fn drain(pipe: Option<impl AsyncRead + AsFd + Unpin>, output: &Arc<Output>, source: Source) {
    let Some(mut pipe) = pipe else { return };
    let (mut buffer, mut wide, mut due) = (vec![0; READ], false, None);
    loop {
        let read = pipe.read(&mut buffer);
        let read = match due {
            None => Ok(read.await),
            Some(due) => tokio::time::timeout_at(due, read).await,
        };
        let pending = match read {
            Ok(Ok(count @ 1..)) => {
                if count >= PIPE && !wide {
                    #[cfg(target_os = "linux")]
                    rustix::pipe::fcntl_setpipe_size(&pipe, WIDE_PIPE).ok();
                    wide = true;
                }
                output.take(source, &buffer[..count])
            }
            // A pipe that fails has nothing more to say.
            Ok(_) => return,
            Err(_) => WRITE,
        };
        if pending >= WRITE {
            flush(output).await;
            due = None;
        } else if pending > 0 && due.is_none() {
            due = Some(tokio::time::Instant::now() + LATEST);
        }
    }
}

/// Brings to disk what should be there. A disk may be slow, and then nobody else shall wait.
async fn flush(output: &Arc<Output>) {
    if output.has_file() {
        let output = output.clone();
        tokio::task::spawn_blocking(move || output.flush()).await.ok();
    }
}

#[cfg(test)]
mod tests;
