//! What the machine is told, and what it says.

use std::{fmt, sync::Arc, time::Duration};

use serde_json::Value;

use crate::{
    message::{Content, Message},
    model::{ModelError, ModelEvent, Price, StopReason},
    session::{Entry, Origin},
};

/// Where the work must end.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Limits {
    /// Answers.
    pub turns: Option<u32>,
    /// US dollars.
    pub budget: Option<f64>,
    /// Times one request is tried again.
    pub retries: u32,
    /// What tokens cost, where that is known.
    pub price: Option<Price>,
}

impl Default for Limits {
    fn default() -> Self {
        Self { turns: None, budget: None, retries: 8, price: None }
    }
}

/// What happened.
#[derive(Debug)]
pub enum Input {
    /// The person, or whoever stands in for one, said something.
    Prompt(Message, Origin),
    /// The model sent something.
    Model(ModelEvent),
    /// The request failed, or its answer broke off.
    Failed(ModelError),
    /// A call has begun to run.
    Began(String),
    /// A result is out.
    Result(Content),
    /// Every call has its result. With what the model should know besides, and whether what was asked for is
    /// delivered, so that the work is over.
    CallsOver {
        /// Goes with the results.
        context: Vec<Content>,
        /// Nothing is left to do.
        delivered: bool,
    },
    /// The calls were dropped; these are the results that nobody had received.
    Dropped(Vec<Content>),
    /// The wait is over.
    Waited,
    /// What hooks on the end of work had to say: go on, because of this, or nothing.
    Hooked(Option<String>),
    /// The history is shorter now, or could not be made so.
    Compacted(Result<Vec<Arc<Message>>, String>),
    /// Agents that calls started have cost so much.
    Spent(f64),
    /// The person wants it to stop.
    Interrupt,
    /// It must stop, and why.
    Stop(End),
}

/// What is to be done, in this order.
#[derive(Debug, PartialEq)]
pub enum Effect {
    /// Write this down, before anything after it is done.
    Record(Entry),
    /// Ask the model for the next answer, in pieces or as one.
    Ask {
        /// In pieces.
        streamed: bool,
    },
    /// Run a call.
    Submit {
        /// The call.
        id: String,
        /// Its tool.
        name: String,
        /// Its input.
        input: Value,
    },
    /// A call that cannot be run gets its result as well.
    SubmitBroken {
        /// The call.
        id: String,
        /// Why.
        why: String,
    },
    /// No more calls will come in this answer.
    CloseCalls,
    /// Stop calls as the person wants: those that must finish do.
    InterruptCalls,
    /// Stop listening to the model.
    HangUp,
    /// The answer broke off: give its calls a moment to finish, drop the rest, and tell what became of them
    /// ([`Input::Dropped`]).
    DropCalls,
    /// Wait, then say [`Input::Waited`]. For whoever watches: why.
    Wait {
        /// How long.
        delay: Duration,
        /// The try that follows, counted from 1.
        attempt: u32,
        /// What went wrong.
        error: ModelError,
    },
    /// Make the history shorter ([`Input::Compacted`]).
    Compact,
    /// Ask hooks whether the work is done ([`Input::Hooked`]).
    AskHooks,
    /// The work is over.
    Finish(End),
}

/// How the work ended.
#[derive(Debug, Clone, PartialEq)]
pub enum End {
    /// The model said what it had to say.
    Done(StopReason),
    /// The most answers were given.
    MaxTurns(u32),
    /// The budget is used up.
    Budget(f64),
    /// The person stopped it.
    Interrupted,
    /// A hook stopped it, and why.
    Halted(String),
    /// What was asked for was not delivered, and why.
    NotDelivered(String),
    /// The model cannot be asked, and why.
    Failed(ModelError),
}

impl fmt::Display for End {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            End::Done(StopReason::Refusal) => f.write_str("the model declined to answer"),
            End::Done(_) => f.write_str("done"),
            End::MaxTurns(most) => {
                write!(f, "stopped after {most} answers: raise --max-turns to let it go on")
            }
            End::Budget(most) => {
                write!(f, "stopped when ${most} were spent: raise --max-budget-usd to let it go on")
            }
            End::Interrupted => f.write_str("interrupted"),
            End::Halted(why) => write!(f, "a hook ended it: {why}"),
            End::NotDelivered(why) => f.write_str(why),
            End::Failed(error) => write!(f, "{error}"),
        }
    }
}
