//! Rules about hosts.

/// The specifier of a rule such as `WebFetch(domain:*.example.com)`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct DomainPattern {
    /// The labels from the last to the first, in small letters.
    labels: Vec<String>,
    /// Any label or several may stand in front.
    below: bool,
}

impl DomainPattern {
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let text = text.trim().trim_end_matches('.').to_ascii_lowercase();
        if text == "*" {
            return Some(Self { labels: Vec::new(), below: true });
        }
        let (name, below) = match text.strip_prefix("*.") {
            Some(name) => (name, true),
            None => (text.as_str(), false),
        };
        // Hosts are compared in the form that is looked up.
        let looked_up =
            if name.is_ascii() { None } else { url::Host::parse(name).ok().map(|host| host.to_string()) };
        let name = looked_up.as_deref().unwrap_or(name);
        let address = name.starts_with('[') && name.ends_with(']');
        let plain = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_');
        let sound = |label: &str| !label.is_empty() && label.chars().all(plain);
        (address || name.split('.').all(sound)).then(|| {
            let labels = if address { vec![name.to_owned()] } else { reversed(name) };
            Self { labels, below }
        })
    }

    /// Whether it means every host.
    pub(crate) fn is_any(&self) -> bool {
        self.labels.is_empty()
    }

    /// Whether a host, in small letters and without a dot at its end, fits.
    pub(crate) fn fits(&self, host: &str) -> bool {
        self.fits_labels(&labels(host))
    }

    /// The same for a host that was taken apart.
    pub(crate) fn fits_labels(&self, host: &[String]) -> bool {
        let same = host.get(..self.labels.len()) == Some(self.labels.as_slice());
        same && if self.below { host.len() > self.labels.len() } else { host.len() == self.labels.len() }
    }
}

/// The labels of a host from the last to the first. An address is one.
pub(crate) fn labels(host: &str) -> Vec<String> {
    if host.starts_with('[') { vec![host.to_owned()] } else { reversed(host) }
}

fn reversed(name: &str) -> Vec<String> {
    name.split('.').rev().map(str::to_owned).collect()
}
