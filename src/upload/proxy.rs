//! The proxy that the environment names.
//!
//! Uploads are encrypted, so `HTTPS_PROXY` decides and then `ALL_PROXY`, each in capitals first, as curl reads them but for the capitals; `NO_PROXY` lists hosts that are
//! reached without. The HTTP client could read them itself, but takes `ALL_PROXY` first, knows no blanks in `NO_PROXY`, and says nothing of a value it cannot use.

use crate::model::WebAddress;

/// Where a proxy may be named, in the order in which they are looked at.
const NAMING: [&str; 4] = ["HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"];

/// Where hosts may be listed that are reached without.
const EXEMPTING: [&str; 2] = ["NO_PROXY", "no_proxy"];

/// A proxy and who named it.
#[derive(Clone, Debug)]
pub(super) struct Proxy {
    pub(super) client: ureq::Proxy,
    /// The variable.
    pub(super) variable: &'static str,
}

/// What the environment says of proxies.
#[derive(Debug, Default)]
pub(super) struct Proxies {
    proxy: Option<Proxy>,
    /// In lower case; `*` for all.
    exempt: Vec<String>,
}

impl Proxies {
    /// Reads them through `variable`. Gives a line for the log when one names no proxy. Its value is not repeated: it may hold a password.
    pub(super) fn read(variable: impl Fn(&str) -> Option<String>) -> (Self, Option<String>) {
        let set = |name: &'static str| {
            let value = variable(name)?.trim().to_owned();
            (!value.is_empty()).then_some((name, value))
        };
        let exempt = EXEMPTING.into_iter().find_map(set).map_or_else(Vec::new, |(_, list)| {
            list.split([',', ' ', '\t'])
                .filter(|entry| !entry.is_empty())
                .map(str::to_lowercase)
                .collect()
        });
        let Some((name, value)) = NAMING.into_iter().find_map(set) else {
            return (Proxies::default(), None);
        };
        match ureq::Proxy::new(&value) {
            Ok(client) => {
                let proxy = Some(Proxy { client, variable: name });
                (Proxies { proxy, exempt }, None)
            }
            Err(_) => {
                let problem = format!(
                    "The environment variable {name} names no proxy (allowed is something like \"http://proxy.example:3128\" or \
                     \"socks5://proxy.example:1080\"). Profiles are uploaded without one."
                );
                (Proxies::default(), Some(problem))
            }
        }
    }

    /// The one that is asked for a way to `server`. This machine is reached without.
    pub(super) fn to(&self, server: &WebAddress) -> Option<&Proxy> {
        let host = server.host().to_lowercase();
        let is_exempt = server.is_this_machine() || self.exempt.iter().any(|entry| covers(entry, &host));
        self.proxy.as_ref().filter(|_| !is_exempt)
    }
}

/// Whether an entry stands for this host: its own name, a domain that it is in, or everything.
fn covers(entry: &str, host: &str) -> bool {
    let domain = entry.trim_start_matches("*.").trim_start_matches('.');
    entry == "*"
        || host == domain
        || host
            .strip_suffix(domain)
            .is_some_and(|before| before.ends_with('.') && !domain.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn proxies(variables: &[(&str, &str)]) -> (Proxies, Option<String>) {
        Proxies::read(|name| {
            let found = variables.iter().find(|(variable, _)| *variable == name)?;
            Some(found.1.to_owned())
        })
    }

    fn asked(variables: &[(&str, &str)], server: &str) -> Option<(String, &'static str)> {
        let (proxies, problem) = proxies(variables);
        assert_eq!(problem, None);
        let proxy = proxies.to(&WebAddress::parse(server).unwrap())?;
        Some((proxy.client.host().to_owned(), proxy.variable))
    }

    #[test]
    fn the_variable_for_https_goes_before_the_one_for_all_and_an_empty_one_is_none() {
        let all = ("ALL_PROXY", "socks5://all.example");
        let server = "https://spark.example";
        for (variables, proxy) in [
            (&[][..], None),
            (&[("HTTP_PROXY", "http://a.example"), ("HTTPS_PROXY", " ")], None),
            (&[all], Some(("all.example", "ALL_PROXY"))),
            (
                &[all, ("https_proxy", "http://b.example:3128")],
                Some(("b.example", "https_proxy")),
            ),
            (
                &[
                    all,
                    ("https_proxy", "http://b.example"),
                    ("HTTPS_PROXY", "https://user:word@c.example"),
                ],
                Some(("c.example", "HTTPS_PROXY")),
            ),
            (&[all, ("HTTPS_PROXY", "")], Some(("all.example", "ALL_PROXY"))),
        ] {
            let proxy = proxy.map(|(host, variable): (&str, _)| (host.to_owned(), variable));
            assert_eq!(asked(variables, server), proxy, "{variables:?}");
        }
    }

    #[test]
    fn a_value_that_names_no_proxy_is_told_without_repeating_it() {
        for value in [
            "htps://user:secret@proxy.example",
            "http://",
            "secret secret",
            "/secret",
        ] {
            let (proxies, problem) = proxies(&[("https_proxy", value), ("ALL_PROXY", "http://a.example")]);
            let problem = problem.unwrap_or_else(|| panic!("{value} is taken for a proxy"));
            assert!(problem.starts_with("The environment variable https_proxy names no proxy "));
            assert!(!problem.contains("secret"), "{problem}");
            assert!(proxies.to(&WebAddress::parse("https://b.example").unwrap()).is_none());
        }
    }

    #[test]
    fn exempt_hosts_and_this_machine_are_reached_without() {
        for (list, host, is_exempt) in [
            ("", "spark.example.org", false),
            ("*", "spark.example.org", true),
            ("example.org", "spark.example.org", true),
            ("example.org", "example.org", true),
            ("example.org", "anexample.org", false),
            (".example.org", "spark.example.org", true),
            ("*.EXAMPLE.org", "spark.example.ORG", true),
            ("a.b, spark.example.org ,c.d", "spark.example.org", true),
            ("a.b spark.example.org\tc.d", "spark.example.org", true),
            (" , ,", "spark.example.org", false),
            (".", "spark.example.org", false),
            ("other.example.org", "spark.example.org", false),
        ] {
            let variables = [("HTTPS_PROXY", "http://proxy.example"), ("NO_PROXY", list)];
            let found = asked(&variables, &format!("https://{host}"));
            assert_eq!(found.is_none(), is_exempt, "{list:?} {host}");
        }
        let variables = [("HTTPS_PROXY", "http://proxy.example")];
        assert_eq!(asked(&variables, "http://127.0.0.1:80"), None);
    }
}
