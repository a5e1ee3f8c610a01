//! The server's side of SCRAM: text messages in, text messages out.
//! Source: RFC 5802, sections 3 and 7.

use crate::credential::ScramCredential;
use crate::mechanism::Mechanism;
use bunko_bson::base64;
use subtle::ConstantTimeEq;

/// Maximum number of bytes of a message: honest clients send a few hundred at most.
const MESSAGE_BYTES_MAX: usize = 4096;
/// Minimum length of a client's nonce, in bytes: with a shorter one, a nonce could repeat and an old conversation be
/// replayed.
const CLIENT_NONCE_MIN: usize = 8;

/// The reason why a login is refused, for the operator only. The client learns just that it is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rejection {
    /// The message is not what SCRAM expects.
    Malformed,
    /// There is no such user, or the user has no credential for this mechanism.
    UnknownUser,
    /// The proof does not match the password.
    WrongPassword,
    /// The nonce is not the nonce of this conversation.
    WrongNonce,
}

impl Rejection {
    /// The reason in words.
    pub fn reason(self) -> &'static str {
        match self {
            Self::Malformed => "malformed SCRAM message",
            Self::UnknownUser => "there is no such user for that mechanism",
            Self::WrongPassword => "the password is wrong",
            Self::WrongNonce => "the nonce is not that of the conversation",
        }
    }
}

/// Whether the checked credential belongs to a user.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// The credential of a user.
    Known,
    /// A pretended credential: the login is always refused, after the same work.
    Pretended,
}

/// A client's first message.
#[derive(Debug)]
pub struct ClientFirst {
    /// Name of the user.
    pub user: String,
    nonce: String,
    bare: String,
    /// The GS2 header, which the last message repeats in base64.
    header: String,
}

impl ClientFirst {
    /// Parses the message.
    /// # Errors
    /// [`Rejection::Malformed`], also for channel binding, extensions, or a login on behalf of another user.
    pub fn parse(payload: &[u8]) -> Result<Self, Rejection> {
        let text = text(payload)?;
        let (header, bare) = ["n,,", "y,,"]
            .into_iter()
            .find_map(|header| Some((header, text.strip_prefix(header)?)))
            .ok_or(Rejection::Malformed)?;
        let mut fields = bare.split(',');
        let mut field = |name: &str| fields.next().and_then(|field| field.strip_prefix(name));
        let user = field("n=").and_then(unescape).filter(|user| !user.is_empty()).ok_or(Rejection::Malformed)?;
        let nonce = field("r=").filter(|nonce| nonce.len() >= CLIENT_NONCE_MIN && is_printable(nonce));
        let nonce = nonce.ok_or(Rejection::Malformed)?.to_owned();
        if fields.next().is_some() {
            return Err(Rejection::Malformed);
        }
        Ok(Self { user, nonce, bare: bare.to_owned(), header: header.to_owned() })
    }
}

/// A conversation after the server's first message. The client's last message consumes it, right or wrong.
pub struct Conversation {
    mechanism: Mechanism,
    standing: Standing,
    credential: ScramCredential,
    /// Credentials of other passwords of the same user, with the salt and the iterations of `credential`.
    others: Vec<ScramCredential>,
    /// `<client first bare>,<server first>`.
    so_far: String,
    nonce: String,
    header: String,
}

impl Conversation {
    /// Answers the client's first message. `server_nonce` is random printable text without a comma, never used before.
    pub fn begin(
        mechanism: Mechanism,
        first: &ClientFirst,
        server_nonce: &str,
        credential: ScramCredential,
        standing: Standing,
    ) -> (Self, String) {
        let nonce = format!("{}{server_nonce}", first.nonce);
        let challenge = format!("r={nonce},s={},i={}", base64::encode(&credential.salt), credential.iterations);
        let so_far = format!("{},{challenge}", first.bare);
        let (others, header) = (Vec::new(), first.header.clone());
        (Self { mechanism, standing, credential, others, so_far, nonce, header }, challenge)
    }

    /// Accepts the proof of any of these credentials too. Credentials with another salt or other iterations are left out, because
    /// the client derives its proof from the challenge alone.
    #[must_use]
    pub fn or_any_of(mut self, others: &[ScramCredential]) -> Self {
        let own = &self.credential;
        let is_alike = |other: &&ScramCredential| other.salt == own.salt && other.iterations == own.iterations;
        self.others = others.iter().filter(is_alike).cloned().collect();
        self
    }

    /// Checks the client's last message. Returns the server's last message, which proves that the server knows the
    /// user.
    /// # Errors
    /// The reason why the login is refused.
    pub fn finish(self, payload: &[u8]) -> Result<String, Rejection> {
        let text = text(payload)?;
        let (without_proof, proof) = text.rsplit_once(",p=").ok_or(Rejection::Malformed)?;
        let proof = base64::decode(proof).filter(|proof| proof.len() == self.mechanism.key_bytes());
        let proof = proof.ok_or(Rejection::Malformed)?;
        let mut fields = without_proof.split(',');
        let mut field = |name: &str| fields.next().and_then(|field| field.strip_prefix(name));
        if field("c=") != Some(base64::encode(self.header.as_bytes()).as_str()) {
            return Err(Rejection::Malformed);
        }
        if field("r=") != Some(self.nonce.as_str()) {
            return Err(Rejection::WrongNonce);
        }
        if fields.next().is_some() {
            return Err(Rejection::Malformed);
        }
        let auth_message = format!("{},{without_proof}", self.so_far);
        let proved = |credential: &&ScramCredential| {
            let signature = self.mechanism.hmac(&credential.stored_key, auth_message.as_bytes());
            let client_key: Vec<u8> = proof.iter().zip(&signature).map(|(proof, mask)| proof ^ mask).collect();
            bool::from(self.mechanism.hash(&client_key).ct_eq(&credential.stored_key))
        };
        let credential = std::iter::once(&self.credential).chain(&self.others).find(proved);
        let is_right = credential.is_some();
        let server_key = &credential.unwrap_or(&self.credential).server_key;
        let own_signature = self.mechanism.hmac(server_key, auth_message.as_bytes());
        match self.standing {
            Standing::Pretended => Err(Rejection::UnknownUser),
            Standing::Known if is_right => Ok(format!("v={}", base64::encode(&own_signature))),
            Standing::Known => Err(Rejection::WrongPassword),
        }
    }
}

fn text(payload: &[u8]) -> Result<&str, Rejection> {
    let short = Some(payload).filter(|payload| payload.len() <= MESSAGE_BYTES_MAX);
    short.and_then(|payload| std::str::from_utf8(payload).ok()).ok_or(Rejection::Malformed)
}

fn is_printable(nonce: &str) -> bool {
    nonce.bytes().all(|byte| byte.is_ascii_graphic() && byte != b',')
}

/// Unescapes comma and equals sign in a name; `None` for any other escape.
fn unescape(name: &str) -> Option<String> {
    let mut plain = String::with_capacity(name.len());
    let mut rest = name;
    while let Some((before, after)) = rest.split_once('=') {
        plain.push_str(before);
        plain.push(match after.get(..2)? {
            "2C" => ',',
            "3D" => '=',
            _ => return None,
        });
        rest = &after[2..];
    }
    plain.push_str(rest);
    Some(plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A conversation from a document.
    struct Vector {
        mechanism: Mechanism,
        /// The text hashed for the password "pencil".
        prepared: &'static str,
        client_nonce: &'static str,
        server_nonce: &'static str,
        salt: &'static str,
        iterations: u32,
        client_final: &'static str,
        server_final: &'static str,
    }

    const VECTORS: &[Vector] = &[
        // RFC 5802, section 5: the password is hashed as it is.
        Vector {
            mechanism: Mechanism::ScramSha1,
            prepared: "pencil",
            client_nonce: "fyko+d2lbbFgONRv9qkxdawL",
            server_nonce: "3rfcNHYJY1ZVvWVs7j",
            salt: "QSXCR+Q6sek8bf92",
            iterations: 4096,
            client_final: "c=biws,r=fyko+d2lbbFgONRv9qkxdawL3rfcNHYJY1ZVvWVs7j,p=v0X8v3Bz2T0CJGbJQyF0X+HI4Ts=",
            server_final: "v=rmF9pqV8S7suAoZWja4dJRkFsKQ=",
        },
        // RFC 7677, section 3.
        Vector {
            mechanism: Mechanism::ScramSha256,
            prepared: "pencil",
            client_nonce: "rOprNGfwEbeRWgbNEkqO",
            server_nonce: "%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0",
            salt: "W22ZaJ0SNY7soEsUEjb6gQ==",
            iterations: 4096,
            client_final: "c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=",
            server_final: "v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=",
        },
    ];

    fn begin(vector: &Vector, standing: Standing) -> Conversation {
        let salt = base64::decode(vector.salt).expect("base64");
        let credential = ScramCredential::of_password(vector.mechanism, vector.prepared, salt, vector.iterations);
        let first = ClientFirst::parse(format!("n,,n=user,r={}", vector.client_nonce).as_bytes()).expect("sound");
        assert_eq!(first.user, "user");
        let (conversation, challenge) =
            Conversation::begin(vector.mechanism, &first, vector.server_nonce, credential, standing);
        let nonce = format!("{}{}", vector.client_nonce, vector.server_nonce);
        assert_eq!(challenge, format!("r={nonce},s={},i={}", vector.salt, vector.iterations));
        conversation
    }

    #[test]
    fn conversations_are_those_of_the_documents() {
        for vector in VECTORS {
            let answer = begin(vector, Standing::Known).finish(vector.client_final.as_bytes());
            assert_eq!(answer.as_deref(), Ok(vector.server_final));
            let answer = begin(vector, Standing::Pretended).finish(vector.client_final.as_bytes());
            assert_eq!(answer, Err(Rejection::UnknownUser));
        }
    }

    #[test]
    fn forged_last_messages_are_refused() {
        for vector in VECTORS {
            let finish = |message: &str| begin(vector, Standing::Known).finish(message.as_bytes()).expect_err(message);
            let honest = vector.client_final;
            let (start, proof) = honest.rsplit_once("p=").expect("a proof");
            let flipped = if proof.starts_with('A') { "B" } else { "A" };
            assert_eq!(finish(&format!("{start}p={flipped}{}", &proof[1..])), Rejection::WrongPassword);
            assert_eq!(finish(&honest.replacen("r=", "r=x", 1)), Rejection::WrongNonce);
            // A message of one conversation is refused in another, because the nonces differ.
            assert_eq!(finish(&honest.replacen(vector.server_nonce, "another", 1)), Rejection::WrongNonce);
            for malformed in [
                String::new(),
                "p=".to_owned(),
                start.to_owned(),
                honest.replacen("biws", "eSws", 1),
                format!("{start}p=AAAA"),
                format!("{start}m=x,p={proof}"),
                format!("{start}p=!{proof}"),
                format!("{}{honest}", "x".repeat(MESSAGE_BYTES_MAX)),
            ] {
                assert_eq!(finish(&malformed), Rejection::Malformed, "{malformed}");
            }
        }
    }

    #[test]
    fn first_messages_are_read_strictly() {
        let parse = |text: &str| ClientFirst::parse(text.as_bytes()).map(|first| first.user);
        assert_eq!(parse("n,,n=a=3Db=2Cc,r=01234567").as_deref(), Ok("a=b,c"));
        assert_eq!(parse("y,,n=u,r=01234567").as_deref(), Ok("u"));
        for refused in [
            "",
            "n,,",
            "n,,n=,r=01234567",
            "n,,n=u",
            "n,,n=u,r=short",
            "n,,n=u,r=0123456\u{7f}",
            "n,,n=u=2,r=01234567",
            "n,,n=u=2D,r=01234567",
            "n,,n=u,r=01234567,x=y",
            "n,,m=x,n=u,r=01234567",
            "n,a=other,n=u,r=01234567",
            "p=tls-unique,,n=u,r=01234567",
        ] {
            assert_eq!(parse(refused), Err(Rejection::Malformed), "{refused}");
        }
        assert!(ClientFirst::parse(b"n,,n=\xff,r=01234567").is_err());
    }
}
