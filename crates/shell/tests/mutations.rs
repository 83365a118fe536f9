//! Laws that hold for every command, tried on the examples of the model files: another spelling changes nothing,
//! wrapping and adding never make a verdict weaker, and no text at all can do harm to the analysis itself.
//! `PROPTEST_CASES=20000 cargo test -p gripper-shell --test mutations` looks longer.

#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test may stop at the first surprise"
)]

use std::{fs, path::Path, sync::LazyLock};

use gripper_shell::{
    Analysis, Span, Surroundings, Verdict, analyze,
    syntax::{self, tree},
};
use proptest::{
    prelude::{ProptestConfig, Strategy, any, prop, prop_assert, prop_assert_eq, prop_assume, proptest},
    sample::{Index, select},
    test_runner::RngSeed,
};

/// More parts than this would mean that nothing bounds them.
const MOST_PARTS: usize = 10_000;

/// Every example of the model files, the allowed and the refused ones.
static POOL: LazyLock<Vec<String>> = LazyLock::new(|| {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("models");
    let mut files: Vec<_> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    let mut pool = Vec::new();
    for file in files {
        let table: toml::Table = fs::read_to_string(file).unwrap().parse().unwrap();
        table.values().filter_map(toml::Value::as_table).for_each(|entry| collect(entry, &mut pool));
    }
    pool
});

fn collect(entry: &toml::Table, pool: &mut Vec<String>) {
    for field in ["allow", "refuse"] {
        let lines = entry.get(field).and_then(toml::Value::as_array).into_iter().flatten();
        pool.extend(lines.map(|line| line.as_str().unwrap().to_owned()));
    }
    for sub in entry.get("sub").and_then(toml::Value::as_table).into_iter().flat_map(toml::Table::values) {
        collect(sub.as_table().unwrap(), pool);
    }
}

fn example() -> impl Strategy<Value = &'static str> {
    any::<Index>().prop_map(|index| index.get(&POOL).as_str())
}

/// The same mutants in every run, so that a run tells of the change it tests; `PROPTEST_CASES` tries more of them.
fn config() -> ProptestConfig {
    ProptestConfig {
        failure_persistence: None,
        rng_seed: RngSeed::Fixed(20),
        max_global_rejects: u32::MAX,
        ..ProptestConfig::default()
    }
}

/// In a function a declared name is a new one with nothing in it.
fn makes_local(form: &str, text: &str) -> bool {
    form.starts_with("f()") && ["declare ", "typeset "].iter().any(|word| text.starts_with(word))
}

fn here() -> Surroundings<'static> {
    Surroundings::new("/home/dev/project", "/home/dev")
}

fn analysed(text: &str) -> Analysis {
    analyze(text, &here())
}

/// The verdict, with a path outside of the project counting as the worst.
fn verdict(text: &str) -> Verdict {
    let analysis = analysed(text);
    let outside = |path: &str| path.starts_with('/') && !here().holds(path);
    if analysis.reads().iter().any(|target| outside(&target.to_string())) {
        return Verdict::NotReadOnly;
    }
    analysis.verdict()
}

/// The simple commands of a text that stand in no compound one.
fn commands(text: &str) -> Vec<tree::Simple> {
    let parsed = syntax::parse(text);
    let chains = parsed.list.items.into_iter().map(|item| item.chain);
    let pipelines = chains
        .flat_map(|chain| std::iter::once(chain.first).chain(chain.rest.into_iter().map(|(_, next)| next)));
    let stages = pipelines.flat_map(|pipeline| pipeline.stages);
    let simple = stages.filter_map(|stage| match stage.command.kind {
        tree::CommandKind::Simple(simple) if !simple.words.is_empty() => Some(simple),
        _ => None,
    });
    simple.collect()
}

/// Where the words are that say exactly what is written: no quotes, nothing that the shell expands.
fn plain_words(text: &str) -> Vec<Span> {
    let words = commands(text).into_iter().flat_map(|simple| simple.words);
    let plain = |word: &str| word.chars().all(|c| c.is_ascii_alphanumeric() || "_./:@%+,=-".contains(c));
    words.map(|word| word.span).filter(|span| plain(span.of(text))).collect()
}

/// `text` with something else in place of `span`.
fn replaced(text: &str, span: Span, with: &str) -> String {
    let range = span.range();
    [&text[..range.start], with, &text[range.end..]].concat()
}

/// A word in other spellings; `at` is a place in it.
const SPELLINGS: [fn(&str, usize) -> String; 9] = [
    |word, _| format!("'{word}'"),
    |word, _| format!("\"{word}\""),
    |word, _| format!("$'{word}'"),
    |word, _| format!("''{word}"),
    |word, _| word.bytes().fold(String::from("$'"), |text, byte| format!("{text}\\x{byte:02x}")) + "'",
    |word, at| format!("{}''{}", &word[..at], &word[at..]),
    |word, at| format!("{}'{}'", &word[..at], &word[at..]),
    |word, at| format!("\"{}\"{}", &word[..at], &word[at..]),
    |word, at| format!("{}\\{}", &word[..at], &word[at..]),
];

/// What may stand between two words.
const BLANKS: [&str; 5] = ["  ", "\t", " \\\n", "\\\n ", " \\\n\\\n\t"];

/// Forms around a whole text that change nothing of what it does.
const PLAIN_FORMS: [&str; 6] = [
    "{ CMD\n}",
    "( CMD\n)",
    "if true; then CMD\nfi",
    "true && { CMD\n}",
    "CMD\n# done",
    "case x in x) CMD\n;; esac",
];

/// Forms around a whole text that run it.
const FORMS: [&str; 18] = [
    "! { CMD\n}",
    "{ CMD\n} &",
    "time { CMD\n}",
    "for zz in 1 2; do CMD\ndone",
    "while true; do CMD\ndone",
    "f() { CMD\n}; f",
    "if CMD\nthen true; fi",
    "true | { CMD\n}",
    "echo \"$(CMD\n)\"",
    "cat <(CMD\n)",
    "zz=$(CMD\n)",
    "cat <<< \"$(CMD\n)\"",
    "coproc { CMD\n}",
    "bash -c QUOTED",
    "sh -c QUOTED",
    "eval QUOTED",
    "bash -c 'eval \"$1\"' _ QUOTED",
    "trap QUOTED EXIT",
];

/// Programs and settings before a command.
const PREFIXES: [&str; 10] = [
    "timeout 5",
    "env",
    "env -i",
    "command",
    "nice",
    "nice -n 5",
    "stdbuf -oL",
    "LC_ALL=C",
    "NO_COLOR=1",
    "setsid",
];

/// Redirections that write.
const WRITES: [&str; 6] = ["> out.txt", ">> out.txt", "2> out.txt", "&> out.txt", ">| out.txt", "<> out.txt"];

/// Builtins after which the next command may mean something else.
const STATEFUL: [&str; 18] = [
    "cd", "pushd", "popd", "set", "shift", "export", "declare", "typeset", "local", "readonly", "unset",
    "alias", "unalias", "shopt", "enable", "hash", "read", "eval",
];

fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

fn filled(form: &str, text: &str) -> String {
    form.replace("QUOTED", &quoted(text)).replace("CMD", text)
}

/// Whether something can be written behind the text on its last line.
fn can_go_on(text: &str) -> bool {
    !text.contains(['#', '\n']) && !text.contains("<<") && !text.trim_end().ends_with(['&', ';', '\\'])
}

fn is_stateful(text: &str) -> bool {
    let analysis = analysed(text);
    let mut names =
        analysis.parts().iter().filter_map(|part| part.argv.first()).filter_map(|first| first.literal());
    names.any(|name| STATEFUL.contains(&name)) || analysis.parts().iter().any(|part| part.argv.is_empty())
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn another_spelling_of_a_word_changes_nothing(
        text in example(), word in any::<Index>(), at in any::<Index>(), spelling in select(SPELLINGS.as_slice()),
    ) {
        let words = plain_words(text);
        prop_assume!(!words.is_empty());
        let span = *word.get(&words);
        let word = span.of(text);
        let mutant = replaced(text, span, &spelling(word, at.index(word.len())));
        // A quoted `declare` is no keyword any more, and `a=(b)` behind it is an error.
        let broken = syntax::parse(&mutant).error.is_some();
        let expected = if broken { Verdict::NotReadOnly } else { verdict(text) };
        prop_assert_eq!(verdict(&mutant), expected, "{}\n{}", text, mutant);
    }

    #[test]
    fn more_blanks_change_nothing(text in example(), word in any::<Index>(), blank in select(BLANKS.as_slice())) {
        let words: Vec<Span> = commands(text).iter().flat_map(|simple| simple.words.iter().skip(1)).map(|word| word.span).collect();
        prop_assume!(!words.is_empty());
        let start = word.get(&words).start as usize;
        let mutant = replaced(text, Span::new(start, start), blank);
        prop_assert_eq!(verdict(&mutant), verdict(text), "{}\n{}", text, mutant);
    }

    #[test]
    fn plain_forms_change_nothing(text in example(), form in select(PLAIN_FORMS.as_slice())) {
        let mutant = filled(form, text);
        prop_assert_eq!(verdict(&mutant), verdict(text), "{}\n{}", text, mutant);
    }

    #[test]
    fn wrapping_never_weakens(text in example(), form in select(FORMS.as_slice())) {
        prop_assume!(!makes_local(form, text));
        let mutant = filled(form, text);
        prop_assert!(verdict(&mutant) >= verdict(text), "{}\n{}", text, mutant);
    }

    #[test]
    fn wrapping_twice_never_weakens(
        text in example(), inner in select(FORMS.as_slice()), outer in select(FORMS.as_slice()),
    ) {
        prop_assume!(![inner, outer].iter().any(|form| makes_local(form, text)));
        let mutant = filled(outer, &filled(inner, text));
        prop_assert!(verdict(&mutant) >= verdict(text), "{}\n{}", text, mutant);
    }

    #[test]
    fn a_prefix_never_weakens(text in example(), prefix in select(PREFIXES.as_slice())) {
        // The programs of these names know less than the builtins, and harmless is what they do not know.
        prop_assume!(!["printf ", "test ", "[ "].iter().any(|name| text.starts_with(name)));
        let mutant = format!("{prefix} {text}");
        prop_assert!(verdict(&mutant) >= verdict(text), "{}\n{}", text, mutant);
    }

    #[test]
    fn adding_a_command_never_weakens(
        left in example(), right in example(), joint in select(["\n", ";", "&&", "||", "|", "&", "|&"].as_slice()),
    ) {
        let worst = verdict(left).max(verdict(right));
        let apart = format!("( {left}\n) {joint} ( {right}\n)");
        prop_assert!(verdict(&apart) >= worst, "{}", apart);
        if can_go_on(left) && !is_stateful(left) && !is_stateful(right) {
            let joined = format!("{left} {joint} {right}");
            prop_assert!(verdict(&joined) >= worst, "{}", joined);
        }
    }

    #[test]
    fn an_operand_that_runs_a_command_never_weakens(text in example(), inner in example()) {
        prop_assume!(can_go_on(text));
        // Some programs do harm only when they are given nothing: `env`, `set`.
        let worst = verdict(text).min(verdict(&format!("{text} x"))).max(verdict(inner));
        for operand in [format!("$({inner}\n)"), format!("\"$({inner}\n)\""), format!("<({inner}\n)")] {
            let mutant = format!("{text} {operand}");
            prop_assert!(verdict(&mutant) >= worst, "{}", mutant);
        }
    }

    #[test]
    fn what_writes_a_file_does_not_only_read(text in example(), redirection in select(WRITES.as_slice())) {
        prop_assert_eq!(verdict(&format!("{{ {text}\n}} {redirection}")), Verdict::NotReadOnly, "{}", text);
        if can_go_on(text) {
            prop_assert_eq!(verdict(&format!("{text} {redirection}")), Verdict::NotReadOnly, "{}", text);
        }
    }

    #[test]
    fn an_unknown_flag_never_weakens(text in example(), which in any::<Index>()) {
        let commands = commands(text);
        prop_assume!(!commands.is_empty());
        let end = which.get(&commands).words[0].span.end as usize;
        for flag in [" --frobnicate", " -\u{a7}", " --frobnicate=x"] {
            let mutant = replaced(text, Span::new(end, end), flag);
            prop_assert!(verdict(&mutant) >= verdict(text), "{}\n{}", text, mutant);
        }
    }

    #[test]
    fn the_same_text_always_means_the_same(text in example(), form in select(FORMS.as_slice())) {
        let mutant = filled(form, text);
        prop_assert_eq!(analysed(&mutant), analysed(&mutant));
    }

    #[test]
    fn any_text_comes_to_an_end(text in any::<String>()) {
        sound(&text)?;
    }

    #[test]
    fn any_bytes_come_to_an_end(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        sound(&String::from_utf8_lossy(&bytes))?;
    }

    #[test]
    fn any_soup_of_tokens_comes_to_an_end(tokens in prop::collection::vec(token(), 0..30)) {
        sound(&tokens.concat())?;
    }

    #[test]
    fn any_cut_of_a_command_comes_to_an_end(text in example(), from in any::<Index>(), to in any::<Index>()) {
        let (from, to) = (from.index(text.len() + 1), to.index(text.len() + 1));
        if let Some(cut) = text.get(from.min(to)..from.max(to)) {
            sound(cut)?;
        }
    }
}

#[test]
fn printing_loses_nothing() {
    for text in POOL.iter() {
        for form in ["CMD", "{ CMD\n}", "echo \"$(CMD\n)\" | eval QUOTED &", "f() { CMD\n}; f"] {
            let parsed = syntax::parse(&filled(form, text));
            let printed = syntax::print(&parsed.list);
            let again = syntax::parse(&printed);
            assert_eq!(again.error, None, "{text}\n{printed}");
            assert!(syntax::same(&parsed.list, &again.list), "{text}\n{printed}");
            assert_eq!(syntax::print(&again.list), printed, "{text}");
        }
    }
}

#[test]
fn the_pool_is_worth_trying() {
    let refused = POOL.iter().filter(|text| verdict(text) == Verdict::NotReadOnly).count();
    assert!(refused > 500 && POOL.len() - refused > 500, "{refused} of {} refused", POOL.len());
}

/// A word of an example, or a piece of grammar.
fn token() -> impl Strategy<Value = String> {
    const GRAMMAR: [&str; 44] = [
        " ",
        " ",
        " ",
        "\n",
        ";",
        "&",
        "&&",
        "||",
        "|",
        "(",
        ")",
        "{ ",
        " }",
        "<",
        ">",
        ">>",
        "<<E\n",
        "\nE\n",
        "<<<",
        "'",
        "\"",
        "`",
        "\\",
        "$",
        "$(",
        "${",
        "}",
        "$((",
        "))",
        "[[ ",
        " ]]",
        "if ",
        "then ",
        "fi",
        "for x in ",
        "do ",
        "done",
        "case x in ",
        "esac",
        "x=",
        "$x",
        "*",
        "~",
        "#",
    ];
    let word = (example(), any::<Index>()).prop_map(|(text, index)| {
        let words: Vec<&str> = text.split(' ').collect();
        format!("{} ", index.get(&words))
    });
    proptest::prop_oneof![select(GRAMMAR.as_slice()).prop_map(str::to_owned), word]
}

/// No panic, a bounded answer, and every place in the text.
fn sound(text: &str) -> Result<(), proptest::test_runner::TestCaseError> {
    let analysis = analysed(text);
    let inside = |span: Span| text.get(span.range()).is_some();
    prop_assert!(analysis.parts().len() <= MOST_PARTS);
    prop_assert!(analysis.parts().iter().all(|part| inside(part.span)), "{:?}", analysis.parts());
    prop_assert!(analysis.effects().all(|effect| inside(effect.span)), "{:?}", analysis.parts());
    prop_assert!(analysis.risks().iter().all(|risk| inside(risk.span)), "{:?}", analysis.risks());
    let doubts = analysis.unresolved().iter().chain(analysis.confined());
    prop_assert!(doubts.clone().all(|doubt| inside(doubt.span)), "{:?}", doubts.collect::<Vec<_>>());
    prop_assert!(!analysis.summary(&here()).is_empty());
    if syntax::parse(text).error.is_some() {
        prop_assert_eq!(analysis.verdict(), Verdict::NotReadOnly);
    }
    prop_assert_eq!(&analysed(text), &analysis);
    Ok(())
}
