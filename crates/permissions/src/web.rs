//! What a URL leads to, judged by its text alone. Names are looked up later, and every address
//! and every redirect is then judged again by the same functions.

use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::{collections::BTreeMap, sync::LazyLock};

use url::{Host, Url};

use crate::rule::DomainPattern;

const TABLE: &str = include_str!("../data/web.toml");

/// Ports that serve web pages.
const WEB_PORTS: [u16; 6] = [80, 443, 8000, 8008, 8080, 8443];
/// Endings that stay inside the machine or its network.
const LOCAL_ENDINGS: [&str; 7] = ["localhost", "local", "internal", "intranet", "lan", "home", "corp"];
/// Public names that lead to this machine.
const LOOPBACK_NAMES: [&str; 4] = ["lacolhost.com", "localtest.me", "lvh.me", "vcap.me"];
/// Longer ones are no honest requests.
const LONGEST: usize = 8192;

/// What a URL leads to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Site {
    /// A page on the open web.
    Open {
        /// The host, in small letters, without a dot at its end.
        host: String,
        /// Whether it is encrypted.
        https: bool,
    },
    /// Something that needs a yes of its own: this machine, its network, an odd port.
    Doubtful {
        /// The host.
        host: String,
        /// Why.
        why: String,
    },
    /// Nothing that may be fetched, and why.
    Refused(String),
}

static PREAPPROVED: LazyLock<Vec<DomainPattern>> = LazyLock::new(|| {
    let table: BTreeMap<String, Vec<String>> = toml::from_str(TABLE).unwrap_or_default();
    table.values().flatten().filter_map(|name| DomainPattern::parse(name)).collect()
});

/// Whether a host only publishes documentation.
pub fn is_preapproved(host: &str) -> bool {
    PREAPPROVED.iter().any(|known| known.fits(host))
}

/// How far an address reaches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reach {
    /// The open internet.
    Public,
    /// This machine or its network.
    Local,
    /// Reserved, multicast, or a service that hands out credentials.
    Forbidden,
}

/// Judges a URL.
pub fn site(text: &str) -> Site {
    let refused = |why: &str| Site::Refused(why.to_owned());
    if text.len() > LONGEST {
        return refused("the URL is too long");
    }
    // Parsers disagree about these: what is judged might not be what is fetched.
    if text.contains(|c: char| c.is_control() || c.is_whitespace() || c == '\\')
        || !gripper_shell::hidden::find(text).is_empty()
    {
        return refused(
            "the URL holds blanks, control characters or backslashes: write them as %20 and so on",
        );
    }
    let behind = text.split_once("://").map_or("", |(_, behind)| behind);
    let authority = behind.split(['/', '?', '#']).next().unwrap_or_default();
    let url = match Url::parse(text) {
        Ok(url) => url,
        Err(error) => return Site::Refused(format!("that is no URL: {error}")),
    };
    if !matches!(url.scheme(), "http" | "https") {
        return Site::Refused(format!("{}: is not fetched, only http: and https: are", url.scheme()));
    }
    if authority.is_empty() {
        return refused("the URL has no host");
    }
    if authority.contains('@') {
        return refused("the URL carries a user name or password: leave it out");
    }
    if authority.contains('%') {
        return refused("the host is written with escapes: write it plainly");
    }
    let (host, why) = match url.host() {
        None => return refused("the URL has no host"),
        Some(Host::Domain(name)) => {
            let name = name.strip_suffix('.').unwrap_or(name).to_ascii_lowercase();
            let odd = |label: &str| {
                label.is_empty()
                    || !label.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_'))
            };
            if name.split('.').any(odd) {
                return refused("the host is not a name that can be looked up");
            }
            if !authority.is_ascii() {
                let why = format!("the host is written with letters that may deceive; it is {name}");
                return Site::Doubtful { host: name, why };
            }
            let why = doubt(&name);
            (name, why)
        }
        Some(Host::Ipv4(address)) => match judged(IpAddr::V4(address)) {
            Ok(why) => (address.to_string(), why),
            Err(site) => return site,
        },
        Some(Host::Ipv6(address)) => match judged(IpAddr::V6(address)) {
            Ok(why) => (format!("[{address}]"), why),
            Err(site) => return site,
        },
    };
    let port = url.port_or_known_default().unwrap_or(0);
    match why {
        Some(why) => Site::Doubtful { host, why },
        None if !WEB_PORTS.contains(&port) => {
            Site::Doubtful { host, why: format!("port {port} is not one of the web's") }
        }
        None => Site::Open { host, https: url.scheme() == "https" },
    }
}

fn judged(address: IpAddr) -> Result<Option<String>, Site> {
    match reach(address) {
        Reach::Public => Ok(None),
        Reach::Local => Ok(Some(format!("{address} is on this machine or its network"))),
        Reach::Forbidden => {
            Err(Site::Refused(format!("{address} is reserved, or a service that hands out credentials")))
        }
    }
}

/// Why a name needs a yes of its own.
fn doubt(name: &str) -> Option<String> {
    let last = name.rsplit('.').next().unwrap_or(name);
    let known = LOOPBACK_NAMES.iter().any(|known| name == *known || name.ends_with(&format!(".{known}")));
    if !name.contains('.') || LOCAL_ENDINGS.contains(&last) || known {
        return Some(format!("{name} is a name of this machine or its network"));
    }
    let numbers: Vec<&str> = name.split(['.', '-']).collect();
    numbers.windows(4).find_map(|four| {
        let mut octets = [0; 4];
        for (octet, text) in octets.iter_mut().zip(four) {
            *octet = text.parse().ok()?;
        }
        let address = Ipv4Addr::from(octets);
        let hidden = reach(IpAddr::V4(address)) != Reach::Public;
        hidden.then(|| format!("{name} looks like a name for {address}"))
    })
}

/// Where a redirect from one URL leads, which may be written relative to it.
pub fn redirected(from: &str, to: &str) -> String {
    let next = Url::parse(from).ok().and_then(|from| from.join(to).ok());
    next.map_or_else(|| to.to_owned(), |next| next.to_string())
}

/// How far an address reaches. Also for the answers of name servers.
pub fn reach(address: IpAddr) -> Reach {
    match address {
        IpAddr::V4(address) => reach_v4(address),
        IpAddr::V6(address) => reach_v6(address),
    }
}

/// Whether an address lies on the open internet.
pub fn is_public(address: IpAddr) -> bool {
    reach(address) == Reach::Public
}

fn reach_v4(address: Ipv4Addr) -> Reach {
    let [a, b, c, _] = address.octets();
    match (a, b, c) {
        (127 | 10, ..) | (172, 16..=31, _) | (192, 168, _) | (100, 64..=127, _) => Reach::Local,
        (0 | 224..=255, ..) | (169, 254, _) | (192, 0, 0 | 2) | (198, 18 | 19, _) => Reach::Forbidden,
        (198, 51, 100) | (203, 0, 113) | (192, 88, 99) => Reach::Forbidden,
        _ => Reach::Public,
    }
}

fn reach_v6(address: Ipv6Addr) -> Reach {
    let parts = address.segments();
    let inner = |high: u16, low: u16| {
        let ([a, b], [c, d]) = (high.to_be_bytes(), low.to_be_bytes());
        reach_v4(Ipv4Addr::new(a, b, c, d))
    };
    match parts {
        [0, 0, 0, 0, 0, 0, 0, 1] => Reach::Local,
        [0, 0, 0, 0, 0, 0, 0, 0] => Reach::Forbidden,
        // Addresses of the older kind, mapped, translated or tunnelled.
        [0, 0, 0, 0, 0, 0xffff, high, low] | [0, 0, 0, 0, 0, 0, high, low] => inner(high, low),
        [0x64, 0xff9b, 0, 0, 0, 0, high, low] => inner(high, low),
        [0x2002, high, low, ..] => inner(high, low),
        [0xfc00..=0xfdff, ..] => Reach::Local,
        [0xfe80..=0xfeff, ..] | [0xff00..=0xffff, ..] | [0x100, 0, 0, 0, ..] | [0x2001, 0 | 0xdb8, ..] => {
            Reach::Forbidden
        }
        [0x2000..=0x3fff, ..] => Reach::Public,
        _ => Reach::Forbidden,
    }
}
