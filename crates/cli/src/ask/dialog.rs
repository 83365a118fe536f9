//! The exchange about one question. Nothing is preselected: an empty line changes nothing.

use std::{path::Path, time::Duration};

use gripper_runtime::{
    Place,
    approve::{Answer, Ask, Grant, SaveTo},
    permissions::Rule,
};
use tokio::time::Instant;

use super::words;
use crate::show::{BOLD, NOTE};

/// Whoever is asked.
pub(super) trait Person {
    /// Shows a text.
    fn say(&mut self, text: &str);
    /// Shows a prompt and waits for a line.
    fn hear(&mut self, prompt: &str) -> Result<String, Stop>;
}

/// Why there will be no line.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Stop {
    /// The person hung up.
    End,
    /// The question is settled or its call is stopped.
    Gone,
    /// It is asked for another reason now.
    Changed,
}

/// Asks until there is an answer.
pub(super) fn hold(ask: &Ask, place: &Place, person: &mut impl Person) -> Result<Answer, Stop> {
    person.say(&words::question(ask));
    loop {
        let line = person.hear(&format!("{BOLD}your choice:{BOLD:#} "))?;
        let (key, rest) = line.split_once(' ').unwrap_or((&line, ""));
        let answer = match (key, rest) {
            ("1", "") => Some(Answer::once()),
            ("2", limits) => for_session(ask, limits, place, person),
            ("3", "") => always(ask, person)?,
            ("4", "") => Some(Answer::Deny { feedback: None }),
            ("5", "") => {
                let said = person.hear("what the model should know (empty goes back): ")?;
                (!said.is_empty()).then(|| Answer::deny(said))
            }
            ("e", "") => edited(person)?,
            _ => {
                person.say("type 1, 2, 3, 4, 5 or e");
                None
            }
        };
        if let Some(answer) = answer {
            return Ok(answer);
        }
    }
}

fn for_session(ask: &Ask, limits: &str, place: &Place, person: &mut impl Person) -> Option<Answer> {
    let Some(mut grant) = ask.offer() else {
        person.say(&format!("{NOTE}no rule would settle such calls:{NOTE:#} it can only be allowed once"));
        return None;
    };
    match limited(&mut grant, limits, place) {
        Ok(()) => Some(Answer::granting(Some(grant))),
        Err(what) => {
            person.say(&format!("{} is no limit: write 5x, 30s, 10m, 2h or in FOLDER", words::brief(&what)));
            None
        }
    }
}

/// Narrows a grant: `5x` calls, `30s`, `10m`, `2h`, and at the end `in FOLDER`.
pub(super) fn limited(grant: &mut Grant, limits: &str, place: &Place) -> Result<(), String> {
    let mut rest = limits.trim();
    while !rest.is_empty() {
        if let Some(folder) = rest.strip_prefix("in ") {
            grant.folder = Some(place.locate(Path::new(folder.trim())).real);
            return Ok(());
        }
        let (word, later) = rest.split_once(' ').unwrap_or((rest, ""));
        let unit = word.chars().next_back().ok_or(word)?;
        let number: u32 = word.strip_suffix(unit).and_then(|digits| digits.parse().ok()).ok_or(word)?;
        let seconds = match unit {
            'x' => {
                grant.uses = Some(number);
                0
            }
            's' => 1,
            'm' => 60,
            'h' => 3_600,
            _ => return Err(word.to_owned()),
        };
        if seconds > 0 {
            grant.until = Some(Instant::now() + Duration::from_secs(seconds * u64::from(number)));
        }
        rest = later.trim_start();
    }
    Ok(())
}

/// The rule and the file it goes to; `None` goes back to the choices.
fn always(ask: &Ask, person: &mut impl Person) -> Result<Option<Answer>, Stop> {
    let offers = &ask.decision.suggestions;
    for (number, suggestion) in offers.iter().enumerate() {
        person.say(&words::offer(number + 1, suggestion));
    }
    let grant = loop {
        let line = person.hear("the rule: a number, or any rule as text (empty goes back): ")?;
        if line.is_empty() {
            return Ok(None);
        }
        let offered = line.parse::<usize>().ok().and_then(|number| offers.get(number.checked_sub(1)?));
        if let Some(grant) = offered.and_then(Grant::suggested) {
            break grant;
        }
        match Rule::parse(&line) {
            Ok(rule) => break Grant::of(rule),
            Err(error) => person.say(&words::brief(&error.to_string())),
        }
    };
    person.say("  1 local settings: this checkout only\n  2 project settings: shared\n  3 your own settings");
    let save = loop {
        match &*person.hear("where to save it (empty goes back): ")? {
            "1" => break SaveTo::Local,
            "2" => break SaveTo::Project,
            "3" => break SaveTo::User,
            "" => return Ok(None),
            _ => person.say("type 1, 2 or 3"),
        }
    };
    Ok(Some(Answer::granting(Some(Grant { save: Some(save), ..grant }))))
}

fn edited(person: &mut impl Person) -> Result<Option<Answer>, Stop> {
    let line = person.hear("the whole input as JSON on one line (empty goes back): ")?;
    if line.is_empty() {
        return Ok(None);
    }
    Ok(match serde_json::from_str(&line) {
        Ok(input) => Some(Answer::edited(input)),
        Err(error) => {
            person.say(&format!("that is not JSON: {}", words::brief(&error.to_string())));
            None
        }
    })
}
