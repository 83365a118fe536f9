//! The whole analysis for machines.

use gripper_shell::{Argument, Part, Risk};
use serde_json::{Value, json};

use super::{Matched, Told};

pub(super) fn of(told: &Told<'_>) -> Value {
    let mut value = json!(told.decision);
    value["step_name"] = json!(told.decision.step_name());
    let rule = |matched: &Matched<'_>| json!({ "list": matched.list, "rule": matched.rule, "counts": matched.counts });
    value["matched"] = told.matched.iter().map(rule).collect();
    let Some(command) = told.request.command_use() else { return value };
    let analysis = &command.analysis;
    value["command"] = json!(command.text);
    value["summary"] = json!(command.summary);
    value["verdict"] = json!(analysis.verdict());
    value["parts"] = analysis.parts().iter().map(part).collect();
    value["risks"] = analysis.risks().iter().map(risk).collect();
    value["unresolved"] = json!(analysis.unresolved());
    value["confined"] = json!(analysis.confined());
    value["lists"] = json!(analysis.lists());
    value["reads"] = json!(analysis.reads());
    value["writes"] = json!(analysis.writes());
    value["needs"] = json!(analysis.needs());
    value["edits"] = json!(analysis.edits());
    value["cwd"] = json!(analysis.cwd());
    value["exits"] = json!(analysis.exits());
    value
}

fn part(part: &Part) -> Value {
    json!({
        "span": part.span,
        "argv": part.argv.iter().map(argument).collect::<Vec<_>>(),
        "normal": part.normal.words(),
        "via": part.via,
        "depth": part.depth,
        "hardened": part.hardened,
        "effects": part.effects,
        "exits": part.exits,
    })
}

/// A known argument is its text; an unknown one says what is known of it.
fn argument(argument: &Argument) -> Value {
    match argument.literal() {
        Some(text) => json!(text),
        None => json!({ "like": argument.shown(), "many": argument.many }),
    }
}

fn risk(risk: &Risk) -> Value {
    json!({
        "name": risk.kind,
        "phase": risk.kind.phase(),
        "severity": risk.kind.severity(),
        "detail": risk.detail,
        "span": risk.span,
    })
}
