//! Words of the API, as enums that keep a word they do not know.

/// An enum of a few words. A newer service may have more: those are `Other`, and are sent as they came.
macro_rules! words {
    ($(#[$told:meta])* $name:ident { $($variant:ident = $word:literal,)+ }) => {
        $(#[$told])*
        #[derive(Clone, Debug, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum $name {
            $(#[doc = concat!("`", $word, "`")] $variant,)+
            /// A word that this version of the client does not know.
            Other(String),
        }

        impl $name {
            /// The word of the API.
            #[must_use]
            pub fn as_str(&self) -> &str {
                match self {
                    $(Self::$variant => $word,)+
                    Self::Other(word) => word,
                }
            }
        }

        impl From<&str> for $name {
            fn from(word: &str) -> Self {
                match word {
                    $($word => Self::$variant,)+
                    _ => Self::Other(word.to_owned()),
                }
            }
        }

        impl From<$name> for String {
            fn from(word: $name) -> String {
                word.as_str().to_owned()
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.pad(self.as_str())
            }
        }

        impl PartialEq<str> for $name {
            fn eq(&self, other: &str) -> bool {
                self.as_str() == other
            }
        }

        impl PartialEq<&str> for $name {
            fn eq(&self, other: &&str) -> bool {
                self.as_str() == *other
            }
        }

        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(self.as_str())
            }
        }

        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let word = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
                Ok(Self::from(&*word))
            }
        }

        impl crate::query::Parameter for $name {
            fn write(&self, text: &mut String) {
                crate::query::encode(self.as_str(), text);
            }
        }
    };
}
