use std::os::unix::fs::PermissionsExt;

use rmcp::transport::auth::{AuthorizationMetadata, StoredCredentials};
use rstest::rstest;
use url::Url;

use super::{Entry, Tokens, check};

#[rstest]
#[case::https("https://a.example/mcp", "https://login.example/token", true)]
#[case::plain("https://a.example/mcp", "http://login.example/token", false)]
#[case::own_machine("http://127.0.0.1:1/mcp", "http://localhost:2/token", true)]
#[case::own_machine_of_a_far_server("https://a.example/mcp", "http://127.0.0.1:2/token", false)]
#[case::no_page("https://a.example/mcp", "file:///etc/passwd", false)]
#[case::no_address("https://a.example/mcp", "token", false)]
fn tokens_go_only_where_nobody_else_listens(#[case] server: &str, #[case] token: &str, #[case] fine: bool) {
    let server = Url::parse(server).unwrap();
    let mut metadata = AuthorizationMetadata::default();
    metadata.authorization_endpoint = "https://login.example/authorize".to_owned();
    metadata.token_endpoint = token.to_owned();
    assert_eq!(check(&server, &metadata).is_ok(), fine);
    (metadata.token_endpoint, metadata.issuer) = ("https://a.example".to_owned(), Some(token.to_owned()));
    assert_eq!(check(&server, &metadata).is_ok(), fine, "nor is anybody else believed");
}

#[test]
fn tokens_are_kept_for_their_owner_and_a_damaged_file_is_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("mcp/tokens.json");
    let tokens = Tokens::new(Some(file.clone()));
    let entry = |id: &str| {
        let credentials = StoredCredentials::new(id.to_owned(), None, Vec::new(), None);
        Some(Entry { credentials, secret: None, port: 7 })
    };
    assert_eq!(tokens.set("https://a", entry("one")), Ok(false));
    assert_eq!(tokens.set("https://b", entry("two")), Ok(false));
    assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(tokens.set("https://a", None), Ok(true));
    let other = Tokens::new(Some(file.clone()));
    assert!(other.of("https://a").unwrap().is_none());
    assert_eq!(
        other.of("https://b").unwrap().map(|entry| entry.credentials.client_id),
        Some("two".to_owned())
    );
    std::fs::write(&file, "{").unwrap();
    assert!(tokens.set("https://a", entry("one")).is_err_and(|why| why.contains("is damaged")));
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "{");
}
