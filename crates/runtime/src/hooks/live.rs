//! Hooks that can be replaced while a session runs.

use std::sync::{Arc, PoisonError, RwLock};

use futures::{FutureExt, future::BoxFuture};

use super::{After, Before, BeforeCall, HookEvent, HookRun, HookRunner, Hooks, Occasion, Scene};
use crate::pipeline::CallResult;

/// The hooks of settings files that may change. What has begun keeps the hooks it began with.
pub struct LiveHooks {
    /// The newest last; the others may still have something running.
    runners: RwLock<Vec<Arc<HookRunner>>>,
}

impl LiveHooks {
    /// Begins with these.
    pub fn new(runner: HookRunner) -> Self {
        Self { runners: RwLock::new(vec![Arc::new(runner)]) }
    }

    /// Goes on with these.
    pub fn replace(&self, runner: HookRunner) {
        self.runners.write().unwrap_or_else(PoisonError::into_inner).push(Arc::new(runner));
    }

    fn all(&self) -> Vec<Arc<HookRunner>> {
        self.runners.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn with<T>(&self, ask: impl FnOnce(&HookRunner) -> T) -> Option<T> {
        let runners = self.runners.read().unwrap_or_else(PoisonError::into_inner);
        runners.last().map(|runner| ask(runner))
    }

    fn now(&self) -> Option<Arc<HookRunner>> {
        self.runners.read().unwrap_or_else(PoisonError::into_inner).last().cloned()
    }
}

impl Hooks for LiveHooks {
    fn interested(&self, tool: &str) -> bool {
        self.with(|runner| runner.interested(tool)).unwrap_or(false)
    }

    fn before<'a>(&'a self, call: BeforeCall<'a>) -> BoxFuture<'a, Before> {
        async move {
            match self.now() {
                Some(runner) => runner.before(call).await,
                None => Before::default(),
            }
        }
        .boxed()
    }

    fn after<'a>(&'a self, call: BeforeCall<'a>, result: &'a CallResult) -> BoxFuture<'a, After> {
        async move {
            match self.now() {
                Some(runner) => runner.after(call, result).await,
                None => After::default(),
            }
        }
        .boxed()
    }

    fn listens(&self, event: HookEvent) -> bool {
        self.with(|runner| runner.listens(event)).unwrap_or(false)
    }

    fn fire<'a>(&'a self, scene: Scene<'a>, occasion: Occasion<'a>) -> BoxFuture<'a, After> {
        async move {
            match self.now() {
                Some(runner) => runner.fire(scene, occasion).await,
                None => After::default(),
            }
        }
        .boxed()
    }

    fn notify(&self, scene: Scene<'_>, occasion: Occasion<'_>) {
        self.with(|runner| runner.notify(scene, occasion));
    }

    fn close(&self) -> BoxFuture<'_, Vec<HookRun>> {
        async move {
            let mut runs = Vec::new();
            for runner in self.all() {
                runs.extend(runner.close().await);
            }
            runs
        }
        .boxed()
    }
}
