//! The prompt, from the command line and from a pipe.

use std::{
    io::{IsTerminal, Read, stdin},
    time::Duration,
};

use gripper_agent::message::{Content, Message, Role};
use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    fs::{FileType, fstat},
};

use crate::exit::UsageError;

/// Most that is taken from a pipe.
const MOST: u64 = 10 * 1024 * 1024;
/// A pipe that nothing comes from is waited for this long when there is a prompt without it.
const PATIENCE: Duration = Duration::from_secs(1);

/// Reads it.
pub(super) fn read(given: Option<&str>) -> Result<Message, UsageError> {
    // Providers refuse a message of blanks.
    let given = given.filter(|given| !given.trim().is_empty());
    let piped = if given.is_none() || something_comes() { piped()? } else { String::new() };
    let mut content: Vec<Content> = Vec::new();
    content.extend(given.map(Content::text));
    if !piped.trim().is_empty() {
        content.push(Content::text(piped));
    }
    if content.is_empty() {
        let words = "there is no prompt: gripper -p \"what to do\", or pipe it in";
        return Err(UsageError(words.to_owned()));
    }
    Ok(Message { role: Role::User, content })
}

/// Whether standard input is a file, or a pipe that somebody writes to.
fn something_comes() -> bool {
    let input = stdin();
    let kind = fstat(&input).map(|stat| FileType::from_raw_mode(stat.st_mode));
    match kind {
        Ok(FileType::RegularFile) => true,
        Ok(FileType::Fifo) => {
            let limit = Timespec::try_from(PATIENCE).ok();
            poll(&mut [PollFd::new(&input, PollFlags::IN)], limit.as_ref()).is_ok_and(|ready| ready > 0)
        }
        _ => false,
    }
}

fn piped() -> Result<String, UsageError> {
    if stdin().is_terminal() {
        return Ok(String::new());
    }
    let mut bytes = Vec::new();
    let read = stdin().take(MOST + 1).read_to_end(&mut bytes);
    read.map_err(|error| UsageError(format!("standard input cannot be read: {error}")))?;
    if bytes.len() as u64 > MOST {
        return Err(UsageError(format!(
            "standard input is longer than {} MiB: put it into a file and name the file in the prompt",
            MOST / (1024 * 1024)
        )));
    }
    String::from_utf8(bytes).map_err(|_| {
        UsageError("standard input is not UTF-8 text: put it into a file and name the file".to_owned())
    })
}
