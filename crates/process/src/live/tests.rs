//! Live children: looked at, ended, dropped.

use std::time::Duration;

use crate::{
    Status,
    live::{Keep, Live},
    tests::spec,
};

#[tokio::test]
async fn it_is_looked_at_while_it_runs() {
    let live = Live::start(spec("echo one; echo two >&2; sleep 600"), Keep::default()).unwrap();
    while live.output().bytes() < 8 {
        live.output().changed(live.output().bytes()).await;
    }
    assert_eq!(live.status(), None);
    assert_eq!(
        (live.output().stdout().head, live.output().stderr().head),
        (b"one\n".into(), b"two\n".into())
    );
    live.end(Duration::from_secs(60)).await;
    assert_eq!((live.status(), live.wait().await), (Some(Status::Cancelled), Status::Cancelled));
}
