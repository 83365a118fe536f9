//! Signing in to a server that asks for it. The protocol of it is the SDK's: here is when it begins, who opens
//! the page, what is kept, and which addresses are trusted with it.

mod landing;
mod tokens;

use std::{
    fs::TryLockError,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use oauth2::TokenResponse;
use rmcp::transport::auth::{
    AuthError, AuthorizationManager, AuthorizationMetadata, CredentialStore, InMemoryCredentialStore,
    OAuthClientConfig, StoredCredentials, WWWAuthenticateParams,
};
use serde::Deserialize;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;
use url::{Host, Url};

use landing::Landing;
use tokens::Entry;
pub(super) use tokens::Tokens;

/// How long a person has to sign in.
const PATIENCE: Duration = Duration::from_secs(300);
/// How often it is looked whether another process is done.
const LOOK: Duration = Duration::from_millis(50);
/// How often one request may ask for more rights.
pub(super) const ROUNDS: usize = 2;
/// What a server is told by that nobody can sign in to.
pub(super) const TOKEN_WANTED: &str = "the server wants to know who calls (HTTP 401): put a token into its \
                                       headers, such as \"Authorization\": \"Bearer ${TOKEN}\"";
/// How much of what went wrong is told.
const SHOWN: usize = 500;

/// Somebody who can open a page.
pub trait SignIn: Send + Sync {
    /// Opens the page on which a person signs in to a server, or says where it is.
    fn open(&self, server: &str, url: &str);
}

/// How to sign in to a server, as configured.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct OAuth {
    /// The registration that was made beforehand.
    pub client_id: Option<String>,
    /// Its secret.
    pub client_secret: Option<String>,
    /// Where a description of this client is published, for those who read it there.
    pub client_metadata_url: Option<String>,
    /// The rights to ask for.
    #[serde(default)]
    pub scopes: Vec<String>,
    /// The port of this machine that the browser comes back to.
    pub callback_port: Option<u16>,
}

/// Why somebody has to be signed in.
pub(super) enum Asked<'a> {
    /// The token is missing or not taken.
    Who(&'a str),
    /// The token does not reach that far.
    More(&'a str),
}

/// The signing in to one server.
pub(super) struct Account {
    server: String,
    url: Url,
    config: OAuth,
    tokens: Arc<Tokens>,
    person: Option<Arc<dyn SignIn>>,
    over: CancellationToken,
    entry: Mutex<Option<Entry>>,
    /// One at a time, whatever asks for it.
    turn: tokio::sync::Mutex<()>,
    /// Why it is not tried again: nobody wants a new page with every call.
    refused: Mutex<Option<String>>,
    waiting: AtomicUsize,
}

fn locked<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn token(entry: Option<&Entry>) -> Option<String> {
    Some(entry?.credentials.token_response.as_ref()?.access_token().secret().clone())
}

/// Whether what is sent there reaches nobody else: encrypted, or never leaving the machine that the server
/// itself is on.
fn is_safe(server: &Url, url: &Url) -> bool {
    let own = |url: &Url| match url.host() {
        Some(Host::Domain(name)) => name == "localhost",
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.is_loopback(),
        None => false,
    };
    url.scheme() == "https" || url.scheme() == "http" && own(url) && own(server)
}

/// The addresses in what a server publishes must all be safe.
fn check(server: &Url, metadata: &AuthorizationMetadata) -> Result<(), String> {
    let AuthorizationMetadata {
        authorization_endpoint, token_endpoint, registration_endpoint, issuer, ..
    } = metadata;
    let all =
        [Some(authorization_endpoint), Some(token_endpoint), registration_endpoint.as_ref(), issuer.as_ref()];
    for text in all.into_iter().flatten() {
        if !Url::parse(text).is_ok_and(|url| is_safe(server, &url)) {
            return Err(cut(&format!("it leads to {text}, which is not https")));
        }
    }
    Ok(())
}

fn cut(words: &str) -> String {
    words.chars().take(SHOWN).collect()
}

fn told(error: AuthError) -> String {
    cut(&error.to_string())
}

impl Account {
    pub(super) fn new(
        (server, url, config): (&str, Url, OAuth),
        tokens: Arc<Tokens>,
        person: Option<Arc<dyn SignIn>>,
        over: CancellationToken,
    ) -> Self {
        // What is wrong with the file is said when it is needed.
        let entry = Mutex::new(tokens.of(url.as_str()).unwrap_or_default());
        Self {
            server: server.to_owned(),
            url,
            config,
            tokens,
            person,
            over,
            entry,
            turn: tokio::sync::Mutex::default(),
            refused: Mutex::default(),
            waiting: AtomicUsize::new(0),
        }
    }

    pub(super) fn token(&self) -> Option<String> {
        token(locked(&self.entry).as_ref())
    }

    /// Whether a person is signing in just now.
    pub(super) fn is_waiting(&self) -> bool {
        self.waiting.load(Ordering::SeqCst) > 0
    }

    /// Why nobody is signed in, once that is settled.
    pub(super) fn refused(&self) -> Option<String> {
        locked(&self.refused).clone()
    }

    /// Forgets the token. Says whether there was one.
    pub(super) fn forget(&self) -> Result<bool, String> {
        *locked(&self.entry) = None;
        self.tokens.set(self.url.as_str(), None)
    }

    fn keep(&self, entry: &Entry) -> Result<(), String> {
        self.tokens.set(self.url.as_str(), Some(entry.clone())).map(drop)
    }

    /// Sees to it that there is another token than the one that was `sent`.
    pub(super) async fn renew(&self, asked: Asked<'_>, sent: Option<&str>) -> Result<(), String> {
        let _turn = self.turn.lock().await;
        let stored = self.tokens.of(self.url.as_str())?;
        let entry = if token(stored.as_ref()).is_some_and(|token| Some(token.as_str()) != sent) {
            // Somebody else was signed in, or was quicker.
            stored
        } else if let Some(why) = self.refused() {
            return Err(why);
        } else {
            let work = self.over.run_until_cancelled(self.signed_in(asked, stored)).await;
            Some(work.unwrap_or_else(|| Err("the servers are being closed".to_owned()))?)
        };
        *locked(&self.entry) = entry;
        *locked(&self.refused) = None;
        Ok(())
    }

    async fn signed_in(&self, asked: Asked<'_>, stored: Option<Entry>) -> Result<Entry, String> {
        if !is_safe(&self.url, &self.url) {
            return Err(format!("{TOKEN_WANTED}; signing in is for https addresses only"));
        }
        let (Asked::Who(challenge) | Asked::More(challenge)) = asked;
        let mut manager = AuthorizationManager::new(self.url.clone()).await.map_err(told)?;
        let found = manager.resolve_metadata_from_challenge(Some(challenge)).await;
        let found =
            found.map_err(|error| format!("where to sign in cannot be found out: {}", told(error)))?;
        if !found.source.is_discovered() {
            return Err(TOKEN_WANTED.to_owned());
        }
        check(&self.url, &found.metadata)?;
        manager.set_metadata(found.metadata.clone());
        // What one issuer gave is of no use to another, and none of its business.
        let stored = stored.filter(|entry| entry.credentials.issuer == found.metadata.issuer);
        if let (Some(entry), Asked::Who(_)) = (&stored, &asked)
            && let Some(entry) = self.refreshed(&mut manager, entry).await?
        {
            return Ok(entry);
        }
        let granted = self.granted(asked, manager, &found.metadata, stored).await;
        // Nobody wants a new page with every call.
        let entry = granted.inspect_err(|why| *locked(&self.refused) = Some(why.clone()))?;
        self.keep(&entry).map(|()| entry)
    }

    /// A new token for the one that is not taken any more, if that is possible without a person.
    async fn refreshed(
        &self,
        manager: &mut AuthorizationManager,
        entry: &Entry,
    ) -> Result<Option<Entry>, String> {
        let alone = self.tokens.lock_file("refresh")?;
        while alone.as_ref().is_some_and(|file| matches!(file.try_lock(), Err(TryLockError::WouldBlock))) {
            sleep(LOOK).await;
        }
        let now = self.tokens.of(self.url.as_str())?;
        if now.is_some() && token(now.as_ref()) != token(Some(entry)) {
            return Ok(now);
        }
        let store = InMemoryCredentialStore::new();
        store.save(entry.credentials.clone()).await.map_err(told)?;
        manager.set_credential_store(store.clone());
        manager.configure_client(self.client(entry, self.url.to_string())).map_err(told)?;
        match manager.refresh_token().await {
            Ok(_) => {
                let credentials = kept(&store).await?.ok_or("renewing the token brought none")?;
                let entry = Entry { credentials, ..entry.clone() };
                // Before the lock is let go: the token for the next renewal may be good for one only.
                self.keep(&entry).map(|()| Some(entry))
            }
            Err(AuthError::AuthorizationRequired | AuthError::TokenRefreshRejected(_)) => Ok(None),
            Err(error) => Err(told(error)),
        }
    }

    /// Has a person grant what is asked for.
    async fn granted(
        &self,
        asked: Asked<'_>,
        manager: AuthorizationManager,
        metadata: &AuthorizationMetadata,
        stored: Option<Entry>,
    ) -> Result<Entry, String> {
        let mut scopes = Vec::new();
        if let (Asked::More(challenge), Some(entry)) = (&asked, &stored) {
            let wanted = WWWAuthenticateParams::parse(challenge, &self.url).scope.unwrap_or_default();
            scopes.clone_from(&entry.credentials.granted_scopes);
            if !scopes.is_empty()
                && wanted.split_whitespace().all(|scope| scopes.iter().any(|had| had == scope))
            {
                return Err(format!("it refuses although it was given the rights it asks for ({wanted})"));
            }
        }
        let Some(person) = &self.person else {
            return Err(format!("it needs to be signed in to: run `gripper mcp login {}`", self.server));
        };
        let chosen = match self.config.scopes.as_slice() {
            given @ [_, ..] if scopes.is_empty() => given.to_vec(),
            _ => manager.select_initial_scopes(&[]).await,
        };
        for scope in chosen {
            if !scopes.contains(&scope) {
                scopes.push(scope);
            }
        }
        self.waiting.fetch_add(1, Ordering::SeqCst);
        let _waiting = Waiting(&self.waiting);
        self.in_browser(&**person, manager, metadata, stored, &scopes).await
    }

    fn client(&self, entry: &Entry, redirect: String) -> OAuthClientConfig {
        let client = OAuthClientConfig::new(entry.credentials.client_id.clone(), redirect);
        let own = self.config.client_id.as_ref() == Some(&entry.credentials.client_id);
        let secret = if own { &self.config.client_secret } else { &entry.secret };
        secret.iter().fold(client, |client, secret| client.with_client_secret(secret))
    }

    async fn in_browser(
        &self,
        person: &dyn SignIn,
        mut manager: AuthorizationManager,
        metadata: &AuthorizationMetadata,
        stored: Option<Entry>,
        scopes: &[String],
    ) -> Result<Entry, String> {
        let scopes: Vec<&str> = scopes.iter().map(String::as_str).collect();
        let store = InMemoryCredentialStore::new();
        manager.set_credential_store(store.clone());
        let reads = metadata.additional_fields.get("client_id_metadata_document_supported");
        let published =
            self.config.client_metadata_url.as_ref().filter(|_| reads.is_some_and(|reads| *reads == true));
        let fixed = self.config.client_id.as_ref().or(published);
        let known = stored.filter(|entry| fixed.is_none() && entry.port != 0);
        let port = self.config.callback_port.or(known.as_ref().map(|entry| entry.port));
        // A registration names its port. If that is taken, there is another registration.
        let (landing, known) = match (Landing::at(port.unwrap_or_default()).await, self.config.callback_port)
        {
            (Ok(landing), _) => (landing, known),
            (Err(_), None) => (Landing::at(0).await?, None),
            (Err(why), Some(_)) => return Err(why),
        };
        let secret = if let Some(id) = fixed {
            let mut client = OAuthClientConfig::new(id, landing.url());
            if let (Some(secret), true) = (&self.config.client_secret, self.config.client_id.is_some()) {
                client = client.with_client_secret(secret);
            }
            manager.configure_client(client).map_err(told)?;
            None
        } else if let Some(entry) = known.filter(|entry| entry.port == landing.port) {
            manager.configure_client(self.client(&entry, landing.url())).map_err(told)?;
            entry.secret
        } else {
            manager.register_client("Gripper", &landing.url(), &scopes).await.map_err(told)?.client_secret
        };
        let url = manager.get_authorization_url(&scopes).await.map_err(told)?;
        let parsed = Url::parse(&url).map_err(|error| error.to_string())?;
        let state =
            parsed.query_pairs().find(|(name, _)| name == "state").map(|(_, state)| state.into_owned());
        let state = state.ok_or("the page to sign in on has no state")?;
        person.open(&self.server, &url);
        let answer = timeout(PATIENCE, landing.answer(&state)).await;
        let late = || Err(format!("nobody signed in within {} minutes", PATIENCE.as_secs() / 60));
        let failed = |why: &str| format!("signing in did not work: {}", cut(why));
        let answer = answer.unwrap_or_else(|_| late()).map_err(|why| failed(&why))?;
        let exchanged =
            manager.exchange_code_for_token_with_issuer(&answer.code, &state, answer.issuer.as_deref()).await;
        exchanged.map_err(|error| failed(&error.to_string()))?;
        let credentials = kept(&store).await?.ok_or("signing in brought no token")?;
        Ok(Entry { credentials, secret, port: landing.port })
    }
}

async fn kept(store: &InMemoryCredentialStore) -> Result<Option<StoredCredentials>, String> {
    store.load().await.map_err(told)
}

struct Waiting<'a>(&'a AtomicUsize);

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

#[cfg(test)]
mod tests;
