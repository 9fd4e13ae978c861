//! Addresses of web servers, as an owner writes them into the settings.

use std::fmt;

/// Where a web server is: `https://HOST`, or `http://HOST` for a host that is this machine. Without a user name, a query or a fragment, and without a slash
/// at the end.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct WebAddress {
    text: String,
    host: String,
}

/// What an address has to look like.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum WebAddressError {
    /// Something else.
    #[error("an address like \"https://example.org\" or \"https://example.org:8443/path\", without user name, ? or #")]
    NoAddress,
    /// Readable by everybody on the way.
    #[error(
        "an https address: http is accepted only for this machine (\"http://127.0.0.1:8080\", \"http://localhost\")"
    )]
    Unencrypted,
}

impl WebAddress {
    /// Reads an address.
    ///
    /// # Errors
    /// What is allowed.
    pub fn parse(text: &str) -> Result<Self, WebAddressError> {
        let (encrypted, rest) = match (text.strip_prefix("https://"), text.strip_prefix("http://")) {
            (Some(rest), _) => (true, rest),
            (None, Some(rest)) => (false, rest),
            (None, None) => return Err(WebAddressError::NoAddress),
        };
        let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
        let (host, port) = split_port(authority).ok_or(WebAddressError::NoAddress)?;
        let path_is_plain = path
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"/-_.~%+".contains(&byte));
        let port_is_one = port.is_none_or(|port| {
            port.bytes().all(|byte| byte.is_ascii_digit()) && port.parse::<u16>().is_ok_and(|number| number > 0)
        });
        if !is_host(host) || !path_is_plain || !port_is_one {
            return Err(WebAddressError::NoAddress);
        }
        if !encrypted && !is_this_machine(host) {
            return Err(WebAddressError::Unencrypted);
        }
        Ok(WebAddress {
            text: text.trim_end_matches('/').to_owned(),
            host: host.to_owned(),
        })
    }

    /// The https server of this name, which must be one.
    pub fn of_host(host: &str) -> Self {
        WebAddress {
            text: format!("https://{host}"),
            host: host.to_owned(),
        }
    }

    /// Of this server, a page.
    pub fn page(&self, name: &str) -> String {
        format!("{}/{name}", self.text)
    }

    /// The name or number of the machine.
    pub fn host(&self) -> &str {
        &self.host
    }

    /// Whether it is this machine.
    pub fn is_this_machine(&self) -> bool {
        is_this_machine(&self.host)
    }
}

impl fmt::Display for WebAddress {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.text)
    }
}

/// Host and port; an IPv6 host keeps its brackets.
fn split_port(authority: &str) -> Option<(&str, Option<&str>)> {
    if !authority.starts_with('[') {
        return Some(match authority.split_once(':') {
            Some((host, port)) => (host, Some(port)),
            None => (authority, None),
        });
    }
    let (host, rest) = authority.split_at(authority.find(']')? + 1);
    match rest.strip_prefix(':') {
        Some(port) => Some((host, Some(port))),
        None => rest.is_empty().then_some((host, None)),
    }
}

fn is_host(host: &str) -> bool {
    if let Some(number) = bare_v6(host) {
        return number.parse::<std::net::Ipv6Addr>().is_ok();
    }
    !host.is_empty()
        && host.len() <= 253
        && !host.starts_with(['-', '.'])
        && host
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'.')
}

fn bare_v6(host: &str) -> Option<&str> {
    host.strip_prefix('[')?.strip_suffix(']')
}

/// By its number, or as `localhost`, which RFC 6761 reserves for it.
fn is_this_machine(host: &str) -> bool {
    host.eq_ignore_ascii_case("localhost")
        || host
            .parse::<std::net::Ipv4Addr>()
            .is_ok_and(|number| number.is_loopback())
        || bare_v6(host).is_some_and(|host| {
            host.parse::<std::net::Ipv6Addr>()
                .is_ok_and(|number| number.is_loopback())
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn good_addresses_make_pages() {
        for (text, page, host) in [
            ("https://spark.lucko.me/", "https://spark.lucko.me/k", "spark.lucko.me"),
            ("https://a.b:8443/x/y", "https://a.b:8443/x/y/k", "a.b"),
            ("http://127.0.0.1:8080", "http://127.0.0.1:8080/k", "127.0.0.1"),
            ("http://127.8.9.1", "http://127.8.9.1/k", "127.8.9.1"),
            ("http://[::1]:80/", "http://[::1]:80/k", "[::1]"),
            ("http://LocalHost", "http://LocalHost/k", "LocalHost"),
            ("https://[2001:db8::1]", "https://[2001:db8::1]/k", "[2001:db8::1]"),
        ] {
            let address = WebAddress::parse(text).unwrap();
            assert_eq!((address.page("k").as_str(), address.host()), (page, host));
            assert_eq!(address.is_this_machine(), text.starts_with("http://"));
        }
    }

    #[test]
    fn http_is_for_this_machine_only() {
        for text in [
            "http://spark.lucko.me",
            "http://127.0.0.1.example.org",
            "http://localhost.example.org",
            "http://[::2]",
            "http://0.0.0.0",
            "http://10.0.0.1:80",
        ] {
            assert_eq!(WebAddress::parse(text), Err(WebAddressError::Unencrypted), "{text}");
        }
    }

    #[test]
    fn everything_else_is_no_address() {
        for text in [
            "",
            "spark.lucko.me",
            "ftp://a.b",
            "HTTPS://a.b",
            "https://",
            "https:///x",
            "https://user@a.b",
            "https://user:secret@a.b",
            "http://localhost@evil.example",
            "https://a.b:0",
            "https://a.b:65536",
            "https://a.b:+80",
            "https://a.b:80:80",
            "https://a b",
            "https://a.b/x y",
            "https://a.b?x",
            "https://a.b/#x",
            "https://ä.b",
            "https://a.b/\r\nX: y",
            "https://[::1",
            "https://[x]",
            "https://[::1]8",
            "https://-a.b",
        ] {
            assert_eq!(WebAddress::parse(text), Err(WebAddressError::NoAddress), "{text:?}");
        }
    }
}
