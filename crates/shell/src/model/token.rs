//! Option tokens and kinds: the small language inside the model files.

/// What a value or an operand is to the program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Kind {
    /// Harmless data.
    Text,
    /// Read.
    Read,
    /// A file of which only public parts are shown.
    Public,
    /// A pattern of files below the working directory that are read.
    Glob,
    /// Looked at by name only, no content shown.
    List,
    /// Read; on another machine when a colon stands before the first slash.
    Archive,
    /// A commit, or a file in one behind a colon.
    Object,
    /// Created or overwritten.
    Write,
    /// Changed in place.
    Edit,
    /// Deleted.
    Delete,
    /// A folder the tool moves to.
    Dir,
    /// Code or a program that will be run.
    Exec,
    /// Bash code.
    Shell,
    /// Code for whatever `sh` is: only what all shells read alike is followed.
    Sh,
    /// The name of a shell option that leaves the meaning of the text alone.
    ShellOption,
    /// A format or a list of columns, without those that run programs or print environments.
    Format,
    /// Text that names no other machine.
    Local,
    /// The rest is a command.
    Command,
    /// A command up to `;` or `+`.
    CommandUntil,
    /// A sed script.
    Sed,
    /// An awk program.
    Awk,
    /// A jq filter.
    Jq,
    /// `NAME=VALUE`, as long as words have that form.
    Assign,
    /// A host or URL.
    Host,
    /// Re-targets the tool.
    Config,
    /// A setting of git; one that only changes what is shown is harmless.
    Setting,
    /// Text that starts with `+`.
    Plus,
    /// Text without `=`.
    Name,
}

impl Kind {
    /// From its name.
    pub(crate) fn parse(name: &str) -> Option<Self> {
        Some(match name {
            "" | "text" => Self::Text,
            "read" => Self::Read,
            "public" => Self::Public,
            "glob" => Self::Glob,
            "list" => Self::List,
            "archive" => Self::Archive,
            "object" => Self::Object,
            "write" => Self::Write,
            "edit" => Self::Edit,
            "delete" => Self::Delete,
            "dir" => Self::Dir,
            "exec" => Self::Exec,
            "shell" => Self::Shell,
            "sh" => Self::Sh,
            "shell-option" => Self::ShellOption,
            "format" => Self::Format,
            "local" => Self::Local,
            "command" => Self::Command,
            "command;" => Self::CommandUntil,
            "sed" => Self::Sed,
            "awk" => Self::Awk,
            "jq" => Self::Jq,
            "assign" => Self::Assign,
            "host" => Self::Host,
            "config" => Self::Config,
            "setting" => Self::Setting,
            "plus" => Self::Plus,
            "name" => Self::Name,
            _ => return None,
        })
    }
}

/// The kind of one operand, or of all that follow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct OperandKind {
    /// What it is.
    pub kind: Kind,
    /// Any number of them.
    pub many: bool,
}

impl OperandKind {
    /// From `kind` or `kind...`.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let (name, many) = text.strip_suffix("...").map_or((text, false), |name| (name, true));
        Some(Self { kind: Kind::parse(name)?, many })
    }
}

/// What an option or a program does by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Deed {
    /// Changes files not named on the command line.
    Write,
    /// Deletes.
    Delete,
    /// Destroys in bulk.
    Tamper,
    /// Talks to another machine or a service.
    Network,
    /// Sends local data out.
    Send,
    /// Opens a port.
    Listen,
    /// Runs code.
    Exec,
    /// Gains rights.
    Privilege,
    /// Controls processes.
    Process,
    /// Changes the machine.
    System,
    /// Prints or sets secrets.
    Environment,
    /// Reads everything below.
    Recurse,
    /// Not known.
    Unknown,
}

impl Deed {
    /// From its name.
    pub(crate) fn parse(name: &str) -> Option<Self> {
        Some(match name {
            "write" => Self::Write,
            "delete" => Self::Delete,
            "tamper" => Self::Tamper,
            "network" => Self::Network,
            "send" => Self::Send,
            "listen" => Self::Listen,
            "exec" => Self::Exec,
            "privilege" => Self::Privilege,
            "process" => Self::Process,
            "system" => Self::System,
            "environment" => Self::Environment,
            "recurse" => Self::Recurse,
            "unknown" => Self::Unknown,
            _ => return None,
        })
    }

    /// A list of names between blanks.
    pub(crate) fn parse_all(names: &str) -> Option<Vec<Self>> {
        names.split_whitespace().map(Self::parse).collect()
    }
}

/// Whether an option takes a value, and how.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Arity {
    /// No value.
    None,
    /// Attached or the next argument.
    Required(Kind),
    /// The next two arguments.
    Pair(Kind, Kind),
    /// Attached with `=`.
    Attached(Kind),
    /// Attached or absent.
    Optional(Kind),
}

/// One option.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct OptionToken {
    /// Its spellings, dashes included.
    pub names: Vec<String>,
    /// Its value.
    pub arity: Arity,
    /// Supplies what the first operand would be.
    pub supplies: bool,
    /// What the operands are with it.
    pub operands: Option<Vec<OperandKind>>,
    /// What it does by itself.
    pub deeds: Vec<Deed>,
}

impl OptionToken {
    /// From `NAMES[ARITY][^][>OPERANDS][!EFFECT]…`.
    pub(crate) fn parse(token: &str) -> Option<Self> {
        let mut pieces = token.split('!');
        let mut head = pieces.next()?;
        let deeds = pieces.map(Deed::parse).collect::<Option<Vec<_>>>()?;
        let mut operands = None;
        if let Some((before, after)) = head.split_once('>') {
            operands = Some(after.split('/').map(OperandKind::parse).collect::<Option<Vec<_>>>()?);
            head = before;
        }
        let supplies = head.ends_with('^');
        head = head.trim_end_matches('^');
        // `-?` is an option of its own, so the search for the arity starts behind the first name.
        let from = if head.starts_with("-?") { 2 } else { 0 };
        let split = head.get(from..)?.find([':', '=', '?']).map(|at| at + from);
        let (names, arity) = match split {
            None => (head, Arity::None),
            Some(at) => {
                let kinds = head.get(at + 1..)?;
                let arity = match (head.as_bytes().get(at)?, kinds.split_once(',')) {
                    (b':', Some((first, second))) => Arity::Pair(Kind::parse(first)?, Kind::parse(second)?),
                    (b':', None) => Arity::Required(Kind::parse(kinds)?),
                    (b'=', None) => Arity::Attached(Kind::parse(kinds)?),
                    (_, None) => Arity::Optional(Kind::parse(kinds)?),
                    _ => return None,
                };
                (head.get(..at)?, arity)
            }
        };
        let names: Vec<String> = names.split(',').map(str::to_owned).collect();
        let sound = !names.iter().any(|name| name.is_empty() || name == "-" || name == "--");
        sound.then_some(Self { names, arity, supplies, operands, deeds })
    }
}
