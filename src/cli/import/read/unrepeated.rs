//! JSON in which no object has a name twice: which of the two values counts is for nobody to guess.

use std::collections::HashSet;
use std::fmt;

use serde::de::{Deserialize, Deserializer, Error, MapAccess, SeqAccess, Visitor};

/// Any JSON; its error is that it is none, or has a name twice.
pub struct Unrepeated;

impl<'de> Deserialize<'de> for Unrepeated {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Check)
    }
}

struct Check;

impl<'de> Visitor<'de> for Check {
    type Value = Unrepeated;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_bool<E>(self, _: bool) -> Result<Unrepeated, E> {
        Ok(Unrepeated)
    }

    fn visit_i64<E>(self, _: i64) -> Result<Unrepeated, E> {
        Ok(Unrepeated)
    }

    fn visit_u64<E>(self, _: u64) -> Result<Unrepeated, E> {
        Ok(Unrepeated)
    }

    fn visit_f64<E>(self, _: f64) -> Result<Unrepeated, E> {
        Ok(Unrepeated)
    }

    fn visit_str<E>(self, _: &str) -> Result<Unrepeated, E> {
        Ok(Unrepeated)
    }

    fn visit_unit<E>(self) -> Result<Unrepeated, E> {
        Ok(Unrepeated)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Unrepeated, A::Error> {
        while items.next_element::<Unrepeated>()?.is_some() {}
        Ok(Unrepeated)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<Unrepeated, A::Error> {
        let mut names = HashSet::new();
        while let Some(name) = fields.next_key::<String>()? {
            fields.next_value::<Unrepeated>()?;
            if names.contains(&name) {
                return Err(A::Error::custom(format!("the row has {name:?} twice")));
            }
            names.insert(name);
        }
        Ok(Unrepeated)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_stands_twice_in_an_object_is_told() {
        for text in
            ["{\"a\":1,\"b\":{\"a\":[1.5,null,true,\"x\"]}}", "[]", "\"x\"", "-1", "18446744073709551616"]
        {
            assert!(serde_json::from_str::<Unrepeated>(text).is_ok(), "{text}");
        }
        for text in ["{\"a\":1,\"a\":1}", "[{\"x\":{\"a\":1,\"b\":2,\"\\u0061\":3}}]"] {
            let told = serde_json::from_str::<Unrepeated>(text).err().expect(text).to_string();
            assert!(told.contains("the row has \"a\" twice"), "{told}");
        }
        assert!(serde_json::from_str::<Unrepeated>("{\"a\":").is_err());
    }
}
