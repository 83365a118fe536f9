//! What a server offers: who it is and which tools it has.

use std::{collections::HashSet, sync::Arc};

use rmcp::{
    Peer, RoleClient,
    model::{PaginatedRequestParams, ServerNotification, SubscriptionFilter},
};
use serde_json::Value;

use super::{front::Front, names, server::Server, tool::RemoteTool};

/// Pages of a list, and tools of a server: more is not a list but a trap.
const MOST_PAGES: usize = 100;
const MOST_TOOLS: usize = 10_000;

/// What a server said about itself.
pub struct Offer {
    /// Name, version, revision of the protocol, capabilities, instructions.
    pub info: Value,
    /// Its tools.
    pub tools: Vec<Arc<RemoteTool>>,
    /// What is wrong with them.
    pub complaints: Vec<String>,
}

/// Asks a server what it offers.
pub(super) async fn ask(server: &Arc<Server>, peer: &Peer<RoleClient>) -> Result<Offer, String> {
    let info = peer.peer_info();
    let mut offer = Offer {
        info: serde_json::to_value(info.as_deref()).unwrap_or_default(),
        tools: Vec::new(),
        complaints: Vec::new(),
    };
    if info.is_none_or(|info| info.capabilities.tools.is_none()) {
        return Ok(offer);
    }
    let (mut tools, mut seen) = (Vec::new(), HashSet::new());
    let mut cursor = None;
    let mut endless = true;
    for _ in 0..MOST_PAGES {
        let page = PaginatedRequestParams::default().with_cursor(cursor);
        let page = peer.list_tools(Some(page)).await.map_err(|error| error.to_string())?;
        for tool in page.tools {
            let name = tool.name.to_string();
            if name.trim().is_empty() {
                offer.complaints.push("a tool without a name is left out".to_owned());
            } else if !seen.insert(name.clone()) {
                offer.complaints.push(format!("the tool {name:?} is offered twice; the first one counts"));
            } else if tools.len() < MOST_TOOLS {
                tools.push(tool);
            }
        }
        cursor = page.next_cursor.filter(|_| seen.len() <= MOST_TOOLS);
        if cursor.is_none() {
            endless = false;
            break;
        }
    }
    if endless {
        let words = format!("its list of tools has no end; after {MOST_PAGES} pages it is taken as it is");
        offer.complaints.push(words);
    } else if seen.len() > MOST_TOOLS {
        offer.complaints.push(format!("it has more than {MOST_TOOLS} tools; the rest is left out"));
    }
    // What is called just so keeps the name, and with it what rules say of it.
    let kept = |tool: &&rmcp::model::Tool| names::is_plain_tool(&server.slug, &tool.name);
    let mut taken: HashSet<String> =
        tools.iter().filter(kept).map(|tool| format!("mcp__{}__{}", server.slug, tool.name)).collect();
    for tool in tools {
        let name = tool.name.to_string();
        let (tool, complaint) = RemoteTool::new(server, tool, &mut taken);
        offer.tools.push(Arc::new(tool));
        offer.complaints.extend(complaint.map(|why| format!("the tool {name:?}: {why}")));
    }
    Ok(offer)
}

/// Waits until a server says that its tools have changed. Newer servers say so only to who subscribes.
pub(super) async fn news(peer: &Peer<RoleClient>, front: &Front) {
    let newer = peer.peer_info().is_some_and(|info| {
        let changes = info.capabilities.tools.as_ref().and_then(|tools| tools.list_changed);
        !info.protocol_version.has_initialize() && changes == Some(true)
    });
    let subscribed = async {
        let mut filter = SubscriptionFilter::new();
        filter.tools_list_changed = Some(true);
        if let (true, Ok(mut subscription)) = (newer, peer.listen(filter).await) {
            while let Ok(Some(notification)) = subscription.next().await {
                if matches!(notification, ServerNotification::ToolListChangedNotification(_)) {
                    return;
                }
            }
        }
        std::future::pending().await
    };
    tokio::select! {
        () = front.stale.notified() => {}
        () = subscribed => {}
    }
}
