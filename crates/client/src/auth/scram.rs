//! SCRAM: the client proves that it knows the password without sending it, and checks that the server knows it too.
//!
//! Pure: texts in, texts out. Source: RFC 5802; RFC 7677 for SHA-256; MongoDB authentication specification.

use bunko_bson::base64;

/// Minimum number of iterations that are accepted: a server that asks for fewer may be trying to find out the password.
/// Source: MongoDB authentication specification, "SCRAM-SHA-1".
const ITERATIONS_MIN: u32 = 4096;
/// Maximum number of iterations that are accepted, some seconds of work: a server must not keep a client busy forever.
const ITERATIONS_MAX: u32 = 10_000_000;

/// The functions in which the variants of SCRAM differ.
pub(crate) struct Variant {
    /// The password as this variant hashes it, from user and password.
    pub prepare_password: fn(&str, &str) -> Result<String, String>,
    /// The hash function `H`.
    pub hash: fn(&[u8]) -> Vec<u8>,
    /// `HMAC(key, text)`.
    pub hmac: fn(&[u8], &[u8]) -> Vec<u8>,
    /// `Hi(text, salt, iterations)`, which is PBKDF2.
    pub derive: fn(&[u8], &[u8], u32) -> Vec<u8>,
}

/// The salted password, which is expensive to derive, with the salt and iterations that it was derived with.
#[derive(Clone)]
pub(crate) struct SaltedPassword {
    salt: Vec<u8>,
    iterations: u32,
    key: Vec<u8>,
}

/// The client's state after its first message.
pub(crate) struct ScramClient {
    variant: &'static Variant,
    nonce: String,
    first_message_bare: String,
}

/// The client's state after its last message.
pub(crate) struct ScramProof {
    /// The message to send to the server.
    pub message: String,
    /// The salted password, kept for the next connection.
    pub salted_password: SaltedPassword,
    server_signature: Vec<u8>,
}

impl ScramClient {
    /// Begins a conversation. `nonce` is random printable text without a comma.
    pub fn new(variant: &'static Variant, user: &str, nonce: String) -> Self {
        let user = user.replace('=', "=3D").replace(',', "=2C");
        Self { variant, first_message_bare: format!("n={user},r={nonce}"), nonce }
    }

    /// The first message: no channel binding, no authorization identity.
    pub fn first_message(&self) -> String {
        format!("n,,{}", self.first_message_bare)
    }

    /// Answers the server's first message. `known` saves the key derivation if its salt and iterations match.
    /// # Errors
    /// A sentence that says what is wrong with the message or with the password.
    pub fn prove(
        self,
        server_first: &str,
        user: &str,
        password: &str,
        known: Option<&SaltedPassword>,
    ) -> Result<ScramProof, String> {
        let challenge = Challenge::parse(server_first, &self.nonce)?;
        let known = known.filter(|known| known.salt == challenge.salt && known.iterations == challenge.iterations);
        let salted_password = match known {
            Some(known) => known.clone(),
            None => {
                let prepared = (self.variant.prepare_password)(user, password)?;
                let key = (self.variant.derive)(prepared.as_bytes(), &challenge.salt, challenge.iterations);
                SaltedPassword { salt: challenge.salt, iterations: challenge.iterations, key }
            }
        };
        let Variant { hash, hmac, .. } = self.variant;
        // "biws" is base64 of "n,,", the first message's header.
        let without_proof = format!("c=biws,r={}", challenge.nonce);
        let auth_message = format!("{},{server_first},{without_proof}", self.first_message_bare);
        let client_key = hmac(&salted_password.key, b"Client Key");
        let client_signature = hmac(&hash(&client_key), auth_message.as_bytes());
        let proof: Vec<u8> = client_key.iter().zip(&client_signature).map(|(key, mask)| key ^ mask).collect();
        let server_key = hmac(&salted_password.key, b"Server Key");
        Ok(ScramProof {
            message: format!("{without_proof},p={}", base64::encode(&proof)),
            server_signature: hmac(&server_key, auth_message.as_bytes()),
            salted_password,
        })
    }
}

impl ScramProof {
    /// Checks the server's last message: only a server that knows the password can sign it.
    /// # Errors
    /// A sentence that says what is wrong with the message.
    pub fn verify(&self, server_final: &str) -> Result<(), String> {
        let (name, value) = server_final.split(',').next().and_then(|field| field.split_once('=')).unwrap_or_default();
        match name {
            "v" if base64::decode(value).as_ref() == Some(&self.server_signature) => Ok(()),
            "v" => Err("the server's signature is wrong: it does not know the password".into()),
            "e" => Err(format!("the server says: {value}")),
            _ => Err("the server's last message is malformed".into()),
        }
    }
}

/// The server's first message.
struct Challenge {
    nonce: String,
    salt: Vec<u8>,
    iterations: u32,
}

impl Challenge {
    fn parse(text: &str, client_nonce: &str) -> Result<Self, String> {
        let malformed = || "the server's first message is malformed".to_owned();
        let mut fields = text.split(',').map(|field| field.split_once('=').unwrap_or_default());
        let mut field = |name| fields.next().filter(|(found, _)| *found == name).map(|(_, value)| value);
        let nonce = field("r").ok_or_else(malformed)?;
        if nonce.len() <= client_nonce.len() || !nonce.starts_with(client_nonce) {
            return Err("the server's nonce does not continue the client's".into());
        }
        let salt = field("s").and_then(base64::decode).ok_or_else(malformed)?;
        let iterations = field("i").and_then(|text| text.parse().ok()).ok_or_else(malformed)?;
        if !(ITERATIONS_MIN..=ITERATIONS_MAX).contains(&iterations) {
            let range = format!("{ITERATIONS_MIN}..{ITERATIONS_MAX}");
            return Err(format!("the server asks for {iterations} iterations, which is not in {range}"));
        }
        Ok(Self { nonce: nonce.into(), salt, iterations })
    }
}

#[cfg(test)]
mod tests {
    use super::super::{scram_sha_1, scram_sha_256};
    use super::*;

    /// A conversation from a specification: all four messages.
    struct Vector {
        variant: &'static Variant,
        user: &'static str,
        password: &'static str,
        nonce: &'static str,
        server_first: &'static str,
        client_final: &'static str,
        server_final: &'static str,
    }

    const VECTORS: &[Vector] = &[
        // RFC 5802, section 5: the password is hashed unchanged.
        Vector {
            variant: &Variant { prepare_password: |_, password| Ok(password.into()), ..scram_sha_1::VARIANT },
            user: "user",
            password: "pencil",
            nonce: "fyko+d2lbbFgONRv9qkxdawL",
            server_first: "r=fyko+d2lbbFgONRv9qkxdawL3rfcNHYJY1ZVvWVs7j,s=QSXCR+Q6sek8bf92,i=4096",
            client_final: "c=biws,r=fyko+d2lbbFgONRv9qkxdawL3rfcNHYJY1ZVvWVs7j,p=v0X8v3Bz2T0CJGbJQyF0X+HI4Ts=",
            server_final: "v=rmF9pqV8S7suAoZWja4dJRkFsKQ=",
        },
        // MongoDB authentication specification, "SCRAM-SHA-1": the password is MongoDB's digest.
        Vector {
            variant: &scram_sha_1::VARIANT,
            user: "user",
            password: "pencil",
            nonce: "fyko+d2lbbFgONRv9qkxdawL",
            server_first: "r=fyko+d2lbbFgONRv9qkxdawLHo+Vgk7qvUOKUwuWLIWg4l/9SraGMHEE,s=rQ9ZY3MntBeuP3E1TDVC4w==,i=10000",
            client_final: "c=biws,r=fyko+d2lbbFgONRv9qkxdawLHo+Vgk7qvUOKUwuWLIWg4l/9SraGMHEE,p=MC2T8BvbmWRckDw8oWl5IVghwCY=",
            server_final: "v=UMWeI25JD1yNYZRMpZ4VHvhZ9e0=",
        },
        // RFC 7677, section 3.
        Vector {
            variant: &scram_sha_256::VARIANT,
            user: "user",
            password: "pencil",
            nonce: "rOprNGfwEbeRWgbNEkqO",
            server_first: "r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096",
            client_final: "c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=",
            server_final: "v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=",
        },
    ];

    #[test]
    fn conversations_are_those_of_the_documents() {
        for vector in VECTORS {
            let client = || ScramClient::new(vector.variant, vector.user, vector.nonce.into());
            assert_eq!(client().first_message(), format!("n,,n=user,r={}", vector.nonce));
            let proof = client().prove(vector.server_first, vector.user, vector.password, None).expect("sound");
            assert_eq!(proof.message, vector.client_final);
            assert_eq!(proof.verify(vector.server_final), Ok(()));
            // The kept key is used in place of the password.
            let known = Some(&proof.salted_password);
            let again = client().prove(vector.server_first, vector.user, "not the password", known).expect("sound");
            assert_eq!(again.message, vector.client_final);
            let wrong = client().prove(vector.server_first, vector.user, "pencils", None).expect("sound");
            assert!(wrong.verify(vector.server_final).is_err_and(|error| error.contains("does not know")));
        }
    }

    #[test]
    fn dishonest_servers_are_refused() {
        let prove = |server_first: &str| {
            let client = ScramClient::new(&scram_sha_256::VARIANT, "user", "abc".into());
            client.prove(server_first, "user", "pencil", None).map(|_| ()).expect_err(server_first)
        };
        assert!(prove("r=abc,s=AAAA,i=4096").contains("nonce"));
        assert!(prove("r=xabcd,s=AAAA,i=4096").contains("nonce"));
        assert!(prove("r=abcd,s=AAAA,i=4095").contains("4095 iterations"));
        assert!(prove("r=abcd,s=AAAA,i=10000001").contains("iterations"));
        for text in ["", "m=x,r=abcd,s=AAAA,i=4096", "r=abcd,s=A,i=4096", "r=abcd,s=AAAA", "r=abcd,s=AAAA,i=-1"] {
            assert!(prove(text).contains("malformed"), "{text}");
        }
        let client = ScramClient::new(&scram_sha_256::VARIANT, "user", "abc".into());
        let proof = client.prove("r=abcd,s=AAAA,i=4096", "user", "pencil", None).expect("sound");
        assert!(proof.verify("e=invalid-proof").is_err_and(|error| error.contains("invalid-proof")));
        assert!(proof.verify("v=").is_err());
        assert!(proof.verify("").is_err_and(|error| error.contains("malformed")));
    }

    #[test]
    fn names_are_escaped() {
        let client = ScramClient::new(&scram_sha_256::VARIANT, "a=b,c", "abc".into());
        assert_eq!(client.first_message(), "n,,n=a=3Db=2Cc,r=abc");
    }
}
