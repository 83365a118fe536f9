//! Who is asked, by what settings and environment say.

use gripper_runtime::{
    permissions::{Scope, Source},
    settings::Node,
};
use rstest::rstest;
use secrecy::ExposeSecret;

use super::{
    Key, Price, Usage,
    config::{NoModel, Picked, Purpose, choose, pick},
};

const LOCAL: &str =
    r#"{"providers": {"box": {"type": "openai", "baseUrl": "http://localhost:80", "window": 9000}}}"#;
const HUB: &str =
    r#"{"providers": {"hub": {"type": "openai", "baseUrl": "https://hub.example", "apiKeyEnv": "HUB"}}}"#;

fn picked(settings: &str, env: &str, wanted: &str, purpose: Purpose) -> Result<Picked, NoModel> {
    let settings = Node::parse(settings, &Source::of(Scope::User)).unwrap().0;
    let variable = |name: &str| {
        env.split(' ').find_map(|pair| pair.strip_prefix(name)?.strip_prefix('=')).map(str::to_owned)
    };
    pick(&settings, &variable, Some(wanted).filter(|wanted| !wanted.is_empty()), purpose)
}

#[test]
fn the_longest_answer_leaves_room_for_the_conversation() {
    let longest = |settings: &str, wanted: &str| {
        let settings = Node::parse(settings, &Source::of(Scope::User)).unwrap().0;
        let key = |name: &str| (name == "OPENAI_API_KEY").then(|| "k3y".to_owned());
        choose(&settings, &key, Some(wanted), Purpose::Main).map(|chosen| chosen.longest_answer()).ok()
    };
    assert_eq!(longest(LOCAL, "box/any"), Some(2_250));
    assert_eq!(longest("{}", "gpt-new"), Some(16_384));
    assert_eq!(longest("{}", "gpt-5"), Some(128_000));
}

/// `PROVIDER NAME WINDOW KEY@PLACE`, or why not.
fn words(settings: &str, env: &str, wanted: &str, purpose: Purpose) -> String {
    match picked(settings, env, wanted, purpose) {
        Err(error) => error.to_string(),
        Ok(Picked { endpoint, name, .. }) => {
            assert!(!format!("{endpoint:?}").contains("k3y"), "a key is printed");
            let key = match &endpoint.key {
                Key::None => "none".to_owned(),
                Key::Fixed(key) => format!("{}@{}", key.expose_secret(), endpoint.key_place),
                Key::Command { words, .. } => words.join("+"),
            };
            format!("{} {name} {} {key}", endpoint.provider, endpoint.window)
        }
    }
}

#[rstest]
#[case::default(
    "{}",
    "ANTHROPIC_API_KEY=k3y",
    "",
    "anthropic claude-sonnet-4-5 200000 k3y@ANTHROPIC_API_KEY"
)]
#[case::token("{}", "ANTHROPIC_AUTH_TOKEN=k3y", "m", "anthropic m 200000 k3y@ANTHROPIC_AUTH_TOKEN")]
#[case::other_key("{}", "OPENAI_API_KEY=k3y", "", "openai gpt-5 400000 k3y@OPENAI_API_KEY")]
#[case::by_name(
    "{}",
    "ANTHROPIC_API_KEY=a OPENAI_API_KEY=k3y",
    "gpt-4o-2024",
    "openai gpt-4o-2024 128000 k3y@OPENAI_API_KEY"
)]
#[case::variable(
    "{\"model\": \"x\"}",
    "OPENAI_API_KEY=k3y GRIPPER_MODEL=y ANTHROPIC_MODEL=z",
    "",
    "openai y 128000 k3y@OPENAI_API_KEY"
)]
#[case::settings(
    "{\"model\": \"x\", \"models\": {\"main\": \"y\"}}",
    "OPENAI_API_KEY=k3y",
    "",
    "openai y 128000 k3y@OPENAI_API_KEY"
)]
#[case::only_local(LOCAL, "", "qwen", "box qwen 9000 none")]
#[case::local_by_name(LOCAL, "ANTHROPIC_API_KEY=k3y", "box/org/qwen", "box org/qwen 9000 none")]
#[case::moved("{}", "ANTHROPIC_BASE_URL=http://127.0.0.1:1", "claude", "anthropic claude 200000 none")]
#[case::name_with_slash(HUB, "HUB=k3y", "meta/llama", "hub meta/llama 128000 k3y@HUB")]
#[case::helper(
    "{\"providers\": {\"openai\": {\"apiKeyHelper\": \"vault  get\"}}}",
    "",
    "gpt-5",
    "openai gpt-5 400000 vault+get"
)]
#[case::no_name(
    LOCAL,
    "",
    "",
    "no model of box is named: use --model box/NAME, or set \"model\" in settings"
)]
#[case::no_key(
    "{}",
    "",
    "anthropic/m",
    "there is no key for anthropic: set ANTHROPIC_API_KEY or ANTHROPIC_AUTH_TOKEN, or name \
    a command that prints it in providers.anthropic.apiKeyHelper in settings"
)]
#[case::no_key_of_name(
    "{}",
    "",
    "gpt-5",
    "there is no key for openai: set OPENAI_API_KEY, or name a command that prints it \
    in providers.openai.apiKeyHelper in settings"
)]
#[case::nothing(
    "{}",
    "",
    "",
    "no model is set up: set ANTHROPIC_API_KEY or OPENAI_API_KEY, or describe a provider in settings \
    (\"providers\": {\"NAME\": {\"type\", \"baseUrl\"}}) and choose it with --model NAME/MODEL"
)]
#[case::clear_text(
    "{}",
    "OPENAI_API_KEY=k3y OPENAI_BASE_URL=http://far.example/v1",
    "openai/m",
    "the key of openai would go unencrypted to far.example: use https"
)]
#[case::no_url(
    "{}",
    "OPENAI_API_KEY=k3y OPENAI_BASE_URL=far.example",
    "openai/m",
    "the base URL of openai begins with neither http:// nor https://: correct it"
)]
#[case::no_type(
    "{\"providers\": {\"x\": {}}}",
    "",
    "x/m",
    "providers.x has no \"type\": anthropic, openai or openai-responses"
)]
#[case::bad_header(
    "{\"providers\": {\"openai\": {\"headers\": {\"a b\": \"c\"}}}}",
    "OPENAI_API_KEY=k3y",
    "openai/m",
    "providers.openai.headers: \"a b\" is no header that can be sent"
)]
fn main(#[case] settings: &str, #[case] env: &str, #[case] wanted: &str, #[case] expected: &str) {
    assert_eq!(words(settings, env, wanted, Purpose::Main), expected);
}

#[rstest]
#[case::own(
    "{\"models\": {\"main\": \"gpt-5\", \"fast\": \"gpt-5-nano\"}}",
    "openai gpt-5-nano 400000 k3y@OPENAI_API_KEY"
)]
#[case::like_main("{\"models\": {\"main\": \"gpt-5\"}}", "openai gpt-5 400000 k3y@OPENAI_API_KEY")]
fn fast(#[case] settings: &str, #[case] expected: &str) {
    assert_eq!(words(settings, "OPENAI_API_KEY=k3y", "", Purpose::Fast), expected);
}

#[rstest]
#[case::known("gpt-5-mini-2025", Some(0.25))]
#[case::newer("gpt-5.9", None)]
#[case::told("own", Some(7.0))]
#[case::told_of_one_provider("openai/gpt-5", Some(8.0))]
fn prices(#[case] name: &str, #[case] input: Option<f64>) {
    let settings = r#"{"prices": {"own": {"input": 7}, "openai/gpt-5": {"input": 8}}}"#;
    let picked = picked(settings, "OPENAI_API_KEY=k3y", name, Purpose::Main).unwrap();
    assert_eq!(picked.price.map(|price| price.input), input);
}

#[test]
fn cost_and_limits() {
    let price = Price { input: 1.0, output: 10.0, cache_write: 2.0, cache_read: 0.1 };
    let usage = Usage {
        input_tokens: 1_000_000,
        output_tokens: 100_000,
        cache_creation_input_tokens: 500_000,
        cache_read_input_tokens: 10_000_000,
    };
    assert!((price.cost(&usage) - 4.0).abs() < 1e-9);
    let limits = r#"{"providers": {"openai": {"idleTimeoutMs": 5, "connectTimeoutMs": 6, "maxTokens": 7}}}"#;
    let picked = picked(limits, "OPENAI_API_KEY=k3y", "o3", Purpose::Main).unwrap();
    let times = (picked.endpoint.idle.as_millis(), picked.endpoint.connect.as_millis());
    assert_eq!((times, picked.max_tokens), ((5, 6), Some(7)));
    let source = Source::of(Scope::User);
    let chosen =
        choose(&Node::empty(source), &|_| Some("http://[::1]".to_owned()), Some("o3"), Purpose::Main);
    assert_eq!(
        chosen.map(|chosen| (chosen.name, chosen.model.window())).unwrap(),
        ("o3".to_owned(), 200_000)
    );
}
