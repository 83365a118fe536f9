//! Any bytes as the answer of a model, on each wire: no panic, one end, and the same answer however the bytes
//! are cut.
#![no_main]

use std::{collections::HashSet, convert::Infallible, time::Duration};

use futures::{StreamExt, stream};
use gripper_agent::model::{ModelError, ModelEvent, Wire, decode};
use libfuzzer_sys::fuzz_target;

fn events(wire: Wire, streamed: bool, pieces: Vec<Vec<u8>>) -> Vec<Result<ModelEvent, ModelError>> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().expect("a runtime");
    let body = stream::iter(pieces.into_iter().map(Ok::<_, Infallible>));
    runtime.block_on(decode(wire, body, streamed, Duration::from_secs(60), HashSet::new()).collect())
}

// The first byte chooses the wire, the second the size of the pieces.
fuzz_target!(|data: &[u8]| {
    let [first, size, body @ ..] = data else { return };
    let wire = [Wire::Anthropic, Wire::OpenAiChat, Wire::OpenAiResponses][usize::from(first % 3)];
    let streamed = first & 128 == 0;
    let whole = events(wire, streamed, vec![body.to_vec()]);
    let ends = |event: &Result<ModelEvent, ModelError>| matches!(event, Ok(ModelEvent::Stop(_)) | Err(_));
    assert_eq!(whole.iter().position(ends), whole.len().checked_sub(1), "one end, and nothing after it");
    let pieces = body.chunks(usize::from(*size).max(1)).map(<[u8]>::to_vec).collect();
    let cut = events(wire, streamed, pieces);
    assert!(cut.last().is_some_and(ends), "{cut:?}");
    // What is no stream at all is noticed a piece earlier or later, and ids that were made up are others each time.
    let told = matches!(whole.last(), Some(Ok(_))) && !format!("{whole:?}").contains("call_");
    assert!(!told || whole == cut, "{whole:?}\n{cut:?}");
});
