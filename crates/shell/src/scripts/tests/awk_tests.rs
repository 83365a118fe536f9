//! awk programs.

use super::super::FindingKind::{Environment, Exec, Module, Network, Read, Unknown, Write};
use super::{all_clean, all_found, all_named, awk, writes};

#[test]
fn computing_and_printing_is_clean() {
    let programs = [
        "",
        "1",
        "{print $1,$NF}",
        "!seen[$0]++",
        "NR==FNR { a[$1]; next } $1 in a",
        "{ print -1 \" \" x }",
        "{ if ($2 >= 10) print $1; else print \"low\" }",
        "{ print toupper(substr($1, 1, 1)) }",
        "{ n = split($0, p, /,/); print p[n] / 2 }",
        "BEGIN { for ((i,j) in a) x }",
        "{ print 0x1F, 1e-3, .5 }",
        "{ close(\"x\"); fflush() }",
        "{ print \"é → ü\" }",
        "{ print a \\\n  b }",
        "{ print # all\n}",
        "function f(a, b) {\n  return a + b\n}\n{ print f($1, 2) }",
        "{ printf \"%s\\n\", $1 }",
        "{ switch ($1) { case /a|b/: print; break; default: next } }",
        "BEGIN { while (i < ARGC) i++ }",
    ];
    all_clean(awk, &programs);
}

#[test]
fn comparisons_are_no_redirections() {
    let programs = [
        "NR>1",
        "$3 > 5",
        "length > 80",
        "length($0) > 80 { print FILENAME }",
        "{ x = a > b ? c : d }",
        "{ print (a > b) }",
        "{ print a[x > y] }",
        "{ print f(1 > 2) } function f(v) { return v > 0 }",
        "{ print(1 > 2, 3) }",
        "{ printf(\"%d\\n\", $1 > 2) }",
        "{ print }\n$1 > 2",
        "{ print; x = 1 > 2 }",
        "{ print $1,\n  $2 }\nx > 3",
        "{ do { x-- } while (x > 0) }",
        "{ for (i = 9; i > 0; i--) print i }",
        "{ if (x) print\n y = a > b }",
        "{ print a >= b }",
        "{ getline x; y = x < 3 }",
        "{ (getline x) < 5 }",
        "BEGIN { while ((getline line) > 0) n++ }",
        "{ if (getline && x < 3) next }",
    ];
    all_clean(awk, &programs);
}

#[test]
fn texts_and_expressions_hold_no_operators() {
    let programs = [
        "/a|b>c/",
        "$0 ~ /x|y/ && !/> z/",
        "{ gsub(/a|b/, \"|\"); print }",
        "{ print \"a > b | c\" }",
        "{ print } # > \"f\" | sh",
        "{ print a / b / c }",
        "/\\/usr|bin/",
        "/=/ { print }",
        "{ i++ / 2 }",
        "{ x /= 2 }\n{ y = x/2 }",
        "{ a[i]++ / 3; b = /|/ }",
        "/[/]x/ { print }",
        "$1 == @/a>b/",
        "{ match($0, /[^/]+$/); print RSTART }",
        "{ print \"\\\"|\" }",
        "{ x = (a) / 2; y = /\"|/ }",
    ];
    all_clean(awk, &programs);
}

#[test]
fn the_standard_streams_are_no_files() {
    let programs = [
        "{ print > \"/dev/stderr\" }",
        "{ printf \"%s\\n\", $1 > \"/dev/stdout\"; print }",
        "{ while ((getline l < \"-\") > 0) n++ }",
        "BEGIN { getline x < \"/dev/stdin\" }",
    ];
    all_clean(awk, &programs);
    all_found(awk, &Write(None), &["{ print > \"/dev/stdout\" x }", "{ print > (\"/dev/stderr\" \"x\") }"]);
}

#[test]
fn commands_are_found() {
    let programs = [
        "BEGIN{system(\"id\")}",
        "{ system (x) }",
        "{ x=system(\"a\")+1 }",
        "{ print | \"sh\" }",
        "1{print|c}",
        "{ \"date\" | getline d }",
        "BEGIN { while ((c | getline) > 0); }",
        "{ print |& \"nc\" }",
        "{ c |& getline x }",
        "{ printf \"%s\", $0 | \"sort -o f\" }",
        "{ print (a)|\"sh\" }",
        "/a|b/{print|b}",
        "{ x = a / b | getline }",
        "{ print \"a\" \\\n | \"sh\" }",
        "{ gsub(/\"/, \"\"); system($0) } # \"",
        "/[/ { system(\"id\") } #]/",
        "function f(s) { system(s) } { f($0) }",
        "{ y = \"\\\\\"; system(y) }",
    ];
    all_found(awk, &Exec, &programs);
}

#[test]
fn files_are_named() {
    let written = [
        ("{ print > \"x\" }", "x"),
        ("{ print a, b > \"/tmp/x\" }", "/tmp/x"),
        ("{print>\"a b\"}", "a b"),
        ("{ printf(\"%s\", x) > \"f\" }", "f"),
        ("{ print (1 > 2) > \"f\" }", "f"),
        ("{ print >> \"f\"; }", "f"),
        ("{ print a,\n b > \"f\" }", "f"),
        ("{ print a ||\n b > \"f\" }", "f"),
        ("{ print a in b > \"f\" }", "f"),
        ("{ print a ? b : c > \"-\" }", "-"),
        ("{ if (x > 1) print > \"f\" }", "f"),
        ("{ print \\\n> \"f\" }", "f"),
        ("{ x = 1; print /a>b/ > \"f\" }", "f"),
        ("{ for (;;) print $1 > \"f\"\n}", "f"),
    ];
    all_named(awk, writes, &written);
    all_found(
        awk,
        &Write(None),
        &["{ print > $1 }", "{ print > \"a\" NR }", "{ print > f\".txt\" }", "{ print >> x }"],
    );
    let read = [
        ("BEGIN { getline < \"/etc/passwd\" }", "/etc/passwd"),
        ("{ getline a[i+1] < \"f\" }", "f"),
        ("{ while ((getline l < \"f\") > 0) n++ }", "f"),
        ("{ getline $1 < \"f\" }", "f"),
        ("{ !getline < \"f\" }", "f"),
    ];
    all_named(awk, Read, &read);
}

#[test]
fn other_ways_out_are_found() {
    all_found(awk, &Environment, &["BEGIN { print ENVIRON[\"HOME\"] }", "{ for (k in ENVIRON) print k }"]);
    all_found(awk, &Module, &["@load \"filefuncs\"\n1", "@include \"x.awk\"", "@ load \"fork\""]);
    all_found(
        awk,
        &Network,
        &["BEGIN { s = \"/inet/tcp/0/host/80\" }", "{ getline x < \"/inet4/udp/0/h/1\" }"],
    );
    let unknown = [
        "{ @f(1) }",
        "{ awk::system(1) }",
        "@namespace \"x\"",
        "{ f = \"system\"; @f(\"id\") }",
        "{ fork() }",
        "{ SYMTAB[\"x\"] = 1 }",
        "{ ARGV[1] = \"f\" }",
        "{ split(\"a b\", ARGV) }",
        "BEGIN { ARGC = 3 }",
        "{ getline ARGV[2] }",
        "{ sub(/a/, \"b\", ARGV[1]) }",
        "{ x == ARGV[1] = \"f\" }",
        "{ ++ARGC }",
        "{ PROCINFO[c, \"pty\"] = 1 }",
        "{ PROCINFO[\"READ_TIMEOUT\"] = 1 }",
        "{ getline < x }",
        "{ getline l < \"a\" \"b\" }",
        "BEGIN { for (print \"a\" > \"f\";;) x }",
        "{ getline < \"\\57etc\" }",
    ];
    all_found(awk, &Unknown, &unknown);
    let clean = [
        "FILENAME == ARGV[1] { n++ }",
        "ARGV[2] != FILENAME",
        "BEGIN { PROCINFO[\"sorted_in\"] = \"@ind_str_asc\" }",
        "{ print PROCINFO[\"version\"] }",
    ];
    all_clean(awk, &clean);
}

#[test]
fn broken_programs_are_unknown() {
    let programs = [
        "{ print \"a }",
        "{ print /a }",
        "{ print",
        "print }",
        "{ print (a }",
        "{ a[1) }",
        "{ x & y }",
        "{ print 1x }",
        "{ x \\ y }",
        "{ sys\\\ntem(1) }",
        "{ \"a\nb\" }",
        "{ é = 1 }",
        "{ x.y }",
        "'1'",
        "{ ( { ) } }",
        "\u{0}",
    ];
    all_found(awk, &Unknown, &programs);
}

/// A slash that one awk takes for a division and another for an expression could hide anything.
#[test]
fn slashes_that_awks_read_differently_are_unknown() {
    let programs = [
        "{ print \"x\" /=/ > \"f\" /1 }",
        "{ print length /a/ > \"f\" /1 }",
        "{ if (x) /a/ }",
        "{ getline /a/ b }",
        "{ ++/a/ }",
        "/a/ /b/",
        "/[]/]/",
        "/[[:alpha:]/]/",
        "/][/]/",
        "/[a\\]/]/",
        "/a\\\nb/",
    ];
    all_found(awk, &Unknown, &programs);
}
