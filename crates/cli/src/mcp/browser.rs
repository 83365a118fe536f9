//! The page on which a person signs in to a server.

use std::{
    io::{IsTerminal, stderr, stdin},
    sync::Arc,
};

use gripper_mcp::client::SignIn;

use crate::show;

const OPENER: &str = if cfg!(target_os = "macos") { "open" } else { "xdg-open" };

/// Says where the page is and, if a person is there, opens it.
pub(crate) struct Browser;

fn is_attended() -> bool {
    stdin().is_terminal() && stderr().is_terminal()
}

impl Browser {
    /// Nobody, unless a person sits at the terminal.
    pub(crate) fn if_attended() -> Option<Arc<dyn SignIn>> {
        is_attended().then(|| Arc::new(Browser) as _)
    }
}

impl SignIn for Browser {
    fn open(&self, server: &str, url: &str) {
        show::note(&format!("to sign in to {}, open {}", show::safe(server), show::safe(url)));
        if is_attended() {
            // Where there is no browser to open, the address that was shown is enough.
            gripper_process::launch(OPENER, url).ok();
        }
    }
}
