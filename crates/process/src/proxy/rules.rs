//! Which hosts may be reached, and at which addresses.

use std::{
    fmt, io,
    net::{IpAddr, SocketAddr, ToSocketAddrs},
    sync::Arc,
};

/// Finds the addresses of a name.
pub type Resolve = Arc<dyn Fn(&str) -> io::Result<Vec<IpAddr>> + Send + Sync>;

/// What a command may reach. What nothing allows is refused, and a denial wins over everything.
///
/// A pattern is a name (`example.com`), all names below one (`*.example.com`), every name (`*`) or an
/// address, each with a port behind a colon if only that one is meant.
#[derive(Clone)]
pub struct Rules {
    allow: Vec<Pattern>,
    deny: Vec<Pattern>,
    private: Vec<Pattern>,
    public: fn(IpAddr) -> bool,
    /// How names are looked up: the system's way, if nobody puts another here.
    pub resolve: Resolve,
}

/// A pattern that says nothing.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} names no host: write a name, *.name or an address, and :port behind it if only one is meant")]
pub struct BadPattern(pub String);

/// A host as it is compared and looked up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Host {
    /// In small letters, international ones encoded, without a dot at its end.
    Name(String),
    /// An address, however it was spelled.
    Address(IpAddr),
}

#[derive(Debug, Clone)]
enum Whom {
    Any,
    Below(String),
    Exactly(Host),
}

#[derive(Debug, Clone)]
struct Pattern {
    whom: Whom,
    port: Option<u16>,
}

impl Host {
    fn parse(text: &str) -> Option<Self> {
        // This knows every way to write an address, of which name servers would never hear.
        let name = match url::Host::parse(text).ok()? {
            url::Host::Ipv4(address) => return Some(Self::Address(address.into())),
            url::Host::Ipv6(address) => return Some(Self::Address(address.to_canonical())),
            url::Host::Domain(name) => name,
        };
        let name = name.strip_suffix('.').unwrap_or(&name);
        let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
        let sound =
            name.len() < 254 && name.split('.').all(|label| !label.is_empty() && label.chars().all(plain));
        sound.then(|| Self::Name(name.to_owned()))
    }
}

impl fmt::Display for Host {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name(name) => out.write_str(name),
            Self::Address(IpAddr::V6(address)) => write!(out, "[{address}]"),
            Self::Address(address) => write!(out, "{address}"),
        }
    }
}

/// Takes `host:port` apart.
pub(super) fn place(text: &str) -> Option<(Host, Option<u16>)> {
    let (host, port) = split(text)?;
    Some((Host::parse(host)?, port))
}

fn split(text: &str) -> Option<(&str, Option<u16>)> {
    match text.rsplit_once(':') {
        // The colon is one of an address in brackets.
        Some((_, behind)) if behind.ends_with(']') => Some((text, None)),
        Some((host, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => {
            Some((host, Some(port.parse().ok().filter(|port| *port > 0)?)))
        }
        Some(_) => None,
        None => Some((text, None)),
    }
}

impl Pattern {
    fn parse(text: &str) -> Option<Self> {
        if let Ok(address) = text.parse::<IpAddr>() {
            return Some(Self { whom: Whom::Exactly(Host::Address(address.to_canonical())), port: None });
        }
        let (host, port) = split(text.trim())?;
        let whom = match (host, host.strip_prefix("*.")) {
            ("*", _) => Whom::Any,
            (_, None) => Whom::Exactly(Host::parse(host)?),
            (_, Some(parent)) => match Host::parse(parent)? {
                Host::Name(name) => Whom::Below(name),
                Host::Address(_) => return None,
            },
        };
        Some(Self { whom, port })
    }

    fn fits(&self, host: &Host, port: u16) -> bool {
        self.port.is_none_or(|only| only == port)
            && match (&self.whom, host) {
                (Whom::Any, _) => true,
                (Whom::Below(parent), Host::Name(name)) => {
                    name.strip_suffix(parent).is_some_and(|front| front.ends_with('.'))
                }
                (Whom::Below(_), Host::Address(_)) => false,
                (Whom::Exactly(this), host) => this == host,
            }
    }

    /// Addresses are reached only by those who name them.
    fn admits(&self, host: &Host, port: u16) -> bool {
        let named = matches!((host, &self.whom), (Host::Name(_), _) | (_, Whom::Exactly(_)));
        named && self.fits(host, port)
    }
}

impl Rules {
    /// Rules from patterns. `allow` reaches only addresses that `public` finds on the open internet; hosts of this machine and its
    /// network must stand in `private`, and are then allowed.
    pub fn new<T: AsRef<str>>(
        allow: &[T],
        deny: &[T],
        private: &[T],
        public: fn(IpAddr) -> bool,
    ) -> Result<Self, BadPattern> {
        let parse = |list: &[T]| {
            let one =
                |text: &T| Pattern::parse(text.as_ref()).ok_or_else(|| BadPattern(text.as_ref().to_owned()));
            list.iter().map(one).collect::<Result<Vec<_>, _>>()
        };
        let system = |name: &str| Ok((name, 0).to_socket_addrs()?.map(|address| address.ip()).collect());
        let (allow, deny, private) = (parse(allow)?, parse(deny)?, parse(private)?);
        Ok(Self { allow, deny, private, public, resolve: Arc::new(system) })
    }

    /// Rules that lead to what is named, and to this machine and its network where a pattern names just that.
    pub fn naming<T: AsRef<str>>(
        hosts: &[T],
        deny: &[T],
        public: fn(IpAddr) -> bool,
    ) -> Result<Self, BadPattern> {
        let mut rules = Self::new(hosts, deny, &[], public)?;
        let near = |pattern: &&Pattern| match &pattern.whom {
            Whom::Exactly(Host::Address(address)) => !public(*address),
            Whom::Exactly(Host::Name(name)) => name == "localhost",
            Whom::Any | Whom::Below(_) => false,
        };
        rules.private = rules.allow.iter().filter(near).cloned().collect();
        Ok(rules)
    }

    /// Whether this machine is among what may be reached, by the names that it calls itself.
    pub(super) fn leads_home(&self) -> bool {
        self.private.iter().any(|pattern| match &pattern.whom {
            Whom::Any => true,
            Whom::Below(_) => false,
            Whom::Exactly(Host::Name(name)) => name == "localhost",
            Whom::Exactly(Host::Address(address)) => address.is_loopback(),
        })
    }

    /// Judges a host by its name alone: what is refused is not looked up, as that carries the name out.
    pub(super) fn admits(&self, host: &Host, port: u16) -> Result<(), &'static str> {
        if self.deny.iter().any(|pattern| pattern.fits(host, port)) {
            Err("a rule denies this host")
        } else if self.private.iter().chain(&self.allow).any(|pattern| pattern.admits(host, port)) {
            Ok(())
        } else if matches!(host, Host::Address(_)) {
            Err("addresses are refused unless a rule names them")
        } else {
            Err("no rule allows this host")
        }
    }

    /// Where to connect, from what a lookup gave. One address that may not be reached spoils all of
    /// them: an honest name has none such.
    pub(super) fn judge(&self, host: &Host, port: u16, found: &[IpAddr]) -> Result<Vec<SocketAddr>, String> {
        let private = self.private.iter().any(|pattern| pattern.admits(host, port));
        let judge = |address: &IpAddr| {
            let address = address.to_canonical();
            let itself = Host::Address(address);
            let named = *host == itself || self.private.iter().any(|pattern| pattern.admits(&itself, port));
            if self.deny.iter().any(|pattern| pattern.fits(&itself, port)) {
                Err(format!("it is {address}, which a rule denies"))
            } else if (self.public)(address) || (private && (named || !is_odd(address))) {
                Ok(SocketAddr::new(address, port))
            } else {
                Err(format!(
                    "it is {address}, an address of this machine or its network and not allowed as such"
                ))
            }
        };
        found.iter().map(judge).collect()
    }
}

/// Addresses behind which services hand out credentials, or many hosts stand: no name leads there.
fn is_odd(address: IpAddr) -> bool {
    let link_local = match address {
        IpAddr::V4(address) => address.is_link_local() || address.is_broadcast(),
        IpAddr::V6(address) => address.is_unicast_link_local(),
    };
    link_local || address.is_multicast() || address.is_unspecified()
}
