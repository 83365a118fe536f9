//! A server for the official conformance suite: the real front with real tools in a real toolbox, and
//! before it the fixtures that the suite wants and that no tool of ours can express.
//!
//! ```text
//! cargo run -p gripper-mcp --example conformance_server -- 127.0.0.1:7444
//! ```

mod fixtures;
mod tools;

use std::{net::SocketAddr, sync::Arc};

use futures::{FutureExt, future::BoxFuture};
use gripper_mcp::server::{Document, Host, HttpOptions, Opening, Session, serve_http_with};
use gripper_runtime::Toolbox;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use fixtures::Fixtures;

const TEXT_URI: &str = "test://static-text";

struct Front(Arc<Value>);

impl Host for Front {
    fn open(&self, opening: Opening) -> BoxFuture<'_, Result<Arc<dyn Session>, String>> {
        let opened = tools::toolbox(&self.0, opening.approver);
        async move { Ok(Arc::new(Open(opened?)) as Arc<dyn Session>) }.boxed()
    }
}

struct Open(Arc<Toolbox>);

impl Session for Open {
    fn toolbox(&self) -> &Arc<Toolbox> {
        &self.0
    }

    fn concurrency(&self) -> usize {
        16
    }

    fn documents(&self) -> Vec<Document> {
        vec![Document {
            uri: TEXT_URI.to_owned(),
            name: "text".to_owned(),
            description: "A text that never changes".to_owned(),
            media_type: "text/plain",
        }]
    }

    fn document(&self, uri: &str) -> Option<Result<(&'static str, String), String>> {
        let text = "This is the content of the static text resource.";
        (uri == TEXT_URI).then(|| Ok(("text/plain", text.to_owned())))
    }

    fn end(&self) -> BoxFuture<'_, ()> {
        let toolbox = self.0.clone();
        async move {
            toolbox.end().await;
        }
        .boxed()
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), String> {
    let address = std::env::args().nth(1).unwrap_or_else(|| "127.0.0.1:7444".to_owned());
    let address: SocketAddr = address.parse().map_err(|error| format!("{address}: {error}"))?;
    let data: Value =
        serde_json::from_str(include_str!("fixtures.json")).map_err(|error| error.to_string())?;
    let data = Arc::new(data);
    let listener = tokio::net::TcpListener::bind(address).await.map_err(|error| error.to_string())?;
    // The suite knocks as a page of this machine, which must be let in, and as one of elsewhere.
    let origins = vec![format!("http://{address}"), format!("http://localhost:{}", address.port())];
    let options = HttpOptions { token: None, origins, hosts: Vec::new() };
    let (changes, _) = tokio::sync::broadcast::channel(16);
    let wrap = {
        let data = data.clone();
        move |front| Fixtures { front, data: data.clone(), changes: changes.clone() }
    };
    serve_http_with(Arc::new(Front(data)), listener, options, CancellationToken::new(), wrap).await
}
