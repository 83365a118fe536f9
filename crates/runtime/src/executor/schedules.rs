//! Explores thread schedules of the resolve-once cell and of the board with shuttle: whatever the
//! interleaving, every call has exactly one outcome and they come out in order.
#![allow(clippy::unwrap_used, reason = "a failed expectation is how tests fail")]

use std::sync::Arc;

use shuttle::sync::Mutex;

use super::{
    board::Board,
    slot::{Entry, Stop},
};
use crate::{
    access::{Access, Resource, Use},
    approve::{Answer, Reply},
    guard::Key,
    once::ResolveOnce,
    pipeline::{CallResult, Outcome},
    settings::SiblingCancel,
    tool::{Interrupt, ResultBound},
};

/// Schedules tried per test.
const SCHEDULES: usize = 5_000;

fn done(number: usize) -> Outcome {
    Outcome {
        result: CallResult::plain(format!("c{number}").into(), "T".into(), "done"),
        effects: Vec::new(),
        bound: ResultBound::SelfBounded,
        ran: true,
    }
}

/// The first two write the same thing, so the second must wait for the first.
fn entry(number: usize) -> Entry {
    let access = match number {
        0 | 1 => Access::nothing().uses(Resource::Path("/a".into()), Use::Write),
        _ => Access::nothing(),
    };
    Entry {
        call_id: format!("c{number}").into(),
        tool: "T".into(),
        footprint: access.footprint().clone(),
        declared: access.footprint().clone(),
        unsettled: false,
        read_only: access.read_only(),
        interrupt: Interrupt::Cancel,
        failure_spreads: false,
        key: Key::of("T", &number.into()),
        twin: false,
    }
}

#[test]
fn exactly_one_claim_wins() {
    shuttle::check_random(
        || {
            let cell = Arc::new(ResolveOnce::new());
            let threads: Vec<_> = (0..3)
                .map(|value| {
                    let cell = cell.clone();
                    shuttle::thread::spawn(move || cell.resolve(value))
                })
                .collect();
            let won: Vec<bool> = threads.into_iter().map(|thread| thread.join().unwrap()).collect();
            assert_eq!(won.iter().filter(|won| **won).count(), 1);
            assert_eq!(cell.take(), won.iter().position(|won| *won));
        },
        SCHEDULES,
    );
}

#[test]
fn a_dropped_claim_never_loses_the_outcome() {
    shuttle::check_random(
        || {
            let cell = Arc::new(ResolveOnce::new());
            let quitter = cell.clone();
            let quits = shuttle::thread::spawn(move || drop(quitter.claim()));
            let settler = cell.clone();
            let settles = shuttle::thread::spawn(move || {
                while !settler.resolve(1) {
                    shuttle::thread::yield_now();
                }
            });
            quits.join().unwrap();
            settles.join().unwrap();
            assert_eq!(cell.take(), Some(1));
        },
        SCHEDULES,
    );
}

#[test]
fn a_waiter_is_always_woken() {
    shuttle::check_random(
        || {
            let cell = Arc::new(ResolveOnce::new());
            let settler = cell.clone();
            let settles = shuttle::thread::spawn(move || {
                let claim = settler.claim().unwrap();
                shuttle::thread::yield_now();
                claim.resolve(7);
            });
            let value = shuttle::future::block_on(async { cell.wait().await });
            assert_eq!(value, 7);
            settles.join().unwrap();
        },
        SCHEDULES,
    );
}

/// A person, a classifier and a stopped call race for one question; then nobody is left to answer.
#[test]
fn a_question_has_one_answer() {
    shuttle::check_random(
        || {
            let (pending, reply) = Reply::open();
            let threads: Vec<_> = ["person", "classifier"]
                .into_iter()
                .map(|who| {
                    let reply = reply.heard_by(|_| {});
                    shuttle::thread::spawn(move || reply.answer(Answer::because(who)))
                })
                .collect();
            drop(reply);
            let withdrawn = pending.withdraw();
            let answered = threads.into_iter().map(|thread| thread.join().unwrap());
            let won = answered.filter(|won| *won).count() + usize::from(withdrawn);
            // A thread that is done drops its way back, which is a no when it came first.
            let answer = shuttle::future::block_on(pending.wait());
            match answer {
                Answer::Allow { .. } => assert_eq!((won, withdrawn), (1, false)),
                Answer::Deny { feedback } => assert_eq!((won, withdrawn), (1, feedback.is_none())),
            }
        },
        SCHEDULES,
    );
}

/// Runs three calls on threads of their own while the turn is stopped from another.
fn race(stop: Stop) {
    let board = Arc::new(Mutex::new(Board::<usize>::new(2, SiblingCancel::Conflicting)));
    for number in 0..3 {
        board.lock().unwrap().push(entry(number), number);
    }
    let results = Arc::new(Mutex::new(Vec::new()));
    // What the rim does after every change, under one lock.
    let collect = |board: &mut Board<usize>, results: &Mutex<Vec<Arc<str>>>| {
        while let Some((_, outcome)) = board.next_outcome() {
            results.lock().unwrap().push(outcome.result.call_id);
        }
        board.drop_front();
    };
    let workers: Vec<_> = (0..2)
        .map(|_| {
            let (board, results) = (board.clone(), results.clone());
            shuttle::thread::spawn(move || {
                loop {
                    let started = board.lock().unwrap().start_next();
                    let Some((number, _)) = started else { return };
                    shuttle::thread::yield_now();
                    let mut board = board.lock().unwrap();
                    board.finish(number, Some(done(number)));
                    collect(&mut board, &results);
                }
            })
        })
        .collect();
    let stopper = {
        let (board, results) = (board.clone(), results.clone());
        shuttle::thread::spawn(move || {
            let mut board = board.lock().unwrap();
            board.stop_all(stop);
            collect(&mut board, &results);
        })
    };
    for thread in workers {
        thread.join().unwrap();
    }
    stopper.join().unwrap();
    assert!(board.lock().unwrap().all_out());
    let ids: Vec<String> = results.lock().unwrap().iter().map(ToString::to_string).collect();
    assert_eq!(ids, ["c0", "c1", "c2"], "each once, in order");
}

#[test]
fn cancel_against_completion() {
    shuttle::check_random(|| race(Stop::Cancel), SCHEDULES);
}

#[test]
fn interrupt_against_completion() {
    shuttle::check_random(|| race(Stop::Interrupt), SCHEDULES);
}
