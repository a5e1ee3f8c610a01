//! Arbitrary input of a login: messages of SCRAM, certificates, restrictions, and stored credentials.
#![no_main]

use bunko_access::{ClientFirst, Conversation, Mechanism, Privilege, Restrictions, ScramCredential, Standing};
use bunko_bson::{DocumentRef, base64};
use bunko_certificates::Details;
use libfuzzer_sys::fuzz_target;
use rustls_pki_types::CertificateDer;
use std::net::IpAddr;
use std::sync::LazyLock;

const PASSWORD: &str = "p";

static CREDENTIALS: LazyLock<Vec<(Mechanism, ScramCredential)>> = LazyLock::new(|| {
    let credential = |mechanism: Mechanism| {
        let prepared = mechanism.prepare_password("u", PASSWORD).expect("a password");
        (mechanism, ScramCredential::of_password(mechanism, &prepared, vec![7; mechanism.salt_bytes()], 1))
    };
    Mechanism::ALL.into_iter().map(credential).collect()
});

fuzz_target!(|input: &[u8]| {
    let Some((kind, input)) = input.split_first() else { return };
    match kind % 4 {
        0 => converse(input),
        1 => {
            if let Some(details) = Details::of(&CertificateDer::from_slice(input)) {
                assert!(!details.subject.contains('\0'));
            }
        }
        2 => {
            let Ok(document) = DocumentRef::parse(input) else { return };
            let address: IpAddr = [10, 0, 0, 1].into();
            let _ = Restrictions::of(document).are_met_by(Some(address));
            if let Ok(privilege) = Privilege::parse(document) {
                let again = privilege.to_document();
                assert_eq!(Privilege::parse(again.as_ref()).as_ref(), Ok(&privilege));
            }
            for mechanism in Mechanism::ALL {
                if let Some(credential) = ScramCredential::parse(mechanism, document) {
                    assert!(ScramCredential::parse(mechanism, credential.to_document().as_ref()).is_some());
                }
            }
        }
        _ => {
            let Ok(password) = std::str::from_utf8(input) else { return };
            for mechanism in Mechanism::ALL {
                let _ = mechanism.prepare_password("u", password);
            }
        }
    }
});

/// Plays a client's messages, separated by a zero byte. Without the password, no client gets in.
fn converse(input: &[u8]) {
    let mut messages = input.splitn(2, |byte| *byte == 0);
    let (first, last) = (messages.next().unwrap_or_default(), messages.next().unwrap_or_default());
    let Ok(first) = ClientFirst::parse(first) else { return };
    for (mechanism, credential) in CREDENTIALS.iter() {
        for standing in [Standing::Known, Standing::Pretended] {
            let credential = ScramCredential::parse(*mechanism, credential.to_document().as_ref()).expect("a credential");
            let (conversation, challenge) = Conversation::begin(*mechanism, &first, "server", credential, standing);
            let nonce = challenge.split(',').next().expect("a nonce");
            // An odd length gets the right frame, so that the server checks the proof.
            let proof = base64::encode(&last.iter().copied().cycle().take(mechanism.key_bytes()).collect::<Vec<_>>());
            let framed = format!("c=biws,{nonce},p={proof}");
            let payload = if last.len() % 2 == 0 { last } else { framed.as_bytes() };
            assert!(conversation.finish(payload).is_err(), "somebody got in without the password");
        }
    }
}
