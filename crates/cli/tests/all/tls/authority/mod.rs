//! An authority that only the test trusts. It issues certificates when a test wants one.

use bunko_testkit::process::{Server, temporary_dbpath};
use rcgen::{
    BasicConstraints, CertificateParams, CertificateRevocationListParams, CertifiedIssuer, DistinguishedName, DnType,
    ExtendedKeyUsagePurpose, IsCa, KeyIdMethod, KeyPair, KeyUsagePurpose, RevokedCertParams, SerialNumber,
    date_time_ymd,
};
use std::fs;
use std::path::{Path, PathBuf};

/// Validity of a certificate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Validity {
    Now,
    Past,
}

/// Issuer of a certificate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SignedBy {
    Itself,
    Authority,
}

pub struct Authority {
    issuer: CertifiedIssuer<'static, KeyPair>,
    directory: tempfile::TempDir,
}

impl Authority {
    pub fn new() -> Self {
        let directory = temporary_dbpath();
        let mut params = CertificateParams::new(Vec::new()).expect("no names");
        // Each authority has a name of its own.
        params.distinguished_name = name(&directory.path().display().to_string());
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        let issuer = CertifiedIssuer::self_signed(params, KeyPair::generate().expect("a key")).expect("signed");
        let authority = Self { issuer, directory };
        authority.write("ca.pem", &authority.issuer.pem());
        authority.write_server("server");
        authority
    }

    /// Path of one of its files.
    pub fn file(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    pub fn write(&self, name: &str, text: &str) -> PathBuf {
        fs::write(self.file(name), text).expect("written");
        self.file(name)
    }

    /// Writes a new server certificate to `server.pem`.
    pub fn write_server(&self, common_name: &str) {
        let key = new_key();
        self.write_server_with_key(common_name, &key, &key.serialize_pem());
    }

    /// Writes a server certificate for that key. `written` is the key's PEM text in the file.
    pub fn write_server_with_key(&self, common_name: &str, key: &KeyPair, written: &str) {
        let mut params = CertificateParams::new(vec!["localhost".to_owned(), "127.0.0.1".to_owned()]).expect("names");
        params.distinguished_name = name(common_name);
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        self.sign("server.pem", &params, key, written);
    }

    /// Writes a client certificate for `CN=<name>,OU=tests,O=Bunko`, whose serial number is the length of the name.
    pub fn write_client(&self, common_name: &str, validity: Validity) -> PathBuf {
        let key = new_key();
        self.write_client_with_key(common_name, validity, &key, &key.serialize_pem())
    }

    /// Writes a client certificate for that key. `written` is the key's PEM text in the file.
    pub fn write_client_with_key(
        &self,
        common_name: &str,
        validity: Validity,
        key: &KeyPair,
        written: &str,
    ) -> PathBuf {
        let mut params = CertificateParams::new(Vec::new()).expect("no names");
        params.distinguished_name = name(common_name);
        params.serial_number = Some(SerialNumber::from(common_name.len() as u64));
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        if validity == Validity::Past {
            params.not_after = date_time_ymd(2020, 1, 1);
        }
        self.sign(&format!("{common_name}.pem"), &params, key, written)
    }

    /// Writes a client certificate that could itself issue others, as `openssl req -x509` makes it, signed by itself or
    /// by the authority. Returns the path of the file with certificate and key, and the certificate alone as PEM text.
    pub fn write_client_authority(
        &self,
        common_name: &str,
        usages: &[KeyUsagePurpose],
        issuer: SignedBy,
    ) -> (PathBuf, String) {
        let mut params = CertificateParams::new(Vec::new()).expect("no names");
        params.distinguished_name = name(common_name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = usages.to_vec();
        let key = new_key();
        let certificate = match issuer {
            SignedBy::Itself => params.self_signed(&key),
            SignedBy::Authority => params.signed_by(&key, &self.issuer),
        };
        let certificate = certificate.expect("signed").pem();
        (self.write(&format!("{common_name}.pem"), &format!("{certificate}{}", key.serialize_pem())), certificate)
    }

    /// Writes the certificate of a set's member, `CN=<name>,OU=<unit>,O=Bunko`, for clients and servers.
    pub fn write_member(&self, common_name: &str, unit: &str, hosts: &[&str]) -> PathBuf {
        let key = new_key();
        let hosts: Vec<_> = hosts.iter().map(|&host| host.to_owned()).collect();
        let mut params = CertificateParams::new(hosts).expect("names");
        params.distinguished_name = name(common_name);
        params.distinguished_name.push(DnType::OrganizationalUnitName, unit);
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth, ExtendedKeyUsagePurpose::ClientAuth];
        self.sign(&format!("{common_name}.pem"), &params, &key, &key.serialize_pem())
    }

    fn sign(&self, file: &str, params: &CertificateParams, key: &KeyPair, written: &str) -> PathBuf {
        let certificate = params.signed_by(key, &self.issuer).expect("signed");
        self.write(file, &(certificate.pem() + written))
    }

    /// A list that revokes the client certificates whose names have that length.
    pub fn write_revocations(&self, length: u64) -> PathBuf {
        let now = date_time_ymd(2020, 1, 1);
        let revoked = RevokedCertParams {
            serial_number: SerialNumber::from(length),
            revocation_time: now,
            reason_code: None,
            invalidity_date: None,
        };
        let list = CertificateRevocationListParams {
            this_update: now,
            next_update: date_time_ymd(2100, 1, 1),
            crl_number: SerialNumber::from(1_u64),
            issuing_distribution_point: None,
            revoked_certs: vec![revoked],
            key_identifier_method: KeyIdMethod::Sha256,
        };
        self.write("crl.pem", &list.signed_by(&self.issuer).expect("signed").pem().expect("PEM"))
    }

    /// Options of a connection string: the trusted authority, and the client's certificate.
    pub fn options(&self, certificate: Option<&Path>) -> String {
        let shown = certificate.map(|file| format!("&tlsCertificateKeyFile={}", file.display()));
        format!("tls=true&tlsCAFile={}{}", self.file("ca.pem").display(), shown.unwrap_or_default())
    }

    /// Starts a server that uses TLS with its certificate.
    pub fn serve(&self, binary: &Path, dbpath: &Path, mode: &str, more: &[&str]) -> Server {
        let (own, ca) = (self.file("server.pem"), self.file("ca.pem"));
        let (own, ca) = (own.to_str().expect("a path"), ca.to_str().expect("a path"));
        let mut arguments = vec!["--tlsMode", mode, "--tlsCertificateKeyFile", own, "--tlsCAFile", ca];
        arguments.extend(more);
        Server::start(binary, dbpath, &arguments).expect("started")
    }
}

fn name(common_name: &str) -> DistinguishedName {
    let mut name = DistinguishedName::new();
    for (kind, value) in [
        (DnType::OrganizationName, "Bunko"),
        (DnType::OrganizationalUnitName, "tests"),
        (DnType::CommonName, common_name),
    ] {
        name.push(kind, value);
    }
    name
}

fn new_key() -> KeyPair {
    KeyPair::generate().expect("a key")
}
