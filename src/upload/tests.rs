//! Ways that need another authority than those built in, or another environment than the process has.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc;

use super::*;

/// With the proxy at `address`, as if the environment named it.
fn through(address: &str) -> Uploader {
    let (proxies, problem) = Proxies::read(|name| (name == "HTTPS_PROXY").then(|| address.to_owned()));
    assert_eq!(problem, None);
    Uploader {
        proxies,
        roots: RootCerts::WebPki,
        problem,
    }
}

fn outcome(uploader: &Uploader, server: &str) -> Result<Key, UploadError> {
    let server = WebAddress::parse(server).unwrap();
    let upload = uploader.begin(&server, Content::Profile, vec![7_u8].into()).unwrap();
    upload.wait(Duration::from_secs(100)).expect("it ends")
}

/// A listener whose every connection is treated like this; its address.
fn listener(serve: impl Fn(TcpStream) -> std::io::Result<()> + Send + Sync + 'static) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let serve = Arc::new(serve);
    std::thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            let serve = Arc::clone(&serve);
            // The other side may close at any moment; that is its right.
            std::thread::spawn(move || drop(serve(stream)));
        }
    });
    address
}

#[test]
fn a_proxy_that_answers_in_drips_is_given_up() {
    let (closed, told) = mpsc::channel();
    let address = listener(move |mut stream| {
        stream.write_all(b"HTTP/1.1 200 OK\r\nX-Drip: ")?;
        while stream.write_all(b"x").is_ok() {
            std::thread::sleep(Duration::from_millis(50));
        }
        closed.send(()).map_err(std::io::Error::other)
    });
    let server = WebAddress::parse("https://spark.invalid").unwrap();
    let upload = through(&format!("http://{address}"))
        .begin_within(&server, Content::Profile, vec![7_u8].into(), Duration::from_secs(1))
        .unwrap();
    assert_eq!(upload.wait(Duration::from_secs(60)), Some(Err(UploadError::TooSlow)));
    drop(upload);
    told.recv_timeout(Duration::from_secs(30))
        .expect("the connection is shut");
}

/// What a proxy answers to what it is sent first and then.
type Answers = &'static [&'static [u8]];

#[test]
fn what_a_proxy_does_wrong_is_said_of_the_proxy() {
    let cases: &[(&str, Answers, &str)] = &[
        (
            "http",
            &[b"HTTP/1.1 502 No\r\n\r\n"],
            "could not connect us to spark.invalid",
        ),
        (
            "http",
            &[b"HTTP/1.1 407 Who\r\n\r\n"],
            "wants another name and password",
        ),
        (
            "http",
            &[b"220 mail.example ESMTP\r\n\r\n"],
            "does not answer like a proxy",
        ),
        ("http", &[b""], "broke the connection off"),
        // RFC 1928: version and method, then version and reply.
        (
            "socks5h",
            &[&[5, 0], &[5, 5, 0, 1, 0, 0, 0, 0, 0, 0]],
            "could not connect us to spark.invalid",
        ),
        ("socks5h", &[&[5, 0xff]], "could not connect us to spark.invalid"),
        (
            "socks5h",
            &[b"HTTP/1.1 400 Bad Request\r\n\r\n"],
            "does not answer like a proxy",
        ),
        ("socks5h", &[b""], "broke the connection off"),
        // SOCKS 4A: zero and reply.
        (
            "socks4a",
            &[&[0, 91, 0, 0, 0, 0, 0, 0]],
            "could not connect us to spark.invalid",
        ),
        (
            "socks4a",
            &[&[0, 93, 0, 0, 0, 0, 0, 0]],
            "wants another name and password",
        ),
    ];
    for (scheme, answers, expected) in cases {
        let address = listener(|mut stream| {
            for answer in *answers {
                let mut asked = Vec::new();
                // What HTTP asks ends with an empty line; what SOCKS asks comes at once.
                while !asked.ends_with(b"\r\n\r\n") && (asked.is_empty() || *scheme == "http") {
                    let mut some = [0; 1024];
                    let count = stream.read(&mut some)?;
                    asked.extend(&some[..count]);
                    if count == 0 {
                        break;
                    }
                }
                stream.write_all(answer)?;
            }
            stream.shutdown(std::net::Shutdown::Write)?;
            stream.read_to_end(&mut Vec::new()).map(drop)
        });
        let error = outcome(&through(&format!("{scheme}://{address}")), "https://spark.invalid").unwrap_err();
        assert_eq!(
            error.to_string(),
            format!("the proxy that HTTPS_PROXY names {expected}"),
            "{scheme} {answers:?}"
        );
    }
    for (proxy, expected) in [
        (
            "http://127.0.0.1:9",
            "the proxy that HTTPS_PROXY names cannot be reached",
        ),
        (
            "socks5h://127.0.0.1:9",
            "the proxy that HTTPS_PROXY names cannot be reached",
        ),
        ("http://proxy.invalid", "the proxy that HTTPS_PROXY names was not found"),
        (
            "socks5h://proxy.invalid",
            "the proxy that HTTPS_PROXY names was not found",
        ),
        // It is given an address, so the server's name is looked up here.
        (
            "socks5://127.0.0.1:9",
            "spark.invalid was not found: is this machine connected to the internet?",
        ),
    ] {
        let error = outcome(&through(proxy), "https://spark.invalid").unwrap_err();
        assert_eq!(error.to_string(), expected, "{proxy}");
    }
}

/// A proxy that connects everybody to `server`, whoever was asked for; its address.
fn socks_to(server: String) -> String {
    listener(move |mut client| {
        let mut greeting = [0; 3];
        client.read_exact(&mut greeting)?;
        client.write_all(&[5, 0])?;
        // Version, command, nothing, a name with its length, a port.
        let mut asked = [0; 5];
        client.read_exact(&mut asked)?;
        client.read_exact(&mut vec![0; usize::from(asked[4]) + 2])?;
        client.write_all(&[5, 0, 0, 1, 0, 0, 0, 0, 0, 0])?;
        let mut server = TcpStream::connect(&server)?;
        let (mut from_client, mut to_server) = (client.try_clone()?, server.try_clone()?);
        std::thread::spawn(move || std::io::copy(&mut from_client, &mut to_server));
        std::io::copy(&mut server, &mut client).map(drop)
    })
}

/// A server for the name `spark.example`, whose certificate is made like this; its address and the authority that has signed it.
fn encrypted(make: impl FnOnce(&mut rcgen::CertificateParams)) -> (String, RootCerts) {
    let mut authority = rcgen::CertificateParams::new(Vec::new()).unwrap();
    authority.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
    let authority_key = rcgen::KeyPair::generate().unwrap();
    let root = authority.self_signed(&authority_key).unwrap();
    let issuer = rcgen::Issuer::new(authority, authority_key);
    let mut params = rcgen::CertificateParams::new(vec!["spark.example".to_owned()]).unwrap();
    make(&mut params);
    let key = rcgen::KeyPair::generate().unwrap();
    let certificate = params.signed_by(&key, &issuer).unwrap();
    let key = rustls::pki_types::PrivatePkcs8KeyDer::from(key.serialize_der());
    let config = rustls::ServerConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certificate.der().clone()], key.into())
        .unwrap();
    let config = Arc::new(config);
    let address = listener(move |stream| {
        let connection = rustls::ServerConnection::new(Arc::clone(&config)).map_err(std::io::Error::other)?;
        let mut stream = rustls::StreamOwned::new(connection, stream);
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n\x07") {
            let mut byte = [0];
            stream.read_exact(&mut byte)?;
            head.push(byte[0]);
        }
        stream.write_all(b"HTTP/1.1 201 Created\r\nLocation: abcDEF123\r\nContent-Length: 0\r\n\r\n")
    });
    let root = ureq::tls::Certificate::from_der(root.der()).to_owned();
    (address, RootCerts::new_with_certs(&[root]))
}

#[test]
fn certificates_must_be_of_their_time_for_this_name_and_signed() {
    let year = |year| rcgen::date_time_ymd(year, 1, 1);
    type Make = Box<dyn FnOnce(&mut rcgen::CertificateParams)>;
    let cases: [(Make, Option<&str>); 4] = [
        (Box::new(|_| ()), None),
        (
            Box::new(move |params| params.not_after = year(2020)),
            Some("has expired (or this machine's clock is wrong)"),
        ),
        (
            Box::new(move |params| params.not_before = year(2200)),
            Some("is not valid yet (or this machine's clock is wrong)"),
        ),
        (
            Box::new(|params| {
                params.subject_alt_names = vec![rcgen::SanType::DnsName("other.example".try_into().unwrap())];
            }),
            Some("is for another server"),
        ),
    ];
    for (make, wrong) in cases {
        let (server, roots) = encrypted(make);
        let uploader = Uploader {
            roots,
            ..through(&format!("socks5h://{}", socks_to(server.clone())))
        };
        let told = outcome(&uploader, "https://spark.example");
        match wrong {
            None => assert_eq!(told.unwrap().as_str(), "abcDEF123"),
            Some(why) => assert_eq!(
                told.unwrap_err().to_string(),
                format!("spark.example does not prove who it is: its certificate {why}")
            ),
        }
        // The authorities that are built in do not know this one.
        let stranger = through(&format!("socks5h://{}", socks_to(server)));
        let error = outcome(&stranger, "https://spark.example").unwrap_err();
        assert!(matches!(error, UploadError::Certificate { .. }), "{error}");
    }
}

/// A listener that nobody takes connections from, with no room for another.
#[test]
fn a_server_that_does_not_answer_the_attempt_to_connect_is_given_up() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let mut waiting = Vec::new();
    while let Ok(stream) = TcpStream::connect_timeout(&address, Duration::from_millis(200)) {
        waiting.push(stream);
    }
    let uploader = through("");
    let error = outcome(&uploader, &format!("http://{address}")).unwrap_err();
    assert_eq!(error, UploadError::NoConnection("127.0.0.1".to_owned()));
}
