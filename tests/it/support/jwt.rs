//! Operator, accounts and users as signed claims: what `nsc` makes, for one test.

use nkeys::KeyPair;
use serde_json::{Value, json};

pub struct Operator {
    key: KeyPair,
    account: KeyPair,
    system: KeyPair,
}

impl Operator {
    pub fn new() -> Self {
        Self { key: KeyPair::new_operator(), account: KeyPair::new_account(), system: KeyPair::new_account() }
    }

    /// For a server that knows this operator's accounts and nobody else's.
    pub fn config(&self) -> String {
        let operator = json!({ "type": "operator", "version": 2 });
        let [account, system] = [&self.account, &self.system].map(|account| {
            let limits = json!({
                "subs": -1, "data": -1, "payload": -1, "imports": -1, "exports": -1, "wildcards": true, "conn": -1,
                "leaf": -1, "disk_storage": if account.public_key() == self.system.public_key() { 0 } else { -1 },
                "streams": -1, "consumer": -1,
            });
            let claims = json!({
                "type": "account", "version": 2, "limits": limits,
                "default_permissions": { "pub": {}, "sub": {} },
            });
            sign(&self.key, &account.public_key(), &claims, None)
        });
        format!(
            "operator: {}\nsystem_account: {system_key}\nresolver: MEMORY\nresolver_preload {{\n{}: {account}\n{system_key}: \
             {system}\n}}\n",
            sign(&self.key, &self.key.public_key(), &operator, None),
            self.account.public_key(),
            system_key = self.system.public_key(),
        )
    }

    /// A file of credentials for a user, which hold until then, in seconds since 1970.
    pub fn user(&self, until: Option<u64>) -> String {
        let user = KeyPair::new_user();
        let claims = json!({
            "type": "user", "version": 2, "pub": {}, "sub": {}, "subs": -1, "data": -1, "payload": -1,
        });
        let jwt = sign(&self.account, &user.public_key(), &claims, until);
        let seed = user.seed().expect("it was made with one");
        format!(
            "-----BEGIN NATS USER JWT-----\n{jwt}\n------END NATS USER JWT------\n\n************************* IMPORTANT \
             *************************\nNKEY Seed printed below can be used to sign and prove identity.\n\n\
             -----BEGIN USER NKEY SEED-----\n{seed}\n------END USER NKEY SEED------\n"
        )
    }
}

fn sign(issuer: &KeyPair, subject: &str, claims: &Value, until: Option<u64>) -> String {
    let mut body = json!({
        "jti": subject, "iat": 1_700_000_000, "iss": issuer.public_key(), "sub": subject, "name": "test", "nats": claims,
    });
    if let Some(until) = until {
        body["exp"] = json!(until);
    }
    let header = base64(json!({ "typ": "JWT", "alg": "ed25519-nkey" }).to_string().as_bytes());
    let signed = format!("{header}.{}", base64(body.to_string().as_bytes()));
    let signature = issuer.sign(signed.as_bytes()).expect("it has its seed");
    format!("{signed}.{}", base64(&signature))
}

/// URL-safe, without padding.
fn base64(bytes: &[u8]) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    let mut text = String::new();
    for three in bytes.chunks(3) {
        let word = three.iter().fold(0, |word, byte| word << 8 | u32::from(*byte)) << (8 * (3 - three.len()));
        for letter in 0..=three.len() {
            let sextet = usize::try_from(word >> (18 - 6 * letter) & 63).expect("six bits");
            text.push(char::from(LETTERS[sextet]));
        }
    }
    text
}
