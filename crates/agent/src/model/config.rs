//! Which model is asked: from settings and the environment to something that answers.

use std::{collections::BTreeMap, path::PathBuf, sync::Arc, time::Duration};

use gripper_runtime::settings::Node;
use reqwest::{
    Url,
    header::{HeaderMap, HeaderName, HeaderValue},
};
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::{Map, Value};

use super::{Endpoint, Key, Model, Price, Remote, Wire};

/// What is known of providers and models without being told. A model's entry also stands for names that go on
/// with a dash, such as dated ones; the longest fits.
const KNOWN: &str = include_str!("known.json");
/// Longest answer, if nobody says.
const MAX_TOKENS: u32 = 16_384;
/// Tokens that a model can look at, if nobody says.
const WINDOWS: [(Wire, u64); 3] =
    [(Wire::Anthropic, 200_000), (Wire::OpenAiChat, 128_000), (Wire::OpenAiResponses, 128_000)];

/// A model that is ready to be asked.
#[derive(Clone)]
pub struct Chosen {
    /// Whom to ask.
    pub model: Arc<dyn Model>,
    /// What its provider calls it.
    pub name: String,
    /// What it costs, if that is known.
    pub price: Option<Price>,
    /// Its longest answer, if that is known.
    pub max_tokens: Option<u32>,
}

impl Chosen {
    /// The longest answer to ask for. Where nothing is known of the model, it leaves most of the window to the
    /// conversation: servers refuse a request whose answer might not fit behind it.
    pub fn longest_answer(&self) -> u32 {
        let part = u32::try_from(self.model.window() / 4).unwrap_or(u32::MAX);
        self.max_tokens.unwrap_or(MAX_TOKENS.min(part.max(1)))
    }
}

/// What a model is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// The conversation.
    Main,
    /// Small things on the side.
    Fast,
}

/// Why there is no model.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct NoModel(String);

#[derive(Default, Deserialize)]
#[serde(default)]
struct Settings {
    model: Option<String>,
    models: BTreeMap<String, String>,
    providers: BTreeMap<String, Provider>,
    prices: BTreeMap<String, Price>,
}

/// A provider as settings describe it, or as it is known.
#[derive(Clone, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Provider {
    r#type: Option<Wire>,
    base_url: Option<String>,
    base_url_env: Option<String>,
    api_key_env: Option<String>,
    api_key_helper: Option<String>,
    bearer_env: Option<String>,
    headers: BTreeMap<String, String>,
    window: Option<u64>,
    max_tokens: Option<u32>,
    idle_timeout_ms: Option<u64>,
    connect_timeout_ms: Option<u64>,
    /// The model to use when none is named.
    model: Option<String>,
    /// How names of its models begin.
    names: Vec<String>,
}

#[derive(Deserialize)]
struct Known {
    providers: BTreeMap<String, Provider>,
    models: BTreeMap<String, KnownModel>,
}

#[derive(Clone, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct KnownModel {
    window: Option<u64>,
    max_tokens: Option<u32>,
    price: Option<Price>,
}

/// Chooses a model. `wanted` is a name from the command line, `NAME` or `PROVIDER/NAME`; `variable` looks into the
/// environment. Nothing is opened yet.
pub fn choose(
    settings: &Node,
    variable: &dyn Fn(&str) -> Option<String>,
    wanted: Option<&str>,
    purpose: Purpose,
) -> Result<Chosen, NoModel> {
    let Picked { endpoint, name, price, max_tokens } = pick(settings, variable, wanted, purpose)?;
    Ok(Chosen { model: Arc::new(Remote::new(endpoint)), name, price, max_tokens })
}

/// What is chosen, before it is made.
pub(super) struct Picked {
    pub(super) endpoint: Endpoint,
    pub(super) name: String,
    pub(super) price: Option<Price>,
    pub(super) max_tokens: Option<u32>,
}

pub(super) fn pick(
    settings: &Node,
    variable: &dyn Fn(&str) -> Option<String>,
    wanted: Option<&str>,
    purpose: Purpose,
) -> Result<Picked, NoModel> {
    let mut settings: Settings = keys(settings)?;
    let known: Known = serde_json::from_str(KNOWN).map_err(|error| NoModel(error.to_string()))?;
    for (name, provider) in &known.providers {
        settings.providers.entry(name.clone()).or_default().complete(provider);
    }
    let set = |name: &str| variable(name).filter(|value| !value.trim().is_empty());
    let choice = Choice { settings: &settings, known: &known, set: &set };
    let fast = settings.models.get("fast").filter(|_| purpose == Purpose::Fast);
    let main = || settings.models.get("main").or(settings.model.as_ref());
    let named = match wanted {
        Some(wanted) => Some(wanted.to_owned()),
        None => fast
            .cloned()
            .or_else(|| set("GRIPPER_MODEL"))
            .or_else(|| set("ANTHROPIC_MODEL"))
            .or_else(|| main().cloned()),
    };
    choice.model(named)
}

/// The keys of settings that are read here.
fn keys<T: DeserializeOwned>(settings: &Node) -> Result<T, NoModel> {
    let found = ["model", "models", "prices", "providers"]
        .into_iter()
        .filter_map(|key| Some((key.to_owned(), settings.get(key)?.value())));
    let found = Value::Object(found.collect::<Map<_, _>>());
    serde_json::from_value(found)
        .map_err(|error| NoModel(format!("the settings of models are not understood: {error}")))
}

impl Provider {
    /// Takes over what is not said.
    fn complete(&mut self, known: &Provider) {
        let said = std::mem::replace(self, known.clone());
        *self = Provider {
            r#type: said.r#type.or(self.r#type),
            base_url_env: self.base_url_env.take(),
            base_url: said.base_url.or(self.base_url.take()),
            bearer_env: if said.api_key_env.is_some() { None } else { self.bearer_env.take() },
            api_key_env: said.api_key_env.or(self.api_key_env.take()),
            model: self.model.take(),
            names: std::mem::take(&mut self.names),
            ..said
        };
    }
}

struct Choice<'a> {
    settings: &'a Settings,
    known: &'a Known,
    set: &'a dyn Fn(&str) -> Option<String>,
}

impl Choice<'_> {
    fn model(&self, named: Option<String>) -> Result<Picked, NoModel> {
        let (provider, name) = match &named {
            Some(named) => match named.split_once('/') {
                Some((provider, name)) if self.settings.providers.contains_key(provider) => {
                    (provider, Some(name))
                }
                _ => (self.provider_of(Some(named))?, Some(named.as_str())),
            },
            None => (self.provider_of(None)?, None),
        };
        let described = &self.settings.providers[provider];
        let Some(name) = name.or(described.model.as_deref()).filter(|name| !name.is_empty()) else {
            return Err(NoModel(format!(
                "no model of {provider} is named: use --model {provider}/NAME, or set \"model\" in settings"
            )));
        };
        let known = self.known_model(name);
        let mut endpoint = self.endpoint(provider, described)?;
        let usual = WINDOWS.iter().find(|(wire, _)| *wire == endpoint.wire).map_or(0, |(_, window)| *window);
        endpoint.window = described.window.or(known.window).unwrap_or(usual);
        let prices = &self.settings.prices;
        let told = prices.get(&format!("{provider}/{name}")).or_else(|| prices.get(name));
        Ok(Picked {
            endpoint,
            name: name.to_owned(),
            price: told.copied().or(known.price),
            max_tokens: described.max_tokens.or(known.max_tokens),
        })
    }

    fn known_model(&self, name: &str) -> KnownModel {
        let fits = |known: &&String| {
            name.strip_prefix(known.as_str()).is_some_and(|rest| rest.is_empty() || rest.starts_with('-'))
        };
        let best = self.known.models.keys().filter(fits).max_by_key(|known| known.len());
        best.and_then(|best| self.known.models.get(best)).cloned().unwrap_or_default()
    }

    /// Whose model a name without a provider is: of the one whose names begin so, of the only one that settings
    /// add, or of the first that could be asked.
    fn provider_of(&self, name: Option<&str>) -> Result<&str, NoModel> {
        let providers = &self.settings.providers;
        let begins = |provider: &Provider| {
            name.is_some_and(|name| provider.names.iter().any(|start| name.starts_with(start.as_str())))
        };
        let own = |provider: &Provider| provider.names.is_empty();
        let ready: Vec<&String> = providers
            .iter()
            .filter(|(name, provider)| self.endpoint(name, provider).is_ok())
            .map(|(name, _)| name)
            .collect();
        let first =
            |fits: &dyn Fn(&Provider) -> bool| ready.iter().copied().find(|name| fits(&providers[*name]));
        let owned = providers.values().filter(|provider| own(provider)).count();
        let chosen = first(&begins).or_else(|| first(&own).filter(|_| owned == 1)).or(ready.first().copied());
        if let Some(chosen) = chosen {
            return Ok(chosen);
        }
        // None is ready; the one that is meant says best why.
        let meant = providers.iter().find(|(_, provider)| begins(provider) || own(provider));
        meant.map(|(name, _)| name.as_str()).ok_or_else(|| {
            NoModel(
                "no model is set up: set ANTHROPIC_API_KEY or OPENAI_API_KEY, or describe a provider in settings \
                 (\"providers\": {\"NAME\": {\"type\", \"baseUrl\"}}) and choose it with --model NAME/MODEL"
                    .to_owned(),
            )
        })
    }

    fn endpoint(&self, name: &str, provider: &Provider) -> Result<Endpoint, NoModel> {
        let wire = provider.r#type.ok_or_else(|| {
            NoModel(format!("providers.{name} has no \"type\": anthropic, openai or openai-responses"))
        })?;
        let moved = provider.base_url_env.as_deref().and_then(self.set);
        let base = moved.as_ref().or(provider.base_url.as_ref());
        let base = base.ok_or_else(|| NoModel(format!("providers.{name} has no \"baseUrl\"")))?;
        let url = Url::parse(base).ok().filter(|url| matches!(url.scheme(), "http" | "https"));
        let url = url.ok_or_else(|| {
            NoModel(format!("the base URL of {name} begins with neither http:// nor https://: correct it"))
        })?;
        let mut endpoint = Endpoint::new(name, wire, url);
        self.key(name, provider, &mut endpoint)?;
        let secret = !matches!(endpoint.key, Key::None) || !provider.headers.is_empty();
        if secret && endpoint.base.scheme() != "https" && !endpoint.is_local() {
            return Err(NoModel(format!(
                "the key of {name} would go unencrypted to {}: use https",
                endpoint.base.host_str().unwrap_or_default()
            )));
        }
        endpoint.headers = headers(name, &provider.headers)?;
        if let Some(limit) = provider.idle_timeout_ms {
            endpoint.idle = Duration::from_millis(limit);
        }
        if let Some(limit) = provider.connect_timeout_ms {
            endpoint.connect = Duration::from_millis(limit);
        }
        Ok(endpoint)
    }

    fn key(&self, name: &str, provider: &Provider, endpoint: &mut Endpoint) -> Result<(), NoModel> {
        let variable = provider.api_key_env.as_deref();
        let (key, place) = if let Some(helper) = &provider.api_key_helper {
            let cwd = (self.set)("HOME").map(PathBuf::from).filter(|home| home.is_absolute());
            let key = Key::Command {
                words: helper.split_whitespace().map(str::to_owned).collect(),
                cwd: cwd.unwrap_or_else(|| PathBuf::from("/")),
                known: Arc::default(),
            };
            (key, format!("providers.{name}.apiKeyHelper in settings"))
        } else if let Some((variable, key)) = variable.and_then(|name| Some((name, (self.set)(name)?))) {
            (Key::Fixed(key.trim().into()), variable.to_owned())
        } else if let Some((variable, token)) =
            provider.bearer_env.as_deref().and_then(|name| Some((name, (self.set)(name)?)))
        {
            endpoint.bearer = true;
            (Key::Fixed(token.trim().into()), variable.to_owned())
        } else if endpoint.is_local() || variable.is_none() {
            (Key::None, format!("providers.{name}.apiKeyEnv in settings"))
        } else {
            let names = [variable, provider.bearer_env.as_deref()].map(Option::into_iter);
            let names = names.into_iter().flatten().collect::<Vec<_>>().join(" or ");
            return Err(NoModel(format!(
                "there is no key for {name}: set {names}, or name a command that prints it in \
                 providers.{name}.apiKeyHelper in settings"
            )));
        };
        (endpoint.key, endpoint.key_place) = (key, place);
        Ok(())
    }
}

fn headers(provider: &str, told: &BTreeMap<String, String>) -> Result<HeaderMap, NoModel> {
    let mut headers = HeaderMap::new();
    for (name, value) in told {
        let (Ok(header), Ok(mut value)) = (HeaderName::try_from(name), HeaderValue::try_from(value)) else {
            return Err(NoModel(format!(
                "providers.{provider}.headers: \"{name}\" is no header that can be sent"
            )));
        };
        value.set_sensitive(true);
        headers.insert(header, value);
    }
    Ok(headers)
}
