//! sed scripts.

use super::super::FindingKind::{Exec, Read, Unknown};
use super::{all_clean, all_found, all_named, sed, writes};

#[test]
fn editing_and_printing_is_clean() {
    let scripts = [
        "",
        "p",
        "$!d",
        "3,7p;7q",
        "1~2d",
        "2,~4p",
        "/from/,+3p",
        "0,/x/d",
        "/a/I,/b/M!p",
        "1 , 2 ! p",
        "s/e/w/",
        "s/w x/e/gp",
        "s,/e,/w,2gIm",
        "s|a|b|;s#c#d#",
        "s/a/b/ ; p # e id",
        "s a b g",
        "Q",
        "n;d",
        "s/\\/e/\\/w f/",
        "s/a/\\\ne id/",
        "s/[\\/]/x/",
        "y/abc/xyz/;p",
        "y/[/]/",
        "y,a\\,b,xyz,",
        "s;a;b;;p",
        "/w f/d",
        "\\,e id,d",
        "\\|x/y|p",
        "{p;p}",
        "/a/{/b/{p;q5}}",
        "$!{N;D}",
        "{s/a/b/}",
        "=;l;l 5;F;z;x",
        "v 4.2\np",
        "s/é/→/g",
        "/ü/!d",
        "G;h;H;g;P",
        "# e id\np",
        "#n\n1p # w f",
    ];
    all_clean(sed, &scripts);
}

#[test]
fn delimiters_inside_brackets_end_nothing() {
    let scripts = [
        "s/[/]e/x/p",
        "s/[]/]w f/x/",
        "s/[^]/]e/x/",
        "s/[[:space:]/]e/x/g",
        "s/[[.].]/]/x/",
        "s/[^\\]]*//g",
        "/[/]e/d",
        "s,[[=,=],]e,x,",
    ];
    all_clean(sed, &scripts);
    all_found(
        sed,
        &Exec,
        &["s,[,],b,e", "s/[[:alpha:]/]/x/me", "/[/]/e", "s/a/[/e", "y/[/]/;e", "s/\\[/]/e"],
    );
}

#[test]
fn texts_and_labels_hold_no_commands() {
    let scripts = [
        ":a;N;$!ba;s/\\n/ /g",
        ":e\ns/x//\nte",
        "{:w;b w}",
        "a e id",
        "a\\\ne id",
        "i\\\nw f\\\ne id\np",
        "1i\\  e id",
        "$a\\text",
        "c e",
        "a foo\\\\\np",
        "a\\",
        "/x/{a }\n}",
        "a foo\\\ne id",
    ];
    all_clean(sed, &scripts);
}

#[test]
fn the_standard_streams_are_no_files() {
    all_clean(sed, &["w /dev/stdout", "s/a/b/w /dev/stderr", "r /dev/stdin", "R/dev/stdin\np"]);
    all_named(sed, writes, &[("w /dev/stdout ", "/dev/stdout "), ("w /dev/stdin", "/dev/stdin")]);
}

#[test]
fn commands_run_from_any_place_are_found() {
    let scripts = [
        "e",
        "e id",
        "1e",
        "$!{e id\n}",
        "p;p;e date",
        "/x/I e",
        "s/a/b/e",
        "s/a/b/ge",
        "s/a/b/3Ipe;p",
        "s/a/b/g e",
        "sxaxbxe",
        "s/a/b/;;e id",
        "{p;e\n}",
        "a text\ne id",
        "a\\\ntext\ne id",
        "a\ne id",
        "a foo\\\\\ne id",
        ":a;e id",
        ":a e id",
        "b;e",
        "# c\\\ne id",
        "y/e/w/;e",
        "s/\\//x/e",
        "s/a\\\nb/x/e",
        "\\xaxe",
        "1,3 ! e",
        "v;e",
        "s/é/ü/e",
        "0~4e",
        "2,+3e",
        "l 7;e",
        "s e e e e",
        "{{e\n}}",
        "\te",
    ];
    all_found(sed, &Exec, &scripts);
}

#[test]
fn files_are_named() {
    let written = [
        ("w out", "out"),
        ("W a b ; c", "a b ; c"),
        ("$w.git/x", ".git/x"),
        ("s/a/b/w out", "out"),
        ("s/a/b/gpw out}", "out}"),
        ("s/a/b/;w a\nw b", "b"),
        ("{w a\n}", "a"),
        ("s/a/b/2 w x", "x"),
        ("/x/,$!w y # z", "y # z"),
        ("s/a/b/ew o", "o"),
    ];
    all_named(sed, writes, &written);
    let read = [("r /etc/passwd", "/etc/passwd"), ("$R x y", "x y"), ("1!r\tz", "z"), ("{r a}\n}", "a}")];
    all_named(sed, Read, &read);
}

#[test]
fn broken_scripts_are_unknown() {
    let scripts = [
        "k",
        "L",
        "p e",
        "pp",
        "s/a/b",
        "s/a",
        "s",
        "y/a/b",
        "s/a\nb/c/",
        "s/[/x/",
        "{p",
        "p}",
        "{p}p",
        "1",
        "1,p",
        "1,x p",
        "1!!p",
        ":",
        ":a}x",
        "1:a",
        "1#",
        "a",
        "w",
        "r ",
        "s/a/b/k",
        "s/a/b/\r",
        "bx};e",
        "s\\a\\b\\",
        "s\na\nb\n",
        "séaébé",
        "p\u{0}",
        ":a\rp",
    ];
    all_found(sed, &Unknown, &scripts);
}

/// Each of these is one script to some sed and another to the next.
#[test]
fn scripts_that_seds_split_differently_are_unknown() {
    let scripts = [
        "a\\\\\ne id",
        "c\\ \ne id",
        "/[a\\]/x/]/p",
        "s/[[:a::]/]/x/",
        "s/\\c/x/e/",
        ":a;a\\\nw f",
        "b;s/x/\\\n/",
    ];
    all_found(sed, &Unknown, &scripts);
}
