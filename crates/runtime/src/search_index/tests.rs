use proptest::prelude::*;
use rstest::rstest;

use super::words::{fold, for_each_word};
use super::*;

fn tool(name: &str, hint: &str, description: &str) -> Document {
    Document { name: name.into(), hint: hint.into(), description: description.into(), ..Document::default() }
}

fn tools() -> Vec<Document> {
    vec![
        tool("WebFetch", "read one web page", "Downloads a page and answers a question about it."),
        tool("WebSearch", "search the internet", "Asks a search engine and lists what it found."),
        tool(
            "NotebookEdit",
            "change notebook cells",
            "Replaces, inserts or deletes a cell of a Jupyter notebook.",
        ),
        Document {
            aliases: vec!["KillBash".into()],
            ..tool("KillShell", "stop background command", "Ends a command that runs in the background.")
        },
        tool("TodoWrite", "plan steps", "Keeps the list of things to do for the session."),
        tool("mcp__github__create_issue", "", "Opens a new issue in a repository."),
        tool("mcp__github__list_issues", "", "Lists the issues of a repository, newest first."),
        tool("mcp__github__search_code", "", "Searches the code of all repositories."),
        tool("mcp__jira__create_issue", "", "Creates a ticket in a project."),
        tool("mcp__slack__send_message", "post to a channel", "Sends a message to a channel or a person."),
        tool("mcp__天気__予報", "", "天気予報を取得します。"),
        Document { server: Some("calendar".into()), ..tool("events", "", "Shows what is planned.") },
    ]
}

fn names(docs: &[Document], hits: &[Hit]) -> Vec<String> {
    hits.iter().map(|hit| docs[hit.document].name.clone()).collect()
}

fn found(query: &str, max: usize) -> Vec<String> {
    let docs = tools();
    names(&docs, &ToolIndex::build(docs.clone()).query(query, max))
}

#[rstest]
#[case::name_part("fetch", "WebFetch")]
#[case::whole_name("WebSearch", "WebSearch")]
#[case::whole_name_run_together("notebookedit", "NotebookEdit")]
#[case::name_beats_hint_and_description("search code", "mcp__github__search_code")]
#[case::hint("internet", "WebSearch")]
#[case::hint_beats_description("channel", "mcp__slack__send_message")]
#[case::description("jupyter", "NotebookEdit")]
#[case::alias("killbash", "KillShell")]
#[case::alias_part("kill bash", "KillShell")]
#[case::server_in_name("jira", "mcp__jira__create_issue")]
#[case::server_field("calendar", "events")]
#[case::server_and_name("github create issue", "mcp__github__create_issue")]
#[case::plural("messages", "mcp__slack__send_message")]
#[case::verb_form("sending a message", "mcp__slack__send_message")]
#[case::doubled_letter("planned steps", "TodoWrite")]
#[case::prefix_of_a_name_part("note", "NotebookEdit")]
#[case::punctuation("page, question?", "WebFetch")]
#[case::wrong_case("JUPYTER", "NotebookEdit")]
#[case::chinese("天気", "mcp__天気__予報")]
#[case::mcp_name("mcp__github__list_issues", "mcp__github__list_issues")]
fn best_tool_for_words(#[case] query: &str, #[case] best: &str) {
    assert_eq!(found(query, 5).first().map(String::as_str), Some(best), "{:?}", found(query, 5));
}

#[rstest]
#[case::required_only("+jira", &["mcp__jira__create_issue"])]
#[case::required_and_ranked("+github issue", &["mcp__github__create_issue", "mcp__github__list_issues", "mcp__github__search_code"])]
#[case::ranked_first("issue +github list", &["mcp__github__list_issues", "mcp__github__create_issue", "mcp__github__search_code"])]
#[case::two_required("+create +github", &["mcp__github__create_issue"])]
#[case::part_of_a_part("+hub code", &["mcp__github__search_code", "mcp__github__create_issue", "mcp__github__list_issues"])]
#[case::any_case("+WEB page", &["WebFetch", "WebSearch"])]
#[case::not_in_description("+jupyter", &[])]
#[case::required_not_there("+nowhere issue", &[])]
#[case::lone_plus("+", &[])]
fn required_words(#[case] query: &str, #[case] expected: &[&str]) {
    assert_eq!(found(query, 9), expected);
}

#[rstest]
#[case::one("select:WebFetch", &["WebFetch"], &[])]
#[case::order_asked("select:WebSearch,WebFetch", &["WebSearch", "WebFetch"], &[])]
#[case::any_case_and_spaces("SELECT: webfetch , TODOWRITE", &["WebFetch", "TodoWrite"], &[])]
#[case::alias("select:killbash", &["KillShell"], &[])]
#[case::alias_and_name("select:KillBash,KillShell", &["KillShell"], &[])]
#[case::missing("select:Nope,WebFetch,mcp__x__y", &["WebFetch"], &["Nope", "mcp__x__y"])]
#[case::part_is_not_enough("select:Web", &[], &["Web"])]
#[case::nothing("select:", &[], &[])]
#[case::empty_names("select:,,", &[], &[])]
fn selections(#[case] query: &str, #[case] expected: &[&str], #[case] missing: &[&str]) {
    let docs = tools();
    let answer = ToolIndex::build(docs.clone()).answer(&Query::parse(query), 9);
    assert_eq!(names(&docs, &answer.hits), expected);
    assert_eq!(answer.missing, missing);
}

#[rstest]
#[case::empty("")]
#[case::blank("  \t ")]
#[case::punctuation_only("?! -- __")]
#[case::unknown_word("zebra")]
fn finds_nothing(#[case] query: &str) {
    assert_eq!(found(query, 5), Vec::<String>::new());
}

#[test]
fn names_that_differ_only_in_case_can_both_be_selected() {
    let index = ToolIndex::build(vec![tool("run", "", ""), tool("Run", "", "")]);
    assert_eq!(index.query("select:Run", 5)[0].document, 1);
    assert_eq!(index.query("select:run", 5)[0].document, 0);
    assert_eq!(index.query("select:RUN", 5)[0].document, 0);
}

#[test]
fn an_alias_does_not_hide_a_tool_of_that_name() {
    let old = Document { aliases: vec!["new".into()], ..tool("old", "", "") };
    let index = ToolIndex::build(vec![old, tool("new", "", "")]);
    assert_eq!(index.query("select:new", 5)[0].document, 1);
}

#[test]
fn equal_scores_are_ordered_by_name() {
    let docs = ["charlie_x", "alpha_x", "bravo_x"].map(|name| tool(name, "", ""));
    let index = ToolIndex::build(docs.to_vec());
    assert_eq!(names(&docs, &index.query("x", 9)), ["alpha_x", "bravo_x", "charlie_x"]);
    assert_eq!(names(&docs, &index.query("x", 2)), ["alpha_x", "bravo_x"]);
}

#[test]
fn name_counts_more_than_hint_and_hint_more_than_description() {
    let docs = [tool("a", "", "alpha"), tool("b", "alpha", ""), tool("c_alpha", "", "")];
    let index = ToolIndex::build(docs.to_vec());
    assert_eq!(names(&docs, &index.query("alpha", 9)), ["c_alpha", "b", "a"]);
}

#[test]
fn counts_matches_beyond_the_maximum() {
    let answer = ToolIndex::build(tools()).answer(&Query::parse("issue"), 1);
    assert_eq!((answer.hits.len(), answer.matched), (1, 3));
    assert_eq!(ToolIndex::build(tools()).answer(&Query::parse("issue"), 0).hits, []);
}

#[test]
fn the_end_of_an_endless_query_is_ignored() {
    let long = format!("{}jupyter", "zebra ".repeat(1_000_000));
    assert_eq!(found(&long, 5), Vec::<String>::new());
    assert_eq!(found(&"é".repeat(10_000), 5), Vec::<String>::new());
}

#[test]
fn an_empty_index_answers() {
    let index = ToolIndex::build(Vec::new());
    assert!(index.is_empty());
    assert_eq!(index.query("+a b", 5), []);
}

#[rstest]
#[case::camel("WebFetch", &["web", "fetch"])]
#[case::acronym("HTTPServer", &["http", "server"])]
#[case::acronym_at_end("parseURL", &["parse", "url"])]
#[case::snake("create_issue", &["create", "issue"])]
#[case::digits("base64Encode v2", &["base64", "encode", "v2"])]
#[case::accents("Éléphant çaVa", &["éléphant", "ça", "va"])]
#[case::unspaced("天気api", &["天", "気", "api"])]
#[case::none("--", &[])]
fn words_of(#[case] text: &str, #[case] expected: &[&str]) {
    let mut words = Vec::new();
    for_each_word(text, &mut |word| words.push(word.to_owned()));
    assert_eq!(words, expected);
}

#[rstest]
#[case(&["file", "files"])]
#[case(&["query", "queries"])]
#[case(&["search", "searches", "searching", "searched"])]
#[case(&["create", "creates", "creating", "created"])]
#[case(&["run", "runs", "running"])]
#[case(&["call", "calls", "calling", "called"])]
#[case(&["process", "processes", "processing"])]
#[case(&["status"])]
fn folded_alike(#[case] forms: &[&str]) {
    assert!(forms.iter().all(|form| fold(form) == fold(forms[0])), "{:?}", forms.iter().map(|f| fold(f)));
}

#[rstest]
#[case("fill", "file")]
#[case("note", "not")]
#[case("class", "clas")]
#[case("status", "stat")]
fn folded_apart(#[case] one: &str, #[case] other: &str) {
    assert_ne!(fold(one), fold(other));
}

prop_compose! {
    fn any_document()(
        name in "(mcp__)?[a-cA-C]{1,4}(__?[a-cA-C]{1,4}){0,2}|\\PC{0,6}",
        aliases in prop::collection::vec("[a-c]{1,3}", 0..2),
        hint in "([a-c]{1,3} ){0,3}",
        description in "([a-cA-C]{1,4}[ ,.]){0,8}",
    ) -> Document {
        Document { name, aliases, server: None, hint, description }
    }
}

proptest! {
    #[test]
    fn answers_keep_their_promises(
        docs in prop::collection::vec(any_document(), 0..12),
        query in "(select:)?(\\+?[a-cA-C]{1,4}[ ,]){0,4}|\\PC{0,20}",
        max in 0usize..8,
    ) {
        let index = ToolIndex::build(docs.clone());
        let hits = index.query(&query, max);
        prop_assert!(hits.len() <= max);
        let mut seen: Vec<usize> = hits.iter().map(|hit| hit.document).collect();
        seen.sort_unstable();
        seen.dedup();
        prop_assert_eq!(seen.len(), hits.len());
        prop_assert!(hits.iter().all(|hit| hit.score > 0.0 && hit.score.is_finite()));
        prop_assert!(hits.windows(2).all(|pair| pair[0].score >= pair[1].score));
        prop_assert_eq!(&hits, &ToolIndex::build(docs.clone()).query(&query, max));
        let all = index.query(&query, usize::MAX);
        prop_assert_eq!(&hits[..], &all[..max.min(all.len())]);
        if let Query::Words { required, .. } = Query::parse(&query) {
            for hit in &hits {
                let name = docs[hit.document].name.to_lowercase();
                prop_assert!(required.iter().all(|word| name.contains(word)), "{} {:?}", name, required);
            }
        }
    }

    #[test]
    fn every_tool_is_found_by_its_name(docs in prop::collection::vec(any_document(), 1..12)) {
        let index = ToolIndex::build(docs.clone());
        for doc in docs.iter().filter(|doc| !doc.name.is_empty() && !doc.name.contains(|c: char| c.is_whitespace() || c == ',')) {
            let hits = index.query(&format!("select:{}", doc.name), 1);
            prop_assert_eq!(&docs[hits[0].document].name, &doc.name);
        }
    }

    #[test]
    fn the_order_of_tools_does_not_matter(docs in prop::collection::vec(any_document(), 0..10), query in "[a-c]{1,3} [a-c]{1,3}") {
        let reversed: Vec<Document> = docs.iter().rev().cloned().collect();
        let there = names(&docs, &ToolIndex::build(docs.clone()).query(&query, 20));
        let back = names(&reversed, &ToolIndex::build(reversed.clone()).query(&query, 20));
        prop_assert_eq!(there, back);
    }
}
