use rstest::rstest;

use super::{TABLE, Table, is_secret, is_steering, pattern_is_secret, word_is_secret};

#[test]
fn lists_are_sorted_and_every_pattern_compiles() {
    let table: Table = toml::from_str(TABLE).unwrap();
    for list in [
        &table.secret,
        &table.harmless,
        &table.steering,
        &table.protected,
        &table.streams,
        &table.words,
        &table.decoders,
    ] {
        assert!(list.is_sorted(), "out of order: {:?}", list.windows(2).find(|pair| pair[0] > pair[1]));
    }
    assert!(!super::COMPILED.broken);
}

#[rstest]
#[case("/p/.env", true)]
#[case("/p/.ENV", true)]
#[case("/p/.env.production", true)]
#[case("/p/.env.example", false)]
#[case("/home/dev/.ssh/id_rsa", true)]
#[case("/home/dev/.ssh", true)]
#[case("/p/certs/server.key", true)]
#[case("/p/deploy/prod.env", true)]
#[case("/p/infra/prod.tfstate", true)]
#[case("/p/kubeconfig", true)]
#[case("/p/.dev.vars", true)]
#[case("/p/client_secret_1.json", true)]
#[case("/p/k8s/secret.yaml", true)]
#[case("/p/src/secret.rs", false)]
#[case("/p/src/token.rs", false)]
#[case("/p/keys.rs", false)]
#[case("/p/src/environment.rs", false)]
fn secrets_are_told_by_their_path(#[case] path: &str, #[case] secret: bool) {
    assert_eq!(is_secret(path), secret);
}

#[rstest]
#[case("/p/.e*", true)]
#[case("/p/.*", true)]
#[case("/p/*.pem", true)]
#[case("/p/prod.pe*", true)]
#[case("/p/cred*", true)]
#[case("/p/secre?s/prod.yml", true)]
#[case("/p/.aw*/config", true)]
#[case("/p/*_hist*", true)]
#[case("/p/README*", false)]
#[case("/p/src/**/*.rs", false)]
#[case("/p/s*", false)]
#[case("/p/test_*.py", false)]
#[case("/p/*.json", false)]
#[case("/p/*.yml", false)]
#[case("/p/*.php", false)]
#[case("/p/src/token*.rs", false)]
#[case("/p/*.tfst*", true)]
#[case("/p/*", false)]
#[case("/home/dev/.ssh/*", true)]
fn patterns_are_told_by_what_they_reach(#[case] pattern: &str, #[case] secret: bool) {
    assert_eq!(pattern_is_secret(pattern), secret);
}

#[rstest]
#[case(".env", true)]
#[case("--file=.env", true)]
#[case("HEAD:.ssh/id_rsa", true)]
#[case("/.netrc", true)]
#[case(".e*", true)]
#[case("process.env", false)]
#[case("src/main.rs", false)]
#[case("*.rs", false)]
fn words_that_name_secrets(#[case] word: &str, #[case] secret: bool) {
    assert_eq!(super::names_secret(word), secret);
}

#[test]
fn words_and_steering_files() {
    assert!(word_is_secret("*.env"));
    assert!(!word_is_secret("environment"));
    assert!(is_steering("/p/.git/hooks/pre-commit"));
    assert!(!is_steering("/p/src/main.rs"));
}
