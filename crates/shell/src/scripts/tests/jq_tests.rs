//! jq filters.

use super::super::FindingKind::{Environment, Module, Unknown};
use super::{all_clean, all_found, jq};

#[test]
fn filters_are_clean() {
    let filters = [
        "",
        ".",
        ".a.b[0]?",
        ".[] | select(.n > 1 and .s != \"x\") | {n, s: (.s | ascii_downcase)}",
        "[.[] | .a // \"none\"] | unique | length",
        "to_entries[] | \"\\(.key): \\(.value)\"",
        "..|.x?",
        "reduce .[] as $x (0; . + $x)",
        "foreach range(3) as $i (0; . + $i; [$i, .])",
        "@base64 \"\\(.a)\"",
        "if .a then 1 elif .b then 2 else 3 end",
        "def f(g; $x): [g, $x]; f(.a; 1)",
        "try error(\"x\") catch .",
        ".a |= . + 1 | del(.b) | .c += 2 | .d //= 3",
        ". as [$a, {b: $c}] ?// $a | $a",
        "label $out | 1, break $out",
        "input_filename, input_line_number, $__loc__, now, input, [inputs]",
        "\"\\(\"\\(1 + 2)\" + \"x\")\"",
        "def r: if . > 0 then . - 1 | r else . end; r",
        "$a + $named.b + $ARGS.positional[0]",
        "# env\n.a # $ENV",
        ".[1:3], .[-1], 1.5e3, .5",
        "\"é → env\"",
        "test(\"a|b\"; \"i\"), gsub(\"\\\\s\"; \"\")",
        "debug, stderr, halt_error",
        "{\"a b\": 1, (\"c\" + \"d\"): 2, @text \"x\": 3, $__loc__}",
        "map_values(.+1) | with_entries(.value |= tostring)",
    ];
    all_clean(jq, &filters);
}

#[test]
fn fields_and_keys_are_no_functions() {
    let filters = [
        ".env",
        ".[].env",
        ".a.env.b",
        ".\"env\"",
        ".[\"env\"]",
        "{env}",
        "{env: 1}",
        "{a: 1, env: 2}",
        "{a, env}",
        "{a: .b | .c, env: .d}",
        "{\"env\": 1}",
        ". as {env: $e} | $e",
        "$env",
        ".import",
        "{import: 1, include}",
        ".if.end",
        "{if: 1, end: 2}",
        "\"env\"",
        "{a: if .x then 1 else 2 end, env}",
        "has(\"env\")",
        "{env, b: [1]}",
        "..|.env?",
        "{a: {env: 1}, env: {b}}",
        "$ENVIRONMENT",
        "$__loc__.env",
        ".ENV",
    ];
    all_clean(jq, &filters);
}

#[test]
fn the_environment_is_found() {
    let filters = [
        "env",
        "env.PATH",
        "$ENV",
        "$ENV.HOME",
        ".a | env",
        "\"\\(env.X)\"",
        "\"a\\(\"b\\($ENV)\")\"",
        "{$ENV}",
        "{a: env}",
        "{env: env}",
        "{(env | keys[0]): 1}",
        "[env]",
        "$ ENV",
        "$ # x\nENV",
        "@sh \"\\(env.X)\"",
        "{a: if true, env then 1 else 2 end}",
        "{a: (1, env)}",
        "{a: [1, env]}",
        "{a: 1 | env}",
        "1.env",
        "..env",
        ". env",
        "def f: env; f",
        "map(env)",
        ".[env | length]",
        "try env catch .",
        "-env",
        "{\"x\\(env)\"}",
        "{a: reduce .[] as $x (0, env; 1)}",
        ".a as $x | $ENV[$x]",
        "# c\nenv",
        "1 as $env | env",
        ".env | env",
    ];
    all_found(jq, &Environment, &filters);
}

#[test]
fn modules_are_found() {
    let filters = [
        "import \"a\" as a; a::f",
        "include \"m\"; .",
        "import \"d\" as $d; $d",
        "modulemeta",
        "get_search_list",
        "a::b",
        "$d::d",
        "\"x\" | modulemeta",
        "# c\nimport \"a\" as a; .",
    ];
    all_found(jq, &Module, &filters);
}

#[test]
fn broken_and_unknown_filters_are_unknown() {
    let filters = [
        "\"a",
        "\"\\(1\"",
        "(1",
        "1)",
        "[1",
        "{a: 1",
        "[1)",
        "{a: (1}",
        "if 1 then 2",
        "end",
        "(if 1) end",
        "\"\\(1]\"",
        "@",
        "&",
        "'.a'",
        ".a !",
        "é",
        "`id`",
        "\\",
        "nosuchfunction",
        "exec(\"id\")",
        "get_prog_origin",
        "$__prog_args",
        "1 # a\\\n| 2",
        "1 # a\\\r\n| 2",
        "# a\renv",
        "\u{0}",
        "def f: 1; g",
    ];
    all_found(jq, &Unknown, &filters);
}
